"""`caucus-coordinator status`: the hospitals, nodes and runs, from Flower and the run folders."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from common.system.certificates import days_left, validity_in_words
from common.system.commands import Commands, add_command, add_folder, as_json
from server.deploy.authority import ending_soon
from server.deploy.enrolment import attendance, reported_versions
from server.deploy.run_state import checked_progress, progress
from server.deploy.settings import CoordinatorSettings

_NODE = {True: "online", False: "offline", None: "unknown"}


def register(commands: Commands) -> None:
    """Add the `status` command."""
    parser = add_command(
        commands,
        "status",
        _status,
        summary="hospitals, nodes and runs",
        description="Print the enrolled hospitals, the state of their nodes, the version of Caucus that each "
        "reported last, and the status of each run.",
        example="caucus-coordinator status coordinator --json",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_folder(parser, "caucus-coordinator")


def _status(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    served, reported = settings.is_served, reported_versions(settings)
    hospitals = attendance(settings, known=served)
    folders = (folder for folder in sorted((settings.folder / "runs").iterdir()) if folder.is_dir())
    runs = [checked_progress(settings, folder) if served else progress(folder) for folder in folders]
    if chosen.json:
        parties = []
        for number, hospital in enumerate(hospitals):
            version = reported.get(hospital.party.name)
            parties.append(
                {
                    "number": number,
                    "name": hospital.party.name,
                    "node": _NODE[hospital.online],
                    "since": hospital.since,
                    "version": version.to_json() if version else None,
                }
            )
        facts = {
            "address": settings.address,
            "served": served,
            "certificate_days": {name: days_left(settings.folder / name) for name in ("server.crt", "ca.crt")},
            "parties": parties,
            "runs": [asdict(run) for run in runs],
        }
        yield as_json(facts)
        return
    if not served:
        yield f"the coordinator does not run: caucus-coordinator serve {chosen.folder}"
    validity = validity_in_words(days_left(settings.folder / "server.crt"))
    yield f"front door: {settings.address}; its certificate {validity}"
    yield from ending_soon(settings.folder)
    for hospital in hospitals:
        yield f"{hospital}; {reported.get(hospital.party.name, 'its version is told in its first run')}"
    for run in runs:
        yield f"run {run.name}: {run}"
        yield from (f"  poor: {weakness}" for weakness in run.weaknesses)

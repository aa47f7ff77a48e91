"""`caucus-party check`: whether this hospital is ready, and what data will leave it."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from client.deploy.preflight import CHECKS, PROBLEM, PreflightFinding, findings
from client.deploy.settings import HospitalSettings
from common.errors import CaucusError
from common.system.commands import Commands, add_command, add_folder, as_json
from common.system.log_lines import wrap_lines
from common.versions import versions

LEAVES = (
    "leaves: public keys, the declared largest number of records, and the version of Caucus that runs here;",
    "        for each planned query one vector of counts, noised here, and masked so that only a sum can be read;",
    "        for a length range and seed choices this hospital's own answer, noised here, without a mask;",
    "        for fine-tuned samples, if client.yaml sets fine_tuning, texts of a model that learned with noise;",
    "        for abstracted seeds and rewritten records, if client.yaml sets seeds or rewriting and unsafe_unproven,",
    "        texts made from records, without proof;",
    "        coarse reasons of refusals, such as a change of the file of records, and a person's decisions;",
    "        that it takes a run's synthetic texts, if the coordinator sends them;",
    "        the time at which this hospital answers. It reveals the duration of the work only if an answer exceeds",
    "        the time that follows from the size of the query and the declared number of records: to a factor of",
    "        two, or more exactly if the coordinator makes many answers late;",
    "        the time that its service takes to start, which tells roughly how many records there are",
    "never leaves: texts, labels and embeddings of records, counts without noise, secret keys, the ledger",
)
_RESULT = 8
"""Width, in characters, of the column of results."""


def register(commands: Commands) -> None:
    """Add the `check` command."""
    parser = add_command(
        commands,
        "check",
        _check,
        summary="check settings, connection, keys, records, limits and encoder; exit code 1 if anything is wrong",
        description="Check one thing after another, say what is wrong and how to fix it, and what will leave this "
        "hospital and what never does. Works before the roster has come.",
        example="caucus-party check hospital",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--offline", action="store_true", help="without the connection")
    add_folder(parser, "caucus-party")


def _check(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    reported: list[PreflightFinding] = []
    if not chosen.json:
        yield f"{settings.name}: {versions()}"
    for finding in findings(settings, offline=chosen.offline):
        reported.append(finding)
        if not chosen.json:
            yield from _rows(finding)
    problems = [finding.check for finding in reported if finding.result == PROBLEM]
    if chosen.json:
        facts = {"name": settings.name, "versions": versions(), "ready": not problems}
        yield as_json(facts | {"checks": [asdict(finding) for finding in reported]})
    else:
        yield from LEAVES
    if problems:
        got = f"{len(problems)}: {', '.join(problems)}"
        raise CaucusError("not ready", expected="no problem", got=got, do="Follow the advice of each problem")


def _rows(finding: PreflightFinding) -> Iterator[str]:
    width = max(map(len, CHECKS))
    indent = _RESULT + width + 4
    yield from wrap_lines(f"{finding.result:{_RESULT}}  {finding.check:{width}}  {finding.detail}", indent)
    if finding.fix:
        yield from wrap_lines(f"{'':{indent}}how to fix: {finding.fix}", indent)

"""Hospitals with a mismatch, over real nodes: another version, encoder or roster, or no record at all.

Such a hospital is refused: the operators of both sides read one line with the cause, and nobody pays. After the mistake
is corrected, the failed run continues to its end. Another release of Flower at a hospital cannot be tested here, where
only one is installed: nodes send their release with each call, and SuperLink decides.
"""

import re
import shutil
import time
from dataclasses import replace

import pytest

from common.ledger.ledger import Ledger
from common.secagg.identity import Identity, Roster
from common.secagg.messages import VERSION
from common.system.enrolment import RosterFile
from simulations.laboratory.nodes.deployment import text
from tests.support.deployed import ROOT
from tests.support.faults import EXACT, charges, measured, read_run, refused, restarted, whole
from tests.support.runs import read

pytestmark = pytest.mark.deployment


def nobody_paid(deployed, run):
    for ledger in (deployed.here / "runs" / run / "state" / "ledger.db", *map(deployed.ledger, range(3))):
        assert not charges(ledger, read_run(deployed, run))


def mended(deployed, run, undisturbed):
    """The hospital starts anew, and the run that failed goes on to its end."""
    restarted(deployed, 2)
    started = time.monotonic()
    deployed.resume(run)
    measured(f"{run}: mended and resumed", started)
    whole(deployed, run, undisturbed)


def log_of(deployed, number):
    return text(deployed.at(number) / "logs" / "service.log")


def test_another_version(deployed, undisturbed):
    other = deployed.folder / "other"
    for name in ("client", "common", "configs", "protos", "server", "simulations"):
        shutil.copytree(ROOT / name, other / name, ignore=shutil.ignore_patterns("__pycache__"))
    messages = other / "common" / "secagg" / "messages.py"
    messages.write_text(messages.read_text().replace(f"\nVERSION = {VERSION}\n", f"\nVERSION = {VERSION + 1}\n"))
    deployed.path["h2"] = (other,)
    restarted(deployed, 2)
    line = refused(deployed, "version")
    assert f"expected {VERSION}; got {VERSION + 1}" in line
    assert f"expected {VERSION + 1}; got {VERSION}" in log_of(deployed, 2)
    nobody_paid(deployed, "version")
    del deployed.path["h2"]
    mended(deployed, "version", undisturbed)


def test_another_roster_matters_where_the_coordinator_is_not_trusted(deployed, undisturbed):
    path = deployed.at(2) / "roster.json"
    honest = path.read_text()
    parties = RosterFile.load(path).parties
    stranger = replace(parties[0], identity=Identity(bytes(32)).public.hex())
    path.write_text(RosterFile(parties=(stranger, *parties[1:])).to_json())
    restarted(deployed, 2)
    line = refused(deployed, "roster")
    digest = Roster.of_hospitals(RosterFile(parties=parties)).digest.hex()
    assert f"ROSTER, not {digest[:16]}" in line
    assert "(ROSTER): roster;" in log_of(deployed, 2)
    nobody_paid(deployed, "roster")
    for number in range(3):
        deployed.set(number, malicious_coordinator="false")
    deployed.run("roster-unused", EXACT, "secagg=semi_honest")
    whole(deployed, "roster-unused", undisturbed)
    for number in range(3):
        deployed.set(number, malicious_coordinator="true")
    path.write_text(honest)
    output = deployed.resume("roster", code=1).splitlines()[-1]
    assert "refused: ROSTER" in output  # its service still has the roster of before
    mended(deployed, "roster", undisturbed)


def test_a_hospital_without_a_record_takes_part_like_any_other(deployed):
    (deployed.folder / "notes2.csv").write_text("text,label\n")
    before = [len(log_of(deployed, number)) for number in range(3)]
    restarted(deployed, 2)
    restarted(deployed, 1)
    started = time.monotonic()
    deployed.run("empty", "privacy.epsilon=4")
    measured("a hospital without a record: whole", started)
    run = read(deployed.result("empty"), "run.json")["run"]
    charges = [
        [(entry.index, entry.committed, entry.cost) for entry in Ledger(path, read_only=True).entries(run)]
        for path in (deployed.at(number) / "private" / "ledger.db" for number in (1, 2))
    ]
    assert charges[0] == charges[1]
    assert len(charges[0]) == 2

    def seen(number):
        """Its log and audit lines of this run, without times and its own name."""
        lines = log_of(deployed, number)[before[number] :].splitlines()
        audit = [{**line, "when": ""} for line in deployed.audit(number) if line["run"] == run]
        return [re.sub(r"^[-\d]+ [:,\d]+|Hospital \d", "", line) for line in lines], audit

    assert seen(1) == seen(2)

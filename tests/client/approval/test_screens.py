"""Whole sheets as the terminal prints them, compared with stored ones in `screens/`.

`ACCEPT=yes pytest tests/client/approval/test_screens.py` stores them as they are now; read the difference before you
commit it. Digests and times differ from run to run, and are left out.
"""

import json
import math
import re
from pathlib import Path

from client.approval import fit
from client.command import main
from client.deploy.settings import HospitalSettings
from common.plan.plan import STATED
from common.plan.planned import PlannedQuery
from common.queries.histograms import LabelHistogramSpec
from common.queries.votes import VotesSpec
from common.secagg.identity import Roster
from common.system.enrolment import RosterFile
from tests.support.federations import plan
from tests.support.hospital import opened
from tests.support.screens import assert_accepted

SCREENS = Path(__file__).parent / "screens"
VARIABLE = {
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d": "TIME",
    r"(?:[0-9a-f]{4} ){15}[0-9a-f]{4}": "DIGEST IN FOURS",
    r"\b[0-9a-f]{16,64}\b": "DIGEST",
}


def check_screen(name, folder, capsys):
    """Compare the sheets of all plans that wait at a hospital with the stored screen of this name."""
    assert main(["approve", str(folder), "--list"]) == 0
    check_stored(name, capsys.readouterr().out)


def check_stored(name, shown):
    """Compare a text with the stored one of this name, apart from digests and times."""
    for pattern, word in VARIABLE.items():
        shown = re.sub(pattern, word, shown)
    assert_accepted(shown, SCREENS / f"{name}.txt")


def test_screen_of_a_plain_plan(trusting, capsys):
    opened(trusting, plan(2, **{name: f"the coordinator's {name}" for name in STATED}))
    check_screen("plain", trusting, capsys)


def test_screen_of_a_plan_that_protects_users(trusting, capsys):
    records = HospitalSettings.load(trusting).records
    records.write_text("text,label,user\n" + "x,a,ann\n" * 5 + "y,b,bob\nz,c,eve\n")
    queries = (
        PlannedQuery(name="votes", spec=VotesSpec(top=4, max_records=3), share=0.5),
        PlannedQuery(name="sizes", spec=LabelHistogramSpec(labels=2, max_records=3), mechanism="laplace", share=0.5),
    )
    opened(trusting, plan(2, unit="user", queries=queries, max_attempts=2))
    check_screen("users", trusting, capsys)


def test_screen_of_a_malicious_plan_with_corrupt_hospitals(made, capsys):
    roster = Roster.of_hospitals(RosterFile.load(made / "roster.json"))
    parties = {"colluders": 1, "corrupt": 1, "threshold": 3, "max_dropouts": 0}
    opened(made, plan(3, roster=roster.digest.hex(), max_records_per_party=roster.max_records, **parties))
    check_screen("malicious", made, capsys)


def test_screen_of_a_plan_beyond_the_limits(trusting, capsys, monkeypatch):
    monkeypatch.setattr(fit, "SECONDS", math.inf)  # a busy machine takes longer
    opened(trusting, plan(2, epsilon=9.0))
    check_screen("beyond", trusting, capsys)


def test_names_in_json_stay_as_other_programs_read_them(made, capsys):
    opened(made, plan(2))
    assert main(["approve", str(made), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    check_stored("json names", "\n".join(entry) + "\n")

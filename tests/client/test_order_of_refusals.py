"""Before anybody has decided about a plan, replies depend on what is public, and on no private file of the hospital."""

import math
from dataclasses import replace

import pytest

from client.approval.entries import approvals, decide
from client.deploy import host
from client.deploy.settings import HospitalSettings
from common import messages as m
from common.models.encoder import Encoder
from common.plan.planned import PlannedQuery
from common.queries.closed_set import PROVEN
from common.queries.histograms import LabelHistogramSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec
from common.queries.votes import VotesSpec
from tests.support.federations import CANARY, plan, query
from tests.support.hospital import change, change_limits, spend
from tests.support.ledgers import RELEASE
from tests.support.party_requests import send

NUMBER = 1
ASKED = QuestionnaireSpec(labels=2, directions=2, count=9, words=20, ending=10, first=2, term=5)
TRAINED = PlannedQuery(name="t", spec=FineTunedSpec(texts=3, steps=5), mechanism="dp-sgd", scale=3000.0)
SEEDS = PlannedQuery(name="s", spec=AbstractedSeedsSpec(choices=4), mechanism="gaussian max", scale=2.0**20)
SIZES = PlannedQuery(name="n", spec=LabelHistogramSpec(labels=2), mechanism="laplace", scale=2.0)
PLANS = {
    "within": {},
    "within, two queries": {"queries": (replace(SIZES, share=0.5), replace(SIZES, name="m", share=0.5))},
    "epsilon": {"epsilon": 9.0},
    "no noise": {"epsilon": math.inf},
    "delta": {"delta": 0.9e-3},
    "delta of the declared records": {"delta": 1e-2},
    "top": {"spec": VotesSpec(top=17)},
    "kind": {"queries": (PlannedQuery(name="q", spec=ASKED),)},
    "writer": {"queries": (TRAINED,), "epsilon": 8.0},
    "no proof": {"queries": (SEEDS,), "epsilon": math.inf},
    "a coordinator to be trusted": {"roster": ""},
    "no masks": {"secure": False, "threshold": 1, "roster": "", "colluders": 0, "corrupt": 0},
    "helpers": {"colluders": 0, "corrupt": 0},
}
"""Changes of a plan, most of them to one beyond a limit."""


@pytest.fixture
def hospital(made):
    """A running service with the limits of `init`, but one kind of query less, and its folder."""
    change_limits(made, queries=[kind for kind in PROVEN if kind != ASKED.kind])
    party = host.service(HospitalSettings.load(made))
    party.stop()  # replies leave at once
    return party, made


def asked(party, agreed, run):
    """The replies to each message about a plan, each as the reason for a refusal or the kind of a reply."""
    place = {"agreed": agreed, "party": NUMBER, "run": run}
    for body in (m.Open(agreed.to_json()), m.Ask(query()), m.AskShares({}), m.Release(b"")):
        reply = send(party, body, **place)
        yield reply.reason.name if isinstance(reply, m.Refusal) else type(reply).__name__


def made_for(party, name):
    """Return the plan of this name for a service's own roster and encoder."""
    own = {"roster": party._roster.digest.hex(), "max_records_per_party": party._roster.max_records}
    own |= {"colluders": 1, "corrupt": 1}
    return plan(2, **own | {"encoder": Encoder.hashed_ngrams().digest, "threshold": 2} | PLANS[name])


def replies(party):
    """All that a coordinator learns by asking for each plan."""
    return {name: tuple(asked(party, made_for(party, name), f"run {name}")) for name in PLANS}


BEFORE = ("AWAITING", "OUT_OF_ORDER", "OUT_OF_ORDER", "UNPLANNED")


CHANGES = {
    "a record comes": lambda folder: _append(folder.parent / "notes.csv", f"{CANARY} new,a\n"),
    "the file of records goes": lambda folder: (folder.parent / "notes.csv").unlink(),
    "budget is spent": lambda folder: spend(folder, "other", release=replace(RELEASE, scale=RELEASE.scale / 9)),
    "a limit is lowered": lambda folder: change_limits(folder, max_epsilon=0.1),
    "a limit is raised": lambda folder: change_limits(
        folder, max_epsilon=20.0, max_delta=0.5, malicious_coordinator=False
    ),
    "a setting waits for a restart": lambda folder: change(folder, headings=["History"]),
}
"""What a hospital does in its files, beside the damage to each."""


def _append(path, text):
    with path.open("a") as file:
        file.write(text)


@pytest.mark.parametrize("alter", CHANGES.values(), ids=CHANGES)
def test_what_a_hospital_does_in_its_files_changes_no_reply_before_a_decision(alter, hospital):
    party, folder = hospital
    before = replies(party)
    assert before == dict.fromkeys(PLANS, BEFORE)
    alter(folder)
    assert replies(party) == before
    assert party._ledger.entries("run within") == ()


FAILS_CLOSED = {
    "private/ledger.db": "a ledger that was changed may lack charges, and a service that has none answers nothing",
    "private/ledger.head": "it says whether the ledger is whole",
    "private/runs": "a damaged entry may be a refusal",
}
"""The only files of which a change shows before a decision, and why; none has anything of a record."""
DAMAGE = {
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0{"),
    "empty": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_no_reply_before_a_decision_tells_which_file_of_a_hospital_is_damaged(damage, hospital):
    party, folder = hospital
    before = replies(party)
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    assert {"client.yaml", "roster.json", "private/identity.key", "private/audit.jsonl"} <= set(names)
    seen = []
    for name in names:
        path = folder / name
        if name.startswith(tuple(FAILS_CLOSED)) or not path.exists():
            continue
        content = path.read_bytes()
        damage(path)
        if replies(party) != before:
            seen.append(name)
        if name != "private/audit.jsonl":
            path.write_bytes(content)
    assert seen == []


def test_a_full_audit_log_is_said_to_all_since_the_coordinator_filled_it(hospital, monkeypatch):
    party, folder = hospital
    monkeypatch.setattr("client.audit_log.LARGEST_AUDIT", 1)
    (folder / "private" / "audit.jsonl").write_text("{}\n")
    assert {reply for of_plan in replies(party).values() for reply in of_plan} == {"FULL"}


@pytest.mark.parametrize("alter", CHANGES.values(), ids=CHANGES)
def test_what_a_person_has_refused_is_refused_whatever_changes(alter, hospital):
    party, folder = hospital
    replies(party)
    for entry in approvals(folder / "private"):
        decide(folder / "private", entry, approve=False, by="anna")
    before = replies(party)
    assert before == dict.fromkeys(PLANS, ("DECLINED", *BEFORE[1:]))
    alter(folder)
    assert replies(party) == before
    for entry in approvals(folder / "private"):
        decide(folder / "private", entry, approve=True, by="anna")
    assert replies(party) != before  # of an approved plan the hospital says what is in its way


def test_plans_beyond_the_limits_leave_as_much_room_as_others(hospital):
    """A coordinator counts how many plans wait until there is no room; it is the same number for each of them."""
    party, folder = hospital
    rooms = set()
    for name in ("within", "epsilon", "kind"):
        for path in (folder / "private" / "runs").glob("*.json"):
            path.unlink()
        agreed = made_for(party, name)
        waits = [next(asked(party, agreed, f"{number}")) for number in range(25)]
        rooms.add(waits.index("FULL"))
    assert len(rooms) == 1


def test_where_the_limits_decide_they_say_what_is_beyond_them(hospital):
    party, folder = hospital
    change(folder, approval="auto")
    found = {name: of_plan[0] for name, of_plan in replies(party).items()}
    inside = {"within", "within, two queries"}
    assert found == {name: "Opened" if name in inside else "OVER_LIMIT" for name in PLANS}

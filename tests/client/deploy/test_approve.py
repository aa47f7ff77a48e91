"""What `caucus-party approve` tells the person who decides, and what comes of the decision."""

import json
import math
import re
import sys
from types import SimpleNamespace

import pytest

from client.approvals import LIMITS, approvals
from client.command import main
from client.deploy import plan_fit
from client.deploy.asked import asked
from client.deploy.plan_facts import down, up
from client.deploy.settings import HospitalSettings
from client.noted_head import NotedHead
from client.records import embed
from common.domain import UNLABELLED
from common.errors import ConfigError
from common.models.encoder import Encoder
from common.plan.guarantee import epsilon_against, epsilon_alone
from common.plan.not_covered import Scope, not_covered
from common.plan.plan import STATED
from common.plan.planned import PlannedQuery
from common.privacy.accountant import Release, epsilon, trade_off
from common.queries.class_sums import ClassSumsSpec
from common.queries.histograms import LabelHistogramSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.section_order import SectionOrderSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec
from common.queries.votes import VotesSpec
from common.secagg.identity import Roster
from common.system.enrolment import RosterFile
from common.system.log_lines import utc
from tests.support.federations import plan
from tests.support.hospital import change, opened

RUN = "pilot-1a2b3c4d"
TRUSTING = {"malicious_coordinator": False, "corrupt": 0.0}


@pytest.fixture
def made(made):
    """A hospital that trusts the coordinator to follow the protocol."""
    change(made, limits=TRUSTING)
    return made


def approve(capsys, folder, *arguments, code=0):
    assert main(["approve", str(folder), *arguments]) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def status(capsys, folder):
    assert main(["status", str(folder)]) == 0
    return capsys.readouterr().out


def facts(capsys, folder):
    """Lines by the fact's name; those without a name belong to the one before."""
    values, name = {}, ""
    for line in approve(capsys, folder, "--list").splitlines():
        if line.startswith("    "):
            name = line[4:21].strip() or name
            values.setdefault(name, []).append(line[21:])
    return values


def test_a_person_sees_what_the_plan_is_for_who_takes_part_and_what_it_costs(made, capsys):
    said = {name: f"a {name} that the coordinator states" for name in STATED}
    agreed = plan(2, max_attempts=2, **said)
    opened(made, agreed)
    assert approve(capsys, made, "--list").startswith(f"run {RUN}: awaiting\n")
    output = facts(capsys, made)
    assert {name: output[name][0] for name in STATED} == said
    assert output["hospitals"] == ['2: "St. Luke", "St. Mary #1" (this hospital); 2 or more in each sum']
    assert output["threshold"] == ["2 of the 2 hospitals that hold shares of a mask can lift it together"]
    assert output["colluders"] == ["no other hospital is assumed to help the coordinator"]
    assert output["answers"] == ["each question is answered with fresh noise up to 2 times, each counted in epsilon"]
    assert output["own texts"] == ["none leave this hospital: its answers are numbers"]
    assert output["protects"] == ["each record"]
    whole, texts, coordinator, alone = output["epsilon"]
    assert whole == "4.000 of all that the run releases: a right guess in at most 67.82% of cases"
    assert texts.startswith("4.000 of the synthetic texts, for readers with no hospital corrupt: a right")
    further = " ".join(output["a guess"])
    assert "a belief of 1 in 100 that a record took part becomes, if it is true, 2.26% on average" in further
    assert "by itself would allow right guesses in 98.21% of cases, against the worst noise" in further
    assert "a limit for any attack on what is released, not a forecast" in further
    assert " ".join(output["protection"]).startswith("moderate, for readers. Strong means right in at most 60%")
    assert coordinator.startswith("4.000 of this hospital's answers, for the coordinator: ")
    assert " of this hospital's answers, for the coordinator once every mask is lifted: " in alone
    assert float(alone.split()[0]) - 0.001 <= epsilon_alone(agreed) <= float(alone.split()[0])
    assert epsilon_alone(agreed) > 4
    assert output["limits"] == ["within this hospital's limits"]


SUMS = "sees sums over 2 or more hospitals, and never this hospital's own answers"


@pytest.mark.parametrize(
    ("changes", "trust"),
    [
        (
            {},
            f"MUST be trusted: if it follows the protocol, it {SUMS}",
        ),
        (
            {"roster": "own"},
            f"need not be trusted: whatever it does, it {SUMS}, unless 1 of the 1 others help it",
        ),
        (
            {"secure": False, "threshold": 1},
            "sees each noised answer of this hospital: NO masks, it need not do anything for that",
        ),
    ],
    ids=["semi-honest", "malicious", "no masks"],
)
def test_a_person_is_told_whether_the_coordinator_must_be_trusted(changes, trust, made, capsys):
    if "roster" in changes:
        roster = Roster.of_hospitals(RosterFile.load(made / "roster.json"))
        changes = changes | {"roster": roster.digest.hex(), "max_records_per_party": roster.max_records}
    opened(made, plan(2, **changes))
    assert facts(capsys, made)["coordinator"] == [trust]


def test_the_hospitals_own_assumption_of_colluders_is_in_the_figure(made, capsys):
    agreed = plan(2)
    opened(made, agreed)
    assert facts(capsys, made)["epsilon"][2].startswith("4.000 ")
    change(made, limits=TRUSTING | {"corrupt": 0.3})
    output = facts(capsys, made)
    assert output["colluders"] == ["1 other hospital is assumed to help the coordinator"]
    against, _, words = output["epsilon"][2].partition(" ")
    assert words.startswith("of this hospital's answers, for the coordinator and 1 colluder: ")
    assert float(against) >= epsilon_against(agreed, 1) > 4


@pytest.mark.parametrize(("parties", "dropouts", "when"), [(2, 0, "takes part"), (3, 1, "drops out, or is left out")])
def test_a_person_is_told_which_sums_can_be_subtracted(parties, dropouts, when, made, capsys):
    opened(made, plan(parties, max_dropouts=dropouts))
    assert f"where a hospital {when}" in " ".join(facts(capsys, made)["differences"])


def test_a_user_is_protected_up_to_m_records(made, capsys):
    opened(made, plan(2, unit="user", spec=VotesSpec(top=4, max_records=3)))
    assert facts(capsys, made)["protects"] == ["each user, of whom up to 3 records take part and the others do not"]


@pytest.mark.parametrize(
    ("agreed", "line"),
    [
        (plan(3), "parties; expected 2, all of this party's roster; got 3"),
        (plan(2, roster="ab" * 32), "roster; expected this party's own, "),
        (plan(2, epsilon=9.0), "plan's epsilon; expected at most 8.0; got 9.0"),
    ],
)
def test_what_cannot_be_approved_is_said(agreed, line, made, capsys, monkeypatch):
    monkeypatch.setattr(plan_fit, "SECONDS", math.inf)  # a busy machine takes longer
    opened(made, agreed)
    assert facts(capsys, made)["limits"][0].startswith(f"BEYOND this hospital's limits, it cannot be approved: {line}")
    fits = facts(capsys, made)["limits"][1]
    assert fits.startswith("the same plan would fit at epsilon 7.9" if agreed.epsilon == 9 else "no smaller epsilon")
    if agreed.parties == 3:
        assert "1 NOT on this hospital's roster" in facts(capsys, made)["hospitals"][0]


def test_a_delta_that_is_too_large_for_the_declared_records_is_beyond_whatever_the_limit_says(made, capsys):
    change(made, limits=TRUSTING | {"max_delta": 0.01})
    opened(made, plan(2, delta=1e-3))
    (line,) = facts(capsys, made)["limits"]
    refused = "plan's delta; expected below 1/1000, one over the number of records that this party declares; got 0.001"
    assert line.startswith(f"BEYOND this hospital's limits, it cannot be approved: {refused}. Ask for a plan with")


def test_where_files_name_users_a_plan_for_single_records_is_told_the_settings_it_needs(made, capsys):
    change(made, limits=TRUSTING | {"unit": "user"})
    opened(made, plan(2))
    (line,) = facts(capsys, made)["limits"]
    assert "privacy.unit=user privacy.max_records=N" in line


def test_a_plan_beyond_the_limits_is_approved_once_the_limit_is_changed_and_not_before(made, capsys, monkeypatch):
    monkeypatch.setattr(plan_fit, "SECONDS", math.inf)  # a busy machine takes longer
    opened(made, plan(2, epsilon=9.0))
    error = approve(capsys, made, "--yes", code=1)
    beyond = (
        f"not approved: run {RUN} is beyond this hospital's limits: plan's epsilon; expected at most 8.0; got 9.0. "
    )
    assert error.startswith(f"caucus-party: {beyond}Change the limit first, or tell the coordinator that epsilon 7.9")
    assert error.endswith(" would fit\n")
    opened(made, plan(2), "within")
    assert beyond in approve(capsys, made, "--yes", code=1)  # the other one is approved all the same
    assert {entry.run: entry.decision for entry in approvals(made / "private")} == {
        RUN: "awaiting",
        "within": "approved",
    }
    approve(capsys, made, "--run", RUN, "--no")
    approve(capsys, made, "--refused", "--yes", code=1)
    change(made, limits=TRUSTING | {"max_epsilon": 9.0})
    assert approve(capsys, made, "--refused", "--yes").endswith(f"approved: run {RUN}\n")


def test_so_it_is_where_the_limits_decide_and_where_there_is_no_writer(made, capsys):
    change(made, approval="auto", limits=TRUSTING | {"max_epsilon": 99.0})
    opened(made, plan(2, epsilon=9.0), beyond=True)
    opened(made, plan(2, queries=(TRAINED,)), "no writer", beyond=True)
    assert {(entry.decision, entry.by) for entry in approvals(made / "private")} == {("refused", LIMITS)}
    error = approve(capsys, made, "--run", "no writer", "--yes", code=1)
    assert "texts; expected fine_tuning in this party's client.yaml; got none" in error
    change(made, limits=TRUSTING)
    approve(capsys, made, "--refused", "--yes", code=1)
    assert {entry.decision for entry in approvals(made / "private")} == {"refused"}


def charge(folder, agreed, run):
    noted = NotedHead(folder / "private" / "ledger.head")
    ledger = noted.opened(folder / "private" / "ledger.db")
    release = agreed.answer_release(0)
    ledger.reserve(run=run, index=0, plan_digest=agreed.digest(), query_digest=bytes(32), release=release)
    noted.write(ledger)


def test_the_lifetime_budget_is_that_of_all_other_runs_and_this_one(made, capsys):
    agreed = plan(2)
    opened(made, agreed)
    (unspent, left, amounts, guess) = facts(capsys, made)["lifetime budget"]
    assert guess == "whoever sees all these answers guesses rightly in at most 67.82% of cases"
    assert unspent == "0.0 % is used by other runs, up to 34.9 % with this one"  # epsilon 3.49 of 10, at its delta
    assert left == "65.1 % is left afterwards"
    assert amounts.startswith("of epsilon 10, 10.000 is left and this run adds at most 3.4")
    assert amounts.endswith(", counted by the limit on all runs at its own delta")
    charge(made, agreed, RUN)  # this run's own charge is in its plan
    assert facts(capsys, made)["lifetime budget"] == [unspent, left, amounts, guess]
    for other in range(30):
        charge(made, agreed, f"other {other}")
    (spent, not_enough, _, more) = facts(capsys, made)["lifetime budget"]
    assert not spent.startswith("0.0 %")
    assert not_enough == "NOT enough"
    assert float(more.rpartition("at most ")[2].partition("%")[0]) > 90
    assert "epsilon of all runs; expected at most 10.0" in facts(capsys, made)["limits"][0]
    change(made, limits=TRUSTING | {"lifetime_epsilon": 10.0, "separate_data_sets": True})
    *_, apart = facts(capsys, made)["lifetime budget"]
    assert apart == "of all data sets; the service counts those alone that share a record with the present one"
    assert facts(capsys, made)["limits"] == ["within this hospital's limits"]
    change(made, limits=TRUSTING | {"lifetime_epsilon": None})
    (unlimited, _) = facts(capsys, made)["lifetime budget"]
    assert unlimited.startswith("NO limit on all runs: epsilon ")
    (entry,) = json.loads(approve(capsys, made, "--json"))
    assert entry["lifetime"]["delta"] == agreed.delta  # the only one on the sheet


def test_a_budget_by_a_ledger_that_was_replaced_is_not_certain(made, capsys):
    opened(made, plan(2))
    charge(made, plan(2), "other")
    (made / "private" / "ledger.db").unlink()
    spent, _, _, _, *unsure = facts(capsys, made)["lifetime budget"]
    assert spent.startswith("0.0 % is used by other runs")  # what the file says, which is gone
    assert " ".join(unsure).startswith(
        "NOT certain, it may be more; the service does not start with this ledger: the ledger is missing; expected one"
    )
    (entry,) = json.loads(approve(capsys, made, "--json"))
    assert entry["lifetime"]["problem"].startswith("the ledger is missing")


def test_the_hospitals_own_records_are_counted_for_it_alone(made, capsys):
    HospitalSettings.load(made).records.write_text("text,label\none,a\ntwo,b\nthree,b\nfour,c\n")
    opened(made, plan(2, labels=("a", "b", "flu")))
    assert facts(capsys, made)["records"] == [
        *("3 of 4 have one of the plan's labels (known here alone)", "a: 1", "b: 2"),
        *("none has: flu", "not asked for, they take no part: c (1)"),
    ]


def test_where_single_records_are_protected_epsilon_of_a_persons_records_is_said(made, capsys):
    records = HospitalSettings.load(made).records
    records.write_text("text,label,user\n" + "x,a,ann\n" * 3 + "x,other,ann\n" + "y,b,bob\nz,c,eve\n")
    opened(made, plan(2))
    output = facts(capsys, made)
    assert "they belong to 2 users, each with 3 at the most" in output["records"]
    (entry,) = json.loads(approve(capsys, made, "--json"))
    assert (entry["records"]["users"], entry["records"]["most_records_of_user"]) == (2, 3)
    of_user = entry["of_user"]
    released, against = of_user["epsilon_released"], of_user["epsilon_against"]
    assert 3 * entry["epsilon_released"] <= released <= against
    assert entry["right_guesses_percent"]["epsilon_released"] < of_user["released"]["right"]
    assert [line.split()[0] for line in output["of a user"]] == [up(released), up(against)]
    # Neither where each person has one record, nor where the plan protects persons.
    for text, protected in (("text,label,user\nx,a,ann\n", plan(2)), ("text,label\nx,a\n", plan(2))):
        records.write_text(text)
        opened(made, protected)
        assert "of a user" not in facts(capsys, made)
    records.write_text("text,label,user\n" + "x,a,ann\n" * 3)
    opened(made, plan(2, unit="user", spec=VotesSpec(top=4, max_records=3)), run="users")
    (entry,) = (entry for entry in json.loads(approve(capsys, made, "--json")) if entry["run"] == "users")
    assert entry["of_user"] is None


def test_how_many_records_take_part_after_the_limit_of_a_user_is_said(made, capsys):
    records = HospitalSettings.load(made).records
    records.write_text("text,label,user\n" + "x,a,ann\n" * 5 + "y,b,bob\nz,c,eve\n")
    opened(made, plan(2, unit="user", spec=VotesSpec(top=4, max_records=3)))
    assert facts(capsys, made)["records"][:2] == [
        "6 of 7 have one of the plan's labels (known here alone)",
        "4 of these take part: up to 3 of each of 2 users",
    ]
    (entry,) = json.loads(approve(capsys, made, "--json"))
    assert (entry["records"]["taking_part"], entry["records"]["users"]) == (4, 2)
    records.write_text("text,label\n" + "x,a\n" * 40)
    unnamed = "3 of these take part: up to 3 of them all, as no user is named"
    assert facts(capsys, made)["records"][1] == unnamed
    private = embed(HospitalSettings.load(made).read_records(), Encoder.hashed_ngrams(dimensions=32, bits=10))
    assert len(private.for_plan(("a", "b"), unit="user").limited(3).texts) == 3


def test_a_gap_in_the_coordinators_words_makes_no_further_fact(made, capsys):
    fact = "epsilon          0.010 of all that the run releases"
    opened(made, plan(2, purpose="triage" + " " * 120 + fact, recipient="us" + "\u2800" * 10 + fact))
    output = facts(capsys, made)
    assert output["purpose"] == ["triage epsilon 0.010 of all that the run releases"]
    assert output["recipient"][0].startswith(r"'us\u2800\u2800")
    assert len(output["epsilon"]) == 4


def test_no_mask_and_no_proof_are_said_and_no_word_of_the_coordinators_writes_over_it(made, capsys):
    forged = "flu    epsilon          0.010 of all that the run releases"
    queries = (
        PlannedQuery(name="choices", spec=SeedChoiceSpec(choices=4), mechanism="permute and flip", scale=1.0),
        PlannedQuery(name="seeds", spec=AbstractedSeedsSpec(choices=4), mechanism="gaussian max", scale=2.0**20),
        PlannedQuery(name="sizes", spec=LabelHistogramSpec(labels=2), mechanism="laplace", scale=2.0),
    )
    opened(made, plan(2, labels=("a", forged), queries=queries, epsilon=math.inf), run="r\x1b[2J")
    assert not {"\x1b", "\u202e"} & set(approve(capsys, made, "--list"))
    output = facts(capsys, made)
    assert output["epsilon"][0] == "inf of all that the run releases: a right guess in at most 100% of cases"
    assert output["own texts"] == ["up to 4 leave this hospital, made from its records by its own model"]
    choices, _, seeds, _, sizes, _ = output["query"]
    assert "NO masks" in choices
    assert "NO proof" not in choices
    assert "NO masks" in seeds
    assert "NO proof" in seeds
    assert "NO" not in sizes
    (entry,) = json.loads(approve(capsys, made, "--json"))
    assert entry["epsilon"] == entry["epsilon_alone"] == "inf"


def test_as_json_for_other_programs(made, capsys):
    opened(made, plan(2, purpose="triage"))
    (entry,) = json.loads(approve(capsys, made, "--json"))
    expected = {
        "run": RUN,
        "decision": "awaiting",
        "by": "",
        "purpose": "triage",
        **dict.fromkeys(STATED[1:], "not stated"),
        "hospitals": ["St. Luke", "St. Mary #1"],
        "masks": "semi-honest",
        "threshold": 2,
        "colluders": 0,
        "colluders_against_masks": 1,
        "attempts": 1,
        "unit": "sample",
        "max_records": 1,
        "epsilon": 4.0,
        "beyond_limits": "",
    }
    assert expected.items() <= entry.items()
    assert entry["epsilon_alone"] > 4 > entry["epsilon_against"] > 3.99
    assert entry["lifetime"]["left"] == 10.0 - entry["lifetime"]["after"]
    assert entry["records"] == {
        "total": 2,
        "taking_part": 2,
        "users": None,
        "most_records_of_user": None,
        "of_label": {"a": 1, "b": 1},
        "labels_without_records": [],
        "not_asked_for": {},
    }
    (kept,) = approvals(made / "private")
    assert kept.decision == "awaiting"
    assert json.loads(approve(capsys, made, "--json", "--refused")) == []


def test_a_person_is_told_what_each_query_asks(made, capsys):
    spec = ClassSumsSpec(labels=2, directions=9, count=512)
    queries = (
        PlannedQuery(name="votes", spec=VotesSpec(top=4), share=0.5),
        PlannedQuery(name="census", spec=spec, share=0.5),
    )
    opened(made, plan(2, queries=queries))
    votes, voted, census, *others = facts(capsys, made)["query"]
    assert votes.startswith("votes, asked once: gaussian noise, scale ")
    assert voted == "asks: for each of the coordinator's texts, how many records are most like it, or most unlike it"
    assert census.startswith("census (class sums), asked once: gaussian noise, scale ")
    assert " ".join(others) == (
        "asks: 20 numbers: for each label, where its records lie along 9 directions of meaning, added up, and how "
        "many they are; the coordinator takes the directions from its models' texts, and the noise would be enough for "
        "any others"
    )
    (output,) = json.loads(approve(capsys, made, "--json"))
    assert [query["asks"] for query in output["queries"]] == [asked(query.spec) for query in queries]


RARE = {"rate": 9e-5, "scale": 3000.0, "times": 2}
SUMS = ClassSumsSpec(labels=2, directions=9, count=512)
TRAINED = PlannedQuery(name="texts", spec=FineTunedSpec(texts=3, steps=5), mechanism="dp-sgd", **RARE, redraw=True)


@pytest.mark.parametrize(
    ("query", "unit", "sentence"),
    [
        (
            PlannedQuery(name="census", spec=SUMS, **RARE),
            "sample",
            "record takes part with probability 9e-05, drawn once for all answers",
        ),
        (
            PlannedQuery(name="census", spec=SUMS, **RARE, redraw=True),
            "user",
            "user takes part with probability 9e-05, drawn anew for each answer",
        ),
        (TRAINED, "sample", "record takes part with probability 9e-05, drawn anew for each training step"),
        (PlannedQuery(name="census", spec=SUMS), "sample", ""),
    ],
)
def test_a_person_is_told_with_which_probability_a_record_takes_part(query, unit, sentence, made, capsys):
    opened(made, plan(2, queries=(query,), unit=unit))
    said = [line for line in facts(capsys, made)["query"] if "takes part" in line]
    assert said == ([f"each {sentence}"] if sentence else [])


def test_a_person_is_told_which_questions_a_questionnaire_asks(made, capsys):
    spec = QuestionnaireSpec(labels=2, directions=9, count=512, words=512, ending=512, first=16, term=64)
    opened(made, plan(2, queries=(PlannedQuery(name="census", spec=spec),)))
    census, *asks = facts(capsys, made)["query"]
    assert census.startswith("census (questionnaire), asked once: gaussian noise, scale ")
    assert " ".join(asks) == (
        "asks: 20 numbers: for each label, where its records lie along 9 directions of meaning, taken from the "
        "models' texts, added up, and how many they are, as in class sums. And how many records have each answer to "
        "questions about a text's form, by fixed rules: how many words it has; with which mark it ends. And for each "
        "term of the coordinator's list, of how many records it is among the first 16: any words that the coordinator "
        "chooses, which may be names"
    )


@pytest.mark.parametrize(
    ("replies", "decision"),
    [
        ("y", "approved"),
        ("YES", "approved"),
        ("n", "refused"),
        ("no", "refused"),
        ("", "awaiting"),
        ("maybe ok y", "approved"),
        ("yep n", "refused"),
        (None, "awaiting"),
    ],
)
def test_a_person_decides_or_leaves_it_for_later(replies, decision, made, capsys, monkeypatch):
    opened(made, plan(2))
    left = [""] if replies == "" else (replies or "").split()

    def reply(prompt):
        if prompt.startswith("why?"):
            raise EOFError
        assert prompt == "take part? [y/n, Enter: decide later] "
        if not left:
            raise EOFError
        return left.pop(0)

    monkeypatch.setattr("builtins.input", reply)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert approve(capsys, made).endswith(f"\n{decision}: run {RUN}\n")
    assert not left
    (kept,) = approvals(made / "private")
    assert kept.decision == decision


def test_a_decision_can_be_reconsidered_and_withdrawn(made, capsys):
    opened(made, plan(2))
    opened(made, plan(2), run="other")
    assert approve(capsys, made, "--run", RUN, "--no").endswith(f"refused: run {RUN}\n")
    assert f'plan_digest": "{plan(2).digest().hex()}' in approve(capsys, made, "--refused", "--json")
    assert f"run {RUN}: refused by " in approve(capsys, made, "--refused", "--list")
    assert approve(capsys, made, "--refused", "--yes").endswith(f"approved: run {RUN}\n")
    assert approve(capsys, made, "--refused") == "no plan was refused\n"
    assert approve(capsys, made, "--run", RUN, "--no").endswith(f"refused: run {RUN}\n")
    assert "run; expected one that the coordinator has opened here; got none" in approve(
        capsys, made, "--run", "none", "--yes", code=2
    )
    assert [request.decision for request in approvals(made / "private") if request.run == "other"] == ["awaiting"]
    assert approve(capsys, made, "--run", "other", "--no").endswith("refused: run other\n")
    none, *refused, how = approve(capsys, made).splitlines()
    assert none == "no plan awaits approval"
    assert {line.partition(" by ")[0] for line in refused} == {f"run {RUN}: refused", "run other: refused"}
    assert how == "refused plans are shown in full, and can be approved, with --refused"


def test_a_refused_plan_stays_visible_with_who_refused_it_when_and_why(made, capsys, monkeypatch):
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_name="anna", pw_gecos=""))
    opened(made, plan(2))
    approve(capsys, made, "--no", "--reason", "no purpose")
    (kept,) = approvals(made / "private")
    line = f"run {RUN}: refused by anna, {utc(kept.decided)} UTC: no purpose\n"
    assert line in approve(capsys, made)
    assert approve(capsys, made, "--refused", "--list").startswith(line)
    (entry,) = json.loads(approve(capsys, made, "--refused", "--json"))
    assert (entry["by"], entry["decided"], entry["reason"]) == ("anna", kept.decided, "no purpose")
    approve(capsys, made, "--run", RUN, "--yes")
    lines = map(json.loads, (made / "private" / "audit.jsonl").read_text().splitlines())
    assert [(entry["by"], entry["from"], entry["to"], entry["reason"]) for entry in lines] == [
        ("anna", "awaiting", "refused", "no purpose"),
        ("anna", "refused", "approved", ""),
    ]


def test_who_refuses_at_a_terminal_is_asked_why(made, capsys, monkeypatch):
    opened(made, plan(2))
    replies = iter(["n", " no  purpose\x1b "])
    monkeypatch.setattr("builtins.input", lambda _: next(replies))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    approve(capsys, made)
    (kept,) = approvals(made / "private")
    assert kept.reason == r"'no  purpose\x1b'"


def test_a_person_is_told_what_the_guarantee_does_not_cover_and_the_plan_does_not_say(made, capsys):
    agreed = plan(2)
    opened(made, agreed)
    output = facts(capsys, made)
    items = not_covered(Scope.of(agreed, up))
    assert " ".join(output["not covered"]) == " ".join(f"- {item}" for item in items)
    (entry,) = json.loads(approve(capsys, made, "--json"))
    assert entry["not_covered"] == items
    assert " ".join(output["not stated"]) == (
        "ask the coordinator how many texts the language models write: the plan does not say it"
    )
    assert output["forecast"][1] == "these are the coordinator's word alone: nothing enforces them"
    assert output["decision"][0].startswith("the coordinator learns it, a refusal too")
    assert (entry["right_guesses_percent"]["epsilon"], entry["worst_guesses_percent"]["epsilon"]) == (67.82, 98.21)
    assert entry["strength"] == "moderate"
    assert [belief["one_in"] for belief in entry["beliefs_percent"]["epsilon_alone"]] == [100, 1000]


CORRUPT_AT = {"epsilon": 1, "epsilon_released": 1, "epsilon_against": 1, "epsilon_alone": 2}
"""How many of three hospitals may leave their noise out under the condition of each figure of a sheet."""


def test_no_figure_of_the_sheet_relies_on_noise_that_may_be_missing_under_its_condition(made, capsys):
    roster = Roster.of_hospitals(RosterFile.load(made / "roster.json"))
    parties = {"colluders": 1, "corrupt": 1, "threshold": 3}
    agreed = plan(3, roster=roster.digest.hex(), max_records_per_party=roster.max_records, **parties)
    opened(made, agreed)
    (entry,) = json.loads(approve(capsys, made, "--json"))
    (query,) = agreed.queries
    percent = {name for name in entry if name.endswith("_percent")}
    assert percent == {"right_guesses_percent", "worst_guesses_percent", "beliefs_percent"}
    assert {name for name in entry if "epsilon" in name} - {"largest_epsilon_within_limits"} == {
        *CORRUPT_AT,
        "epsilon_if_all_add_noise",
    }
    for name, corrupt in CORRUPT_AT.items():
        scale = math.sqrt((3 - corrupt) * agreed.share_sigma(query) ** 2)
        faced = [Release(mechanism="gaussian", sensitivity=query.spec.sensitivity, scale=scale, times=query.times)]
        assert epsilon(faced, agreed.delta) <= entry[name] * (1 + 1e-9)
        bound = trade_off(faced, agreed.delta)
        assert 100 * bound.even_guess <= entry["right_guesses_percent"][name] <= entry["worst_guesses_percent"][name]
        for belief in entry["beliefs_percent"][name]:
            prior = 1 / belief["one_in"]
            assert 100 * bound.average_belief(prior) <= belief["average"]
            assert 100 * bound.highest_belief(prior, 1e-3) <= belief["highest"]


def test_one_delta_is_on_the_sheet(made, capsys):
    opened(made, plan(2))
    text = approve(capsys, made, "--list")
    assert re.findall(r"delta (\S+)", text) == [repr(plan(2).delta)]
    assert "0.0001" not in text


def test_without_a_terminal_a_person_has_to_say_so(made, capsys, monkeypatch):
    opened(made, plan(2))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert "decision; expected a terminal, --yes or --no" in approve(capsys, made, code=2)


def test_a_loss_is_rounded_up_and_what_is_left_down():
    raised = " ".join(up(value) for value in (4.0, 1.1, 1.0001, 1.9999, 0.0, math.inf))
    assert raised == "4.000 1.100 1.001 2.000 0.000 inf"
    lowered = " ".join(down(value) for value in (4.0, 1.1, 1.0009, 1.9999, 0.0004))
    assert lowered == "4.000 1.100 1.000 1.999 0.000"


def test_a_plan_of_another_version_hides_no_other_and_can_be_put_away(made, capsys):
    opened(made, plan(2), run="older")
    (older,) = (made / "private" / "runs").iterdir()
    entry = json.loads(older.read_text())
    before = json.loads(entry["plan"])
    del before["purpose"]
    older.write_text(json.dumps(entry | {"plan": json.dumps(before)}))
    opened(made, plan(2))
    output = approve(capsys, made, "--list")
    assert output.count("; you can refuse it\n") == 1
    assert "run older: awaiting; this plan cannot be read here (a plan that cannot be read; expected the" in output
    assert f"run {RUN}: awaiting\n" in output
    older, other = json.loads(approve(capsys, made, "--json"))
    assert (older["run"], other["run"]) == ("older", RUN)
    assert "cannot_be_read" in older.keys() - other.keys()
    assert "plans that cannot be read here: 1 of these" in status(capsys, made)
    approve(capsys, made, "--run", "older", "--no")
    assert {request.run: request.decision for request in approvals(made / "private")} == {
        "older": "refused",
        RUN: "awaiting",
    }


def test_a_plan_without_labels_is_described_as_it_is(made, capsys):
    HospitalSettings.load(made).records.write_text("text,label\nwet cough,flu\nrash,measles\n")
    sums = PlannedQuery(name="class sums", spec=ClassSumsSpec(labels=1, directions=2, count=256), scale=5000.0)
    opened(made, plan(2, labels=(UNLABELLED,), queries=[sums]))
    output = facts(capsys, made)
    assert output["records"] == ["all 2 may take part, as one population: the plan has no labels (known here alone)"]
    assert output["labels"] == ["none: what is asked for each label is asked once, for all records together"]
    assert UNLABELLED not in approve(capsys, made, "--list").replace(output["epsilon"][1], "")
    (plain,) = json.loads(approve(capsys, made, "--json"))
    assert plain["records"]["total"] == sum(plain["records"]["of_label"].values()) == 2
    assert plain["records"]["not_asked_for"] == {}


def test_a_plan_for_several_labels_says_under_how_many_a_record_counts(made, capsys):
    HospitalSettings.load(made).records.write_text("text,labels\nwet cough,flu;asthma;flu\nrash,measles\n")
    spec = VotesSpec(top=2, fine=64, labels_per_record=2)
    opened(made, plan(2, labels=("flu", "asthma"), queries=[PlannedQuery(name="votes", spec=spec, scale=5000.0)]))
    output = facts(capsys, made)
    assert " ".join(output["labels"]) == (
        "a record counts under up to 2 of its labels, the first 2 that the plan has; the noise covers all of them "
        "together"
    )
    assert output["records"][:3] == [
        "1 of 2 have one of the plan's labels (known here alone); each counts under all of its labels here",
        "flu: 1",
        "asthma: 1",
    ]


def test_records_without_labels_have_no_part_in_a_plan_with_labels(made, capsys):
    change(made, labelled=False)
    HospitalSettings.load(made).records.write_text("text\nwet cough\nrash\n")
    opened(made, plan(2))
    output = facts(capsys, made)
    assert output["records"][0] == "0 of 2 have one of the plan's labels (known here alone)"
    assert output["records"][-1] == f"not asked for, they take no part: {UNLABELLED} (2)"
    assert "labels" not in output


def test_a_plan_by_sections_says_so_and_how_many_records_have_its_headings(made, capsys):
    HospitalSettings.load(made).records.write_text('text,label\n"History: a cough\nplan: rest",x\nrash,measles\n')
    spec = SectionOrderSpec(labels=2, labels_per_record=2)
    opened(made, plan(2, labels=("History", "Plan"), queries=[PlannedQuery(name="order", spec=spec, scale=5000.0)]))
    output = facts(capsys, made)
    assert " ".join(output["sections"]).startswith("the labels are headings: a record counts under each with the text")
    assert output["records"][0].endswith("each counts under all of its sections under headings here")
    assert output["records"][1].startswith("`headings` in client.yaml has none of them")
    file = made / "client.yaml"
    file.write_text(file.read_text().replace("headings: []", "headings: [HISTORY, Plan, Allergies]"))
    output = facts(capsys, made)
    assert output["records"][1:3] == ["History: 1", "Plan: 1"]
    file.write_text(file.read_text().replace("Allergies]", "plan]"))
    with pytest.raises(ConfigError, match="headings that differ"):
        HospitalSettings.load(made)


@pytest.mark.parametrize(("code", "name"), [("en", "what it is for"), ("de", "wofür er ist"), ("fr", "à quoi il sert")])
def test_the_terminal_has_the_sheet_in_the_language_that_was_asked_for(made, capsys, code, name):
    opened(made, plan(2))
    assert name in approve(capsys, made, "--list", "--language", code)

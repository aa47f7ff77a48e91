"""What `caucus-party approve` tells the person who decides, and what comes of the decision."""

import json
import math
import sys
from types import SimpleNamespace

import pytest

from client.approval import fit
from client.approval.entries import approvals
from client.approval.questions import question_in_words
from client.audit_log import LIMITS
from client.command import main
from common.plan.plan import STATED
from common.plan.planned import PlannedQuery
from common.queries.texts import FineTunedSpec
from common.queries.votes import VotesSpec
from common.system.log_lines import utc
from tests.support.federations import plan
from tests.support.hospital import TRUSTING, change, opened

RUN = "pilot-1a2b3c4d"


def approve(capsys, folder, *arguments, code=0):
    assert main(["approve", str(folder), *arguments]) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def facts(capsys, folder):
    """Lines by the fact's name; those without a name belong to the one before."""
    values, name = {}, ""
    for line in approve(capsys, folder, "--list").splitlines():
        if line.startswith("    "):
            name = line[4:21].strip() or name
            values.setdefault(name, []).append(line[21:])
    return values


def test_a_plan_beyond_the_limits_is_approved_once_the_limit_is_changed_and_not_before(trusting, capsys, monkeypatch):
    monkeypatch.setattr(fit, "SECONDS", math.inf)  # a busy machine takes longer
    opened(trusting, plan(2, epsilon=9.0))
    error = approve(capsys, trusting, "--yes", code=1)
    beyond = (
        f"not approved: run {RUN} is beyond this hospital's limits: plan's epsilon; expected at most 8.0; got 9.0. "
    )
    assert error.startswith(f"caucus-party: {beyond}Change the limit first, or tell the coordinator that epsilon 7.9")
    assert error.endswith(" would fit\n")
    opened(trusting, plan(2), "within")
    assert beyond in approve(capsys, trusting, "--yes", code=1)  # the other one is approved all the same
    assert {entry.run: entry.decision for entry in approvals(trusting / "private")} == {
        RUN: "awaiting",
        "within": "approved",
    }
    approve(capsys, trusting, "--run", RUN, "--no")
    approve(capsys, trusting, "--refused", "--yes", code=1)
    change(trusting, limits=TRUSTING | {"max_epsilon": 9.0})
    assert approve(capsys, trusting, "--refused", "--yes").endswith(f"approved: run {RUN}\n")


def test_a_plan_that_the_limits_refused_or_that_has_no_writer_is_not_approved(trusting, capsys):
    change(trusting, approval="auto", limits=TRUSTING | {"max_epsilon": 99.0})
    opened(trusting, plan(2, epsilon=9.0), beyond=True)
    opened(trusting, plan(2, queries=(TRAINED,)), "no writer", beyond=True)
    assert {(entry.decision, entry.by) for entry in approvals(trusting / "private")} == {("refused", LIMITS)}
    error = approve(capsys, trusting, "--run", "no writer", "--yes", code=1)
    assert "texts; expected fine_tuning in this party's client.yaml; got none" in error
    change(trusting, limits=TRUSTING)
    approve(capsys, trusting, "--refused", "--yes", code=1)
    assert {entry.decision for entry in approvals(trusting / "private")} == {"refused"}


def test_a_gap_in_the_coordinators_words_makes_no_further_fact(trusting, capsys):
    fact = "epsilon          0.010 of all that the run releases"
    opened(trusting, plan(2, purpose="triage" + " " * 120 + fact, recipient="us" + "\u2800" * 10 + fact))
    output = facts(capsys, trusting)
    assert output["purpose"] == ["triage epsilon 0.010 of all that the run releases"]
    assert output["recipient"][0].startswith(r"'us\u2800\u2800")
    lines = approve(capsys, trusting, "--list").splitlines()
    assert sum(line.startswith("    epsilon ") for line in lines) == 1
    assert "0.010" not in " ".join(output["epsilon"])


def test_as_json_for_other_programs(trusting, capsys):
    opened(trusting, plan(2, purpose="triage"))
    (entry,) = json.loads(approve(capsys, trusting, "--json"))
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
    assert [query["asks"] for query in entry["queries"]] == [question_in_words(VotesSpec(top=4))]
    (kept,) = approvals(trusting / "private")
    assert kept.decision == "awaiting"
    assert json.loads(approve(capsys, trusting, "--json", "--refused")) == []


RARE = {"rate": 9e-5, "scale": 3000.0, "times": 2}
TRAINED = PlannedQuery(name="texts", spec=FineTunedSpec(texts=3, steps=5), mechanism="dp-sgd", **RARE, redraw=True)


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
def test_a_person_decides_or_leaves_it_for_later(replies, decision, trusting, capsys, monkeypatch):
    opened(trusting, plan(2))
    left = [""] if replies == "" else (replies or "").split()

    def reply(prompt):
        if prompt.startswith("why?") and replies != "n":
            raise EOFError
        if prompt.startswith("why?"):
            return " no  purpose\x1b "
        assert prompt == "take part? [y/n, Enter: decide later] "
        if not left:
            raise EOFError
        return left.pop(0)

    monkeypatch.setattr("builtins.input", reply)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert "no decision was given. Run the command in a terminal" in approve(capsys, trusting, code=2)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert approve(capsys, trusting).endswith(f"\n{decision}: run {RUN}\n")
    assert not left
    (kept,) = approvals(trusting / "private")
    assert (kept.decision, kept.reason) == (decision, r"'no  purpose\x1b'" if replies == "n" else "")


def test_a_decision_can_be_reconsidered_and_withdrawn(trusting, capsys, monkeypatch):
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_name="anna", pw_gecos=""))
    opened(trusting, plan(2))
    opened(trusting, plan(2), run="other")
    assert approve(capsys, trusting, "--run", RUN, "--no", "--reason", "no purpose").endswith(f"refused: run {RUN}\n")
    (entry,) = json.loads(approve(capsys, trusting, "--refused", "--json"))
    assert (entry["plan_digest"], entry["by"], entry["reason"]) == (plan(2).digest().hex(), "anna", "no purpose")
    line = f"run {RUN}: refused by anna, {utc(entry['decided'])} UTC: no purpose\n"
    assert line in approve(capsys, trusting, "--list")
    assert approve(capsys, trusting, "--refused", "--list").startswith(line)
    assert approve(capsys, trusting, "--refused", "--yes").endswith(f"approved: run {RUN}\n")
    assert approve(capsys, trusting, "--refused") == "no plan was refused\n"
    assert approve(capsys, trusting, "--run", RUN, "--no").endswith(f"refused: run {RUN}\n")
    assert "the coordinator has not opened this run here; got none" in approve(
        capsys, trusting, "--run", "none", "--yes", code=2
    )
    assert [request.decision for request in approvals(trusting / "private") if request.run == "other"] == ["awaiting"]
    assert approve(capsys, trusting, "--run", "other", "--no").endswith("refused: run other\n")
    none, *refused, how = approve(capsys, trusting).splitlines()
    assert none == "no plan awaits approval"
    assert {line.partition(" by ")[0] for line in refused} == {f"run {RUN}: refused", "run other: refused"}
    assert how == "refused plans are shown in full, and can be approved, with --refused"


def test_a_plan_of_another_version_hides_no_other_and_can_be_put_away(trusting, capsys):
    opened(trusting, plan(2), run="older")
    (older,) = (trusting / "private" / "runs").iterdir()
    entry = json.loads(older.read_text())
    before = json.loads(entry["plan"])
    del before["purpose"]
    older.write_text(json.dumps(entry | {"plan": json.dumps(before)}))
    opened(trusting, plan(2))
    output = approve(capsys, trusting, "--list")
    assert output.count("; you can refuse it\n") == 1
    assert "run older: awaiting; this plan cannot be read here (a plan that cannot be read; expected the" in output
    assert f"run {RUN}: awaiting\n" in output
    older, other = json.loads(approve(capsys, trusting, "--json"))
    assert (older["run"], other["run"]) == ("older", RUN)
    assert "cannot_be_read" in older.keys() - other.keys()
    assert main(["status", str(trusting)]) == 0
    assert "plans that cannot be read here: 1 of these" in capsys.readouterr().out
    approve(capsys, trusting, "--run", "older", "--no")
    assert {request.run: request.decision for request in approvals(trusting / "private")} == {
        "older": "refused",
        RUN: "awaiting",
    }


@pytest.mark.parametrize(("code", "name"), [("en", "its purpose"), ("de", "sein Zweck"), ("fr", "sa finalité")])
def test_the_terminal_has_the_sheet_in_the_language_that_was_asked_for(trusting, capsys, code, name):
    opened(trusting, plan(2))
    assert name in approve(capsys, trusting, "--list", "--language", code)

"""What has changed since the last approved plan of the same name, in words, for `approve` and for the page."""

import contextlib
import json
import math
from dataclasses import fields, replace

import pytest

from client.approval.changes import NAMES, approved_before, plan_changes
from client.approval.entries import PlanApproval
from client.approval.questions import question_in_words
from client.command import main
from common.domain import UNLABELLED
from common.errors import ConfigError, PlanError
from common.phrases import group_by_four
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from common.queries.histograms import LabelHistogramSpec
from common.queries.votes import VotesSpec
from tests.support.federations import plan
from tests.support.hospital import opened
from tests.support.odd_plans import odd_plans


def entry(run, decision="approved", decided="", agreed=None):
    agreed = agreed or plan(2)
    digest, text = agreed.digest().hex(), agreed.to_json().decode()
    return PlanApproval(run=run, plan_digest=digest, plan=text, decision=decision, decided=decided)


def test_each_field_of_a_plan_is_compared():
    assert {field.name for field in fields(Plan)} == {*NAMES, "labels", "queries"}


def test_the_one_before_is_the_last_approved_run_of_the_same_name():
    now = entry("pilot-33334444", "awaiting")
    first, last = entry("pilot-1", decided="2026-01-01"), entry("pilot-2", decided="2026-02-01")
    others = [entry("other-1"), entry("pilot-3", "refused", "2026-03-01"), now]
    assert approved_before(now, [first, last, *others]) == last
    others[0] = replace(others[0], plan_digest="another")
    assert approved_before(now, others) is None
    assert (
        approved_before(
            entry("unnamed", "awaiting"), [entry("unnamed"), replace(entry("named-1"), plan_digest="other")]
        )
        is None
    )
    older = replace(last, plan=json.dumps(json.loads(last.plan) | {"purpose": 3}))
    assert approved_before(now, [first, older]) is None
    same = entry("other-2", decided="2025-01-01", agreed=plan(2, epsilon=2.0))
    assert approved_before(entry("pilot-4", "awaiting", agreed=plan(2, epsilon=2.0)), [last, same, now]) == same


def altered(agreed):
    """Plans that differ from a plan in one leaf, or in the order of one list."""
    ways = (
        lambda value: value + 1,
        lambda value: value - 1,
        lambda value: value * (1 + 1e-9),
        lambda value: not value,
        lambda value: f"{value} ",
        lambda value: ("ab" if value != "ab" else "cd") * 32,
        lambda value: {"sample": "user", "tight": "paper", "gaussian": "laplace"}[value],
        lambda value: value[::-1],
    )
    for way in ways:
        for _, _, plain in odd_plans(agreed.to_dict(), [way]):
            with contextlib.suppress(ConfigError, PlanError):
                yield Plan.from_dict(plain)


def test_plans_have_no_changes_exactly_if_they_have_the_same_digest():
    queries = tuple(
        PlannedQuery(name=name, spec=spec, scale=5000.0, rate=0.5)
        for name, spec in (("a", VotesSpec(top=4)), ("b", VotesSpec(top=7)), ("c", LabelHistogramSpec(labels=2)))
    )
    settings = {"colluders": 1, "corrupt": 2, "threshold": 5, "queries": queries, "epsilon": math.inf}
    agreed = [plan(7, **settings), plan(7, **settings | {"max_dropouts": 1, "unit": "user"})]
    agreed += [one for start in agreed for one in altered(start)]
    assert {field for one in agreed for field in _other_fields(agreed[0], one)} >= {*NAMES, "labels", "queries"} - {
        "degree",  # depends on `parties`
        "epsilon",  # without noise always infinite
        "secure",
        "parties",
    }
    for one in agreed:
        for other in agreed[:: len(agreed) // 30]:
            clauses = list(plan_changes(one, other))
            assert bool(clauses) == (one.digest() != other.digest())
            assert all(clause.partition(": ")[2] or "no longer" in clause for clause in clauses)


def _other_fields(one, other):
    return [field.name for field in fields(Plan) if getattr(one, field.name) != getattr(other, field.name)]


@pytest.mark.parametrize(
    ("change", "clauses"),
    [
        ({"purpose": "research"}, ["purpose: not stated before, research now"]),
        ({"labels": ("b", "a")}, ["labels: in another order"]),
        ({"labels": ("a", "c")}, ["labels no longer asked for: b", "new labels: c"]),
        ({"labels": (UNLABELLED,)}, ["no labels any more: all records take part, as one population"]),
        ({}, []),
    ],
)
def test_a_change_is_a_clause(change, clauses):
    assert list(plan_changes(plan(2), plan(2, **change))) == clauses


def test_masks_and_small_changes_of_a_number_are_told_apart():
    before = plan(2)
    assert list(plan_changes(plan(2, labels=(UNLABELLED,)), before)) == ["labels, where there were none: a, b"]
    assert "masks: yes before, no now" in list(plan_changes(before, plan(2, secure=False, threshold=1)))
    assert list(plan_changes(before, replace(before, epsilon=before.epsilon + 1e-9))) == [
        "epsilon of all that the run releases: 4.0 before, 4.000000001 now"
    ]
    roster = "ab" * 32
    assert f"digest of the roster: none before, {roster} now" in list(plan_changes(before, plan(2, roster=roster)))


def test_queries_are_compared_by_name():
    votes = PlannedQuery(name="votes", spec=VotesSpec(top=4))
    sizes = PlannedQuery(name="sizes", spec=LabelHistogramSpec(labels=2))
    sums = PlannedQuery(name="votes", spec=ClassSumsSpec(labels=2, directions=9, count=512))
    before = plan(2, queries=(votes,), epsilon=float("inf"))
    more = list(plan_changes(before, replace(before, queries=(*before.queries, sizes))))
    assert more == [f"query sizes is new: it asks {question_in_words(sizes.spec)}"]
    assert list(plan_changes(replace(before, queries=(sizes, votes)), before)) == ["query sizes is no longer asked"]
    assert list(plan_changes(before, replace(before, queries=(sums,)))) == ["query votes: votes before, class sums now"]
    changed = replace(before, queries=(replace(votes, spec=VotesSpec(top=8), times=3),))
    assert list(plan_changes(before, changed)) == ["query votes: top 4 before, 8 now, times 1 before, 3 now"]


def test_the_terminal_says_what_has_changed_and_has_the_digest_in_fours(trusting, capsys):
    opened(trusting, plan(2), "pilot-1")
    main(["approve", str(trusting), "--yes"])
    assert "no earlier run of this name, or of this same plan, was approved here" in capsys.readouterr().out
    opened(trusting, plan(2), "pilot-2")
    opened(trusting, plan(2, epsilon=2.0), "pilot-3")
    main(["approve", str(trusting), "--list"])
    output = capsys.readouterr().out
    assert "changes          since run pilot-1, approved 20" in output
    assert "none: it is this same plan, with the same digest" in output
    assert "- epsilon of all that the run releases: 4 before, 2 now" in output
    assert f"digest           {group_by_four(plan(2).digest().hex())}\n" in output
    main(["approve", str(trusting), "--json"])
    same, other = json.loads(capsys.readouterr().out)
    assert (same["run_before"], same["changes"]) == ("pilot-1", [])
    assert len(other["changes"]) > 1

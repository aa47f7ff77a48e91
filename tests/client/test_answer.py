import math
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from client import answer
from client.records import embed_records
from client.session import RefusalError
from common.errors import RefusedError
from common.ledger.ledger import Ledger
from common.messages import Reason
from common.plan.planned import PlannedQuery
from common.queries.closed_set import digest
from common.queries.votes import VotesSpec
from tests.support.federations import ENCODER, LABELS, OPEN, each_kind, plan, query, records, true_counts


def ask(ledger, agreed, asked, *, private=None, index=0, run="run", limits=OPEN, data_set=""):
    private = records(0) if private is None else private
    mine = embed_records(private, ENCODER).for_plan(LABELS, unit=agreed.unit)
    return answer.answer(
        asked,
        digest=digest(asked),
        run=run,
        index=index,
        plan=agreed,
        records=mine,
        party=answer.Party(ledger=ledger, limits=limits, data_set=data_set, encoder=ENCODER, writers={}),
    )


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.db")


def test_one_share_of_variance_sigma_squared_over_u_from_the_key_in_the_ledger(ledger, monkeypatch):
    agreed = plan(4, max_dropouts=1, colluders=1, threshold=3)
    drawn = []
    monkeypatch.setattr(answer, "discrete_gaussian", lambda *args: drawn.append(args) or np.full(24, 1000))
    noised = ask(ledger, agreed, query())
    assert [call[:2] for call in drawn] == [(agreed.queries[0].scale / math.sqrt(2), 24)]
    assert np.array_equal(noised, true_counts(query(), records(0)) + 1000)


@pytest.mark.parametrize(
    ("kind", "module", "mechanism"),
    [("length range", answer.mechanisms, "length_range"), ("seed choice", answer.seed_choices, "choose_seeds")],
)
def test_a_mechanism_inside_a_party_has_all_of_the_noise_and_a_key_for_each_answer(
    kind, module, mechanism, ledger, monkeypatch
):
    drawn, real = [], getattr(module, mechanism)
    monkeypatch.setattr(module, mechanism, lambda *args, **how: drawn.append(args[-2:]) or real(*args, **how))
    asked = each_kind()[kind]
    own = PlannedQuery(name="own", spec=asked.spec, mechanism=asked.spec.mechanisms[0], times=2)
    agreed = plan(3, queries=(own,))
    for index in range(2):
        ask(ledger, agreed, asked, index=index)
    assert {scale for scale, _ in drawn} == {agreed.queries[0].scale}
    assert len({key for _, key in drawn}) == 2


def test_every_query_and_run_has_noise_of_its_own(ledger, monkeypatch):
    keys = []
    real = answer.discrete_gaussian
    monkeypatch.setattr(answer, "discrete_gaussian", lambda *args: keys.append(args[2]) or real(*args))
    for run in ("run", "walk"):
        for index in range(2):
            ask(ledger, plan(3), query(index), index=index, run=run)
    assert len(set(keys)) == 4


def test_an_answer_that_may_have_left_is_given_again_whatever_became_of_the_records(ledger):
    # With the same noise over other records the difference would be the records' own votes.
    first = ask(ledger, plan(3), query())
    assert np.array_equal(ask(ledger, plan(3), query(), private=records(0)[1:]), first)


@pytest.mark.parametrize(
    ("module", "step"),
    [(answer.contribute, "contribution"), (answer, "discrete_gaussian")],
    ids=["records are touched", "noise is drawn"],
)
def test_the_charge_is_on_disk_before_records_are_touched_or_noise_is_drawn(module, step, ledger, monkeypatch):
    monkeypatch.setattr(module, step, Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        ask(ledger, plan(3), query())
    assert len(Ledger(ledger._path).entries()) == 1


def test_an_interrupted_query_gets_the_same_answer_from_a_new_process(ledger):
    first = ask(ledger, plan(3), query())
    assert np.array_equal(ask(Ledger(ledger._path), plan(3), query()), first)
    assert len(ledger.entries()) == 1


def test_a_query_that_was_followed_by_another_is_closed(ledger):
    ask(ledger, plan(3), query(0))
    ask(ledger, plan(3), query(1), index=1)
    assert [(entry.committed, entry.answer is None) for entry in ledger.entries()] == [(True, True), (False, False)]
    with pytest.raises(RefusedError, match="closed"):
        ask(ledger, plan(3), query(0))


@pytest.mark.parametrize(
    "asked",
    [
        query(top=5),
        replace(query(), labels=np.array([len(LABELS)] + 11 * [0], np.int32)),
        replace(query(), vectors=np.eye(12, 64, dtype=np.float32)),
    ],
    ids=["another number of votes", "a label that the plan lacks", "vectors of another space"],
)
def test_another_query_than_planned_is_refused_and_costs_nothing(asked, ledger):
    with pytest.raises(RefusalError) as caught:
        ask(ledger, plan(3), asked)
    assert caught.value.reason is Reason.UNPLANNED
    assert not ledger.entries()


def test_at_user_level_only_the_first_records_of_the_party_vote(ledger):
    agreed = plan(3, unit="user", spec=VotesSpec(top=4, max_records=2), epsilon=math.inf)
    counts = ask(ledger, agreed, query(max_records=2), private=records(0, 9))
    assert np.array_equal(counts, true_counts(query(max_records=2), records(0, 9)[:2]))


def test_records_beyond_the_rings_bound_cut_counts_off_and_take_no_place_from_others(ledger):
    # At sample level one record more or less must move the answer by its own votes at most, also at the bound.
    agreed = plan(3, epsilon=math.inf, max_records_per_party=3)
    full, most = true_counts(query(), records(0, 30)), agreed.queries[0].spec.largest * 3
    assert full.max() > most
    counts = ask(ledger, agreed, query(), private=records(0, 30))
    assert np.array_equal(counts, np.minimum(full, most))
    less = ask(Ledger(ledger._path.with_name("other.db")), agreed, query(), private=records(0, 30)[1:])
    assert (np.abs(counts - less) <= true_counts(query(), records(0, 1))).all()


def test_closing_erases_earlier_keys_of_this_run_alone(ledger):
    for run in ("run", "walk"):
        for index in range(2):
            ask(ledger, plan(3), query(index), index=index, run=run)
    ledger.commit_before("run", 2)
    assert [(e.run, e.index) for e in ledger.entries() if e.answer] == [("walk", 1)]

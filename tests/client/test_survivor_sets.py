"""Attacks on who is in a sum, by a coordinator with corrupt parties: from two sums a single answer could be read.

The limit `corrupt` says how many of them a hospital fears. A plan that says that there are fewer lets two of six
parties sign for two sets of survivors in one round; a second attempt at a question asks it of other survivors.
"""

from dataclasses import replace

import numpy as np
import pytest

from client.guard import Limits
from client.session import RefusalError
from common.ledger.ledger import Ledger
from common.plan.guarantee import epsilon_alone
from common.queries.votes import VotesSpec
from tests.support.adversary import Adversary, Shown
from tests.support.federations import DECLARED, lenient, plan, query, roster

EVERYBODY = frozenset(range(6))
TOLD = {0: EVERYBODY, 1: EVERYBODY, 2: EVERYBODY - {0}, 3: EVERYBODY - {0}}
"""Parties 0 and 1 unmask the seed of party 0, parties 2 and 3 its mask key; 4 and 5 have both, and sign twice."""


def agreed(parties=6, **changes):
    return plan(parties, **{"max_dropouts": 1, "roster": roster(parties).digest.hex()} | changes)


@pytest.mark.parametrize(("corrupt", "lifted"), [(0, {0}), (2, set())])
def test_with_more_corrupt_parties_than_the_plan_says_an_answer_is_opened(corrupt, lifted, tmp_path):
    adversary = Adversary(tmp_path, 6, corrupt={4, 5}, limits=lenient(malicious_coordinator=True))
    attack = adversary.attack(Shown(agreed(threshold=4, corrupt=corrupt), query())).unmask(TOLD)
    assert attack.lifted() == lifted


def test_the_hospital_and_not_the_plan_says_how_many_there_may_be():
    trusting, wary = (agreed(threshold=4, corrupt=corrupt) for corrupt in (0, 2))
    assert epsilon_alone(trusting) == pytest.approx(10.6, abs=0.3)
    lenient(malicious_coordinator=True).check(trusting, declared=DECLARED)
    with pytest.raises(RefusalError, match="got 0"):
        Limits().check(trusting, declared=DECLARED)
    Limits().check(wary, declared=DECLARED)


@pytest.mark.parametrize("degree", [4, 199])
def test_a_plan_that_says_that_nobody_is_corrupt_is_refused_on_every_graph(degree):
    threshold = 3 if degree == 4 else 101
    settings = {"max_dropouts": 0, "spec": VotesSpec(top=8), "degree": degree, "threshold": threshold, "corrupt": 0}
    with pytest.raises(RefusalError, match="at least 60"):
        Limits().check(agreed(200, **settings), declared=DECLARED)


SIGNED = {"limits": lenient(malicious_coordinator=True, corrupt=0.3)}
TRUSTED = {"limits": lenient(), "signed": False}
MODES = pytest.mark.parametrize("mode", [SIGNED, TRUSTED], ids=["signed", "trusted"])


def shown_twice(mode, **changes):
    """A question and the same question again, as another attempt or as the next answer that the plan has."""
    settings = {"max_attempts": 2, "threshold": 4, "corrupt": 2} | changes
    first = agreed(**settings if mode is SIGNED else settings | {"roster": "", "corrupt": 0})
    return Shown(first, query()), Shown(first, query(), index=1, attempt=1)


@MODES
@pytest.mark.parametrize("again", [{"max_attempts": 2}, {"max_attempts": 1, "times": 2}], ids=["attempt", "answer"])
def test_a_question_that_was_opened_is_opened_over_no_other_parties(again, mode, tmp_path):
    adversary, (first, second) = Adversary(tmp_path, 6, **mode), shown_twice(mode, **again)
    assert adversary.attack(first).unmask().opened() == {EVERYBODY}
    attack = adversary.attack(second).unmask(otherwise=EVERYBODY - {0})
    assert attack.opened() == set()
    assert all("SURVIVORS" in replies for party, replies in adversary.replies.items() if party)
    # Over the same parties it may be opened again: that is one more answer, for which the plan has paid.
    assert [len(paid) for paid in attack.charges.values()] == [2] * 6


@MODES
def test_over_the_same_parties_it_is_answered_again_and_another_question_over_any(mode, tmp_path):
    adversary, (first, second) = Adversary(tmp_path, 6, **mode), shown_twice(mode, times=2)
    assert adversary.attack(first).unmask().opened()
    assert adversary.attack(second).unmask().opened() == {EVERYBODY}
    other = Shown(second.plan, query(1), index=2, attempt=2)
    assert adversary.attack(other).unmask(otherwise=EVERYBODY - {0}).opened() == {EVERYBODY - {0}}


def test_that_a_question_was_opened_outlives_the_service(tmp_path):
    adversary, (first, second) = Adversary(tmp_path, 6, **SIGNED), shown_twice(SIGNED)
    adversary.attack(first).unmask()
    assert [entry.unmasked for entry in Ledger(tmp_path / "party-0.db").entries()] == [True]
    restarted = Adversary(tmp_path, 6, **SIGNED)
    assert restarted.attack(second).unmask(otherwise=EVERYBODY - {0}).opened() == set()


@MODES
def test_attempts_at_an_answer_ask_one_question_to_the_last_bit(mode, tmp_path):
    adversary, (first, second) = Adversary(tmp_path, 6, **mode), shown_twice(mode)
    assert adversary.attack(first).unmask().opened() == {EVERYBODY}
    nudged = first.query.vectors.copy()
    nudged[0, 0] = np.nextafter(nudged[0, 0], 1)
    other = replace(second, query=replace(first.query, vectors=nudged))
    assert adversary.attack(other).unmask(otherwise=EVERYBODY - {0}).words == {}
    assert all(len(paid) == 1 for paid in adversary.attack(other).charges.values())


def test_helpers_cannot_be_a_larger_share_of_the_plan_than_of_the_roster(tmp_path):
    """Two of six may help; of a plan over the first four of the roster, with these two in it, they would be half."""
    adversary = Adversary(tmp_path, 6, corrupt={0, 1}, **SIGNED)
    fewer = plan(4, max_dropouts=0, threshold=3, corrupt=2, roster=roster(6).digest.hex())
    attack = adversary.attack(Shown(fewer, query()))
    assert attack.words == {}
    assert all(set(replies) == {"ROSTER"} for replies in adversary.replies.values())


def test_who_only_signed_may_take_part_in_another_attempt(tmp_path):
    adversary, (first, second) = Adversary(tmp_path, 6, **SIGNED), shown_twice(SIGNED)
    adversary.attack(first).agree()
    assert adversary.attack(second).unmask(otherwise=EVERYBODY - {0}).opened() == {EVERYBODY - {0}}


def test_shares_of_a_few_honest_parties_leave_too_few_to_sign_another_set(tmp_path):
    """Three of nine open the first sum with five corrupt ones; the other six and these five would sign another set."""
    honest, corrupt, few = frozenset(range(9)), frozenset(range(9, 14)), frozenset({0, 1, 2})
    adversary = Adversary(tmp_path, 14, corrupt=corrupt, **SIGNED)
    both = agreed(14, threshold=8, corrupt=5, max_attempts=2)
    assert adversary.attack(Shown(both, query())).agree().unmask(asking=few).reads(honest)
    second = adversary.attack(Shown(both, query(), index=1, attempt=1)).agree(otherwise=(honest | corrupt) - {0})
    assert set(second.signatures) == honest - few
    assert not second.unmask(asking=honest - few).reads(honest - {0})

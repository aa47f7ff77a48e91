"""The attack that a hospital's limit `corrupt` is for: a coordinator and two of six parties open a single answer.

The plan says that nobody is corrupt, so four of six signatures are enough. The corrupt two sign twice: with parties 0
and 1 that all survived, with 2 and 3 that party 0 dropped out. Those unmask its seed, these its mask key.
"""

import pytest

from client.guard import Limits
from client.session import RefusalError
from common.errors import DropoutError
from common.plan.guarantee import epsilon_alone
from common.queries.votes import VotesSpec
from common.secagg import ring, shamir
from common.secagg.keys import KeyPair, Secret, mask_key
from common.secagg.masks import add_masks
from common.secagg.rules import halves, point_of, sign_of_mask, survivors_statement
from tests.support import secagg_rounds
from tests.support.federations import lenient, plan, roster

VICTIM, CORRUPT = 0, (4, 5)
TOLD = {0: frozenset(range(6)), 1: frozenset(range(6)), 2: frozenset(range(1, 6)), 3: frozenset(range(1, 6))}


def open_answer(corrupt):
    """The victim's vector as the coordinator and parties 4 and 5 compute it, with a set-up for so many corrupt ones."""
    setup = secagg_rounds.setup(6, malicious=True, threshold=4, minimum_survivors=5, corrupt=corrupt)
    round_ = secagg_rounds.Run(setup).ready().open()
    total = round_.coordinator._state.get()
    round_.mask()
    pairs = {party: round_.parties[party]._held.take().pairs for party in CORRUPT}

    agreed = {party: round_.parties[party].agree(survivors) for party, survivors in TOLD.items()}
    shares = {}
    for party, (state, _) in agreed.items():
        statement = survivors_statement(total.asked, range(6), TOLD[party])
        signatures = {other: agreed[other][1] for other in agreed if TOLD[other] == TOLD[party]}
        signatures |= {other: secagg_rounds.identity(other).sign(statement) for other in CORRUPT}
        shares[party] = state.unmask(signatures)

    seeds = {point_of(party): shares[party].self_seeds[VICTIM] for party in (0, 1)}
    keys = {point_of(party): shares[party].mask_keys[VICTIM] for party in (2, 3)}
    for party in CORRUPT:
        seeds[point_of(party)], keys[point_of(party)] = halves(pairs[party][VICTIM])
    seed, key = (shamir.combine(by_point, 4, label=total.binding) for by_point in (seeds, keys))
    mask_keys = KeyPair(Secret(key))
    words = round_.masked[VICTIM].copy()
    add_masks(words, [(seed, -1)])
    for peer in range(1, 6):
        key = mask_key(mask_keys, total.publics[peer], total.asked, VICTIM, peer)
        add_masks(words, [(key.reveal(), sign_of_mask(peer, VICTIM))])
    return ring.decode(words), secagg_rounds.vectors(setup, 3)[VICTIM]


def test_with_more_corrupt_parties_than_the_plan_says_an_answer_is_opened():
    opened, true = open_answer(corrupt=0)
    assert (opened == true).all()


def test_with_as_many_as_it_says_too_few_sign():
    with pytest.raises(DropoutError, match="too few parties are left; expected at least 5; got 4"):
        open_answer(corrupt=2)


def test_the_hospital_and_not_the_plan_says_how_many_there_may_be():
    settings = {"max_dropouts": 1, "threshold": 4, "roster": roster(6).digest.hex()}
    trusting, wary = (plan(6, corrupt=corrupt, **settings) for corrupt in (0, 2))
    assert epsilon_alone(trusting) == pytest.approx(10.6, abs=0.3)
    lenient(malicious_coordinator=True).check(trusting)
    with pytest.raises(RefusalError, match="corrupt parties that the signatures allow for; expected at least 2; got 0"):
        Limits().check(trusting)
    Limits().check(wary)


@pytest.mark.parametrize("degree", [4, 199])
def test_a_plan_that_says_that_nobody_is_corrupt_is_refused_on_every_graph(degree):
    threshold = 3 if degree == 4 else 101
    spec = VotesSpec(top=8)
    agreed = plan(200, spec=spec, degree=degree, threshold=threshold, corrupt=0, roster=roster(200).digest.hex())
    with pytest.raises(RefusalError, match="signatures allow for; expected at least 60; got 0"):
        Limits().check(agreed)

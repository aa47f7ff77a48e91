"""Several attempts at one answer: free as long as nobody was named, at full price once one who was named is gone.

Once shares were asked for, the sum over those that were named may be open, and no other set is ever summed.
"""

import numpy as np
import pytest

from common import messages as m
from common import wire
from common.errors import DropoutError
from common.ledger.ledger import Ledger
from common.parcels import parcel_of
from common.plan.guarantee import verify
from common.privacy.accountant import epsilon
from server.planning.guarantee_facts import describe
from tests.support.federations import federation, lenient, plan, query, records, roster, service, true_counts

PARTIES = 4
DEAD, ABSENT = 2, 3
FINITE, INFINITE = 4.0, float("inf")


def world(folder, *, attempts, signed=False, noise=INFINITE, times=2):
    """Four parties of which three are enough, with that many attempts at each of two queries."""
    known = roster(PARTIES) if signed else None
    agreed = plan(
        PARTIES,
        epsilon=noise,
        times=times,
        max_dropouts=1,
        threshold=3,
        max_attempts=attempts,
        roster=known.digest.hex() if known else "",
    )
    return agreed, [service(folder, party, known=known) for party in range(PARTIES)], known


def vanishing(kind, *, dead=(DEAD,), absent=(ABSENT,)):
    """These parties are lost at the first message of that kind: the dead for good, the absent for that set-up."""
    begun = False

    def fault(partition, message):
        nonlocal begun
        envelope = wire.unpack(parcel_of(message.content))
        begun = begun or isinstance(envelope.body, kind)
        gone = partition in dead or (partition in absent and envelope.attempt == 0)
        return () if begun and gone else (message,)

    return {"on_request": fault}


def charges(folder, name):
    return [(entry.index, entry.committed) for entry in Ledger(folder / f"{name}.db").entries()]


def expected(parties, queries):
    return sum(true_counts(queries, records(party)) for party in parties)


def test_a_party_that_dies_after_it_was_named_costs_a_second_charge_and_the_run_goes_on(tmp_path):
    agreed, services, known = world(tmp_path, attempts=2, signed=True)
    parties = federation(tmp_path, services, agreed, known=known, **vanishing(m.AskAgree))
    parties.open()
    answered = parties.ask("votes", 0, query())
    assert (answered.index, answered.survivors) == (1, 3)
    assert np.array_equal(answered.values, expected((0, 1, 3), query()))
    first, second = Ledger(tmp_path / "coordinator.db").entries()
    assert (first.survivors, second.survivors) == ({0, 1, 2, 3}, {0, 1, 3})
    assert charges(tmp_path, "coordinator") == [(0, False), (1, True)]
    for party in (0, 1, 3):
        assert [index for index, _ in charges(tmp_path, f"party-{party}")] == [0, 1]
    assert [index for index, _ in charges(tmp_path, f"party-{DEAD}")] == [0]
    # The next query has numbers of its own.
    assert parties.ask("votes", 1, query(1)).index == 2


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("attempts", [1, 2])
def test_once_shares_were_asked_for_the_run_stops_and_pays_for_no_other_attempt(attempts, signed, tmp_path):
    agreed, services, known = world(tmp_path, attempts=attempts, signed=signed)
    parties = federation(tmp_path, services, agreed, known=known, **vanishing(m.AskUnmask))
    parties.open()
    if attempts == 1:
        with pytest.raises(DropoutError, match="got 2"):
            parties.ask("votes", 0, query())
    with pytest.raises(DropoutError, match=r"got party 0, party 1, party 3"):
        parties.ask("votes", 0, query())
    assert charges(tmp_path, "coordinator") == [(0, False)]
    # A coordinator that forgets what it asked for does not get another sum.
    parties._ledger = Ledger(tmp_path / "forgetful.db")
    with pytest.raises(DropoutError, match="SURVIVORS"):
        parties.ask("votes", 0, query())


def test_the_plan_pays_for_every_attempt(tmp_path):
    agreed, services, known = world(tmp_path, attempts=2, signed=True, noise=FINITE, times=1)
    parties = federation(tmp_path, services, agreed, known=known, **vanishing(m.AskAgree))
    parties.open()
    parties.ask("votes", 0, query())
    spent = describe(agreed, ledger=Ledger(tmp_path / "coordinator.db"), run="run").to_json()["spent"]
    assert spent == {"epsilon": verify(agreed), "queries_asked": 1, "queries_planned": 1}
    assert epsilon(Ledger(tmp_path / "party-0.db").releases(), agreed.delta) == verify(agreed) <= FINITE


def test_an_attempt_that_was_not_needed_is_not_spent(tmp_path):
    agreed, services, known = world(tmp_path, attempts=2, noise=FINITE)
    parties = federation(tmp_path, services, agreed, known=known)
    parties.open()
    assert [parties.ask("votes", nth, query(nth)).index for nth in range(2)] == [0, 2]
    spent = describe(agreed, ledger=Ledger(tmp_path / "coordinator.db"), run="run").to_json()["spent"]
    assert (spent["queries_asked"], spent["queries_planned"]) == (2, 2)
    assert 0.5 * FINITE < spent["epsilon"] < 0.8 * FINITE


@pytest.mark.parametrize("kind", [m.Ask, m.AskUnmask])
def test_what_fails_while_everybody_comes_back_is_asked_again_for_free(kind, tmp_path):
    agreed, services, known = world(tmp_path, attempts=2)
    gone = vanishing(kind, dead=(), absent=(DEAD, ABSENT))
    parties = federation(tmp_path, services, agreed, known=known, **gone)
    parties.open()
    answered = parties.ask("votes", 0, query())
    assert (answered.index, answered.survivors) == (0, 4)
    assert np.array_equal(answered.values, expected(range(4), query()))
    for name in ("coordinator", *(f"party-{party}" for party in range(4))):
        assert [index for index, _ in charges(tmp_path, name)] == [0]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_retry_costs_nothing_and_needs_no_second_attempt(retries, tmp_path):
    agreed, services, known = world(tmp_path, attempts=1)
    gone = vanishing(m.AskUnmask, dead=(), absent=(DEAD, ABSENT))
    parties = federation(tmp_path, services, agreed, known=known, retries=retries, **gone)
    parties.open()
    if not retries:
        with pytest.raises(DropoutError, match="got 2"):
            parties.ask("votes", 0, query())
    answered = parties.ask("votes", 0, query())
    assert (answered.index, answered.survivors) == (0, 4)
    assert np.array_equal(answered.values, expected(range(4), query()))
    for name in ("coordinator", *(f"party-{party}" for party in range(4))):
        assert [index for index, _ in charges(tmp_path, name)] == [0]


def test_an_opening_that_a_silent_party_missed_is_made_again_and_a_refused_one_is_not(tmp_path):
    agreed, services, known = world(tmp_path, attempts=1)
    gone = vanishing(m.AskShares, dead=(), absent=(DEAD, ABSENT))
    parties = federation(tmp_path, services, agreed, known=known, retries=1, **gone)
    parties.open()
    assert parties.ask("votes", 0, query()).survivors == 4

    # A service that was restarted in between knows of no run.
    forgetful = [service(tmp_path, party) for party in range(PARTIES)]

    def forget(partition, message):
        envelope = wire.unpack(parcel_of(message.content))
        if isinstance(envelope.body, m.AskShares) and envelope.attempt == 0 and partition in (DEAD, ABSENT):
            forgetful[partition]._run = None
        return (message,)

    parties = federation(tmp_path, forgetful, agreed, run="forgotten", retries=1, on_request=forget)
    parties.open()
    assert parties._parties.attempt == 1

    strict = [service(tmp_path, party, limits=lenient(queries=())) for party in range(PARTIES)]
    parties = federation(tmp_path, strict, agreed, run="refused", retries=1)
    with pytest.raises(DropoutError, match="OVER_LIMIT"):
        parties.open()
    assert parties._parties.attempt == 0


@pytest.mark.parametrize("attempts", [1, 2])
def test_one_who_was_named_and_missed_an_opening_is_waited_for_before_anything_more_is_paid(attempts, tmp_path):
    agreed, services, known = world(tmp_path, attempts=attempts)
    missed = {1}  # the second set-up

    def fault(partition, message):
        envelope = wire.unpack(parcel_of(message.content))
        first = envelope.attempt == 0 and isinstance(envelope.body, m.AskUnmask) and partition in (DEAD, ABSENT)
        return () if first or (partition == ABSENT and envelope.attempt in missed) else (message,)

    parties = federation(tmp_path, services, agreed, known=known, retries=2, on_request=fault)
    parties.open()
    answered = parties.ask("votes", 0, query())
    assert (answered.index, answered.survivors) == (0, 4)
    for name in ("coordinator", *(f"party-{party}" for party in range(4))):
        assert [index for index, _ in charges(tmp_path, name)] == [0]


def test_a_new_coordinator_goes_on_with_the_next_attempt_and_never_asks_what_was_answered(tmp_path):
    agreed, services, known = world(tmp_path, attempts=2, signed=True)
    # Both are gone for as long as this coordinator lives.
    parties = federation(tmp_path, services, agreed, known=known, **vanishing(m.AskAgree, dead=(DEAD, ABSENT)))
    parties.open()
    with pytest.raises(DropoutError):
        parties.ask("votes", 0, query())
    again = federation(tmp_path, services, agreed, known=known, **vanishing(m.Open))
    with pytest.raises(DropoutError):
        again.open()  # the absent one comes back with the next set-up
    answered = again.ask("votes", 0, query())
    assert (answered.index, answered.survivors) == (1, 3)
    deaf = federation(tmp_path, services, agreed, known=known, on_request=lambda *_: ())
    same = deaf.ask("votes", 0, query())
    assert (same.index, same.survivors) == (1, 3)
    assert np.array_equal(same.values, answered.values)

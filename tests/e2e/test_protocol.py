"""A query through Flower's messages, secure aggregation and real parties: the exact sum of survivors, or a refusal."""

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import messages as m
from common import wire
from common.errors import DropoutError, ProtocolError, RefusedError
from common.ledger.ledger import Ledger
from common.parcels import contents, parcel_of
from common.queries.closed_set import digest
from common.secagg.identity import Identity
from tests.support.federations import federation, plan, query, records, roster, service, true_counts

STEPS = (m.Open, m.AskShares, m.Ask, m.AskUnmask)
SIGNED_STEPS = (m.Open, m.AskShares, m.Ask, m.AskAgree, m.AskUnmask)
NOISELESS = {"epsilon": float("inf")}


def losing(party, kind):
    """A fault that loses this party's messages from the one of this kind on."""
    gone = False

    def fault(partition, message):
        nonlocal gone
        if partition == party:
            envelope = wire.unpack(parcel_of(message.content))
            gone = gone or isinstance(envelope.body, kind)
            return () if gone else (message,)
        return (message,)

    return fault


@pytest.mark.parametrize("secure", [True, False])
@pytest.mark.parametrize("sizes", [(5, 5, 5), (0, 7, 1), (0, 0, 0)])
def test_the_sum_over_parties_is_the_central_count(tmp_path, secure, sizes):
    private = [records(party, size) for party, size in enumerate(sizes)]
    services = [service(tmp_path, party, mine) for party, mine in enumerate(private)]
    agreed = plan(secure=secure, threshold=2 if secure else 1, **NOISELESS)
    parties = federation(tmp_path, services, agreed)
    parties.open()
    for index in range(2):
        request = query(index)
        assert np.array_equal(
            parties.ask("votes", index, request).values, true_counts(request, list(itertools.chain(*private)))
        )
    parties.close()


@pytest.mark.parametrize(
    ("signed", "kind"), [(False, kind) for kind in STEPS] + [(True, kind) for kind in SIGNED_STEPS]
)
@pytest.mark.parametrize("lost", [0, 2])
def test_a_party_that_drops_at_any_step_is_missed_and_nothing_else(tmp_path, signed, kind, lost):
    known = roster(4) if signed else None
    agreed = plan(4, max_dropouts=1, threshold=3, roster=known.digest.hex() if known else "", **NOISELESS)
    services = [service(tmp_path, party, known=known) for party in range(4)]
    parties = federation(tmp_path, services, agreed, known=known, on_request=losing(lost, kind))
    parties.open()
    # Whoever answered before dropping is in the sum: its vector was masked, sent and counted.
    here = [party for party in range(4) if party != lost or kind in (m.AskAgree, m.AskUnmask)]
    expected = sum(true_counts(query(), records(party)) for party in here)
    answered = parties.ask("votes", 0, query())
    assert np.array_equal(answered.values, expected)
    assert answered.survivors == len(here)


def test_a_party_that_missed_one_query_takes_part_in_the_next(tmp_path):
    def away(partition, message):
        envelope = wire.unpack(parcel_of(message.content))
        return () if partition == 2 and isinstance(envelope.body, m.Ask) and envelope.index == 0 else (message,)

    services = [service(tmp_path, party) for party in range(3)]
    parties = federation(tmp_path, services, plan(3, max_dropouts=1, **NOISELESS), on_request=away)
    parties.open()
    for index, here in ((0, (0, 1)), (1, (0, 1, 2))):
        expected = sum(true_counts(query(index), records(party)) for party in here)
        assert np.array_equal(parties.ask("votes", index, query(index)).values, expected)


def test_a_run_is_two_exchanges_and_two_for_each_query_or_three_signed(tmp_path):
    for signed, phases in ((False, 2 + 2 * 2), (True, 2 + 2 * 3)):
        seen = []
        known = roster(3) if signed else None
        folder = tmp_path / str(signed)
        folder.mkdir()
        services = [service(folder, party, known=known) for party in range(3)]
        agreed = plan(3, roster=known.digest.hex() if known else "")
        parties = federation(
            folder, services, agreed, known=known, on_request=lambda p, message, seen=seen: seen.append(p) or (message,)
        )
        parties.open()
        for index in range(2):
            parties.ask("votes", index, query(index))
        assert seen.count(0) == phases


@pytest.mark.parametrize("fault", ["another roster", "no roster", "another identity"])
def test_a_party_with_another_view_of_who_is_who_takes_no_part(tmp_path, fault):
    known = roster(4)
    services = [service(tmp_path, party, known=known) for party in range(3)]
    services.append(service(tmp_path, 3, known={"another roster": roster(5), "no roster": None}.get(fault, known)))
    if fault == "another identity":
        services[3]._identity = Identity(bytes([99]) * 32)
    agreed = plan(4, max_dropouts=1, threshold=3, roster=known.digest.hex(), **NOISELESS)
    parties = federation(tmp_path, services, agreed, known=known)
    parties.open()
    assert np.array_equal(
        parties.ask("votes", 0, query()).values, sum(true_counts(query(), records(party)) for party in range(3))
    )


@pytest.mark.parametrize("kind", STEPS[2:])
def test_more_dropouts_than_planned_give_a_refusal_and_never_a_sum(tmp_path, kind):
    services = [service(tmp_path, party) for party in range(3)]
    parties = federation(tmp_path, services, plan(3, threshold=3, **NOISELESS), on_request=losing(1, kind))
    parties.open()
    with pytest.raises(DropoutError, match="at least 3"):
        parties.ask("votes", 0, query())


LOSSES = st.tuples(*[st.sampled_from([None, *itertools.product(STEPS, ("request", "reply"))])] * 5)


@settings(max_examples=20, deadline=None)
@given(secure=st.booleans(), attempts=st.lists(LOSSES, min_size=1, max_size=3))
def test_whoever_drops_whenever_the_sum_is_exact_or_there_is_none(secure, attempts):
    agreed = plan(5, max_dropouts=2, threshold=3 if secure else 1, secure=secure, **NOISELESS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        services = [service(folder, party) for party in range(5)]
        # The last attempt finds everybody back.
        for losses in (*attempts, (None,) * 5):
            here = named_in(folder)
            parties = federation(folder, services, agreed, **vanishing(losses))
            try:
                parties.open()
                total = parties.ask("votes", 0, query()).values
            except DropoutError:
                assert any(losses)
                continue
            summed = named_in(folder)
            assert here in (None, summed)
            assert len(summed) >= 3
            assert np.array_equal(total, sum(true_counts(query(), records(party)) for party in summed))
            return
        pytest.fail("an honest attempt with everybody there was refused")


@pytest.mark.parametrize("secure", [True, False])
def test_once_parties_were_named_the_sum_is_theirs_or_nobodys(tmp_path, secure):
    agreed = plan(4, max_dropouts=1, threshold=3 if secure else 1, secure=secure, **NOISELESS)
    services = [service(tmp_path, party) for party in range(4)]

    def ask(*losses):
        parties = federation(tmp_path, services, agreed, **vanishing(losses))
        parties.open()
        return parties.ask("votes", 0, query()).values

    if secure:
        lost = (m.AskUnmask, "request")
        with pytest.raises(DropoutError, match="got 2"):
            ask(None, None, lost, lost)
    else:
        Ledger(tmp_path / "coordinator.db").reserve(
            run="run",
            index=0,
            plan_digest=agreed.digest(),
            query_digest=digest(query()),
            release=agreed.answer_release(0),
        )
        Ledger(tmp_path / "coordinator.db").survivors("run", 0, frozenset(range(4)))
    with pytest.raises(DropoutError, match=r"got party 0, party 2, party 3"):
        ask(None, (m.Ask, "reply"), None, None)
    everybody = sum(true_counts(query(), records(party)) for party in range(4))
    assert np.array_equal(ask(None, None, None, None), everybody)


def named_in(folder):
    """The survivors that the coordinator's ledger names, if any."""
    path = folder / "coordinator.db"
    entries = Ledger(path).entries() if path.exists() else ()
    return entries[0].survivors if entries else None


def vanishing(losses):
    """Faults after which each party that has a loss is gone, from its request, or its reply, of that kind on."""
    gone = set()

    def body(message):
        return wire.unpack(parcel_of(message.content)).body

    def request(partition, message):
        loss = losses[partition]
        if loss and isinstance(body(message), loss[0]):
            if loss[1] == "request":
                gone.add(partition)
            else:
                dying.add(partition)
        return () if partition in gone else (message,)

    def reply(partition, message):
        if partition in dying:
            gone.add(partition)
        return () if partition in gone else (message,)

    dying = set()
    return {"on_request": request, "on_reply": reply}


def test_another_question_or_other_survivors_at_the_same_place_are_refused(tmp_path):
    services = [service(tmp_path, party) for party in range(3)]
    agreed = plan(3, max_dropouts=1, threshold=2)
    first = federation(tmp_path, services, agreed)
    first.open()
    first.ask("votes", 0, query(0))

    (tmp_path / "other").mkdir()
    other = federation(tmp_path / "other", services, agreed)
    other.open()
    with pytest.raises(DropoutError, match="OVER_LIMIT"):
        other.ask("votes", 0, query(1))

    (tmp_path / "fewer").mkdir()
    fewer = federation(tmp_path / "fewer", services, agreed, on_request=losing(2, m.Ask))
    fewer.open()
    with pytest.raises(DropoutError):
        fewer.ask("votes", 0, query(0))


def test_a_plan_under_the_same_run_with_another_noise_is_refused(tmp_path):
    services = [service(tmp_path, party) for party in range(3)]
    first = federation(tmp_path, services, plan(3))
    first.open()
    first.ask("votes", 0, query(0))
    (tmp_path / "fresh").mkdir()
    other = federation(tmp_path / "fresh", services, plan(3, epsilon=8.0))
    other.open()
    with pytest.raises(DropoutError, match="OVER_LIMIT"):
        other.ask("votes", 1, query(1))


def test_the_coordinator_refuses_another_plan_for_the_run(tmp_path):
    services = [service(tmp_path, party) for party in range(3)]
    parties = federation(tmp_path, services, plan(3))
    parties.open()
    parties.ask("votes", 0, query(0))
    other = federation(tmp_path, services, plan(3, epsilon=8.0))
    other.open()
    with pytest.raises(RefusedError, match="another plan"):
        other.ask("votes", 1, query(1))


def test_a_query_that_is_not_the_same_for_all_is_worth_nothing(tmp_path):
    # The coordinator asks party 0 about other candidates, to tell its answer from the others'.
    def switch(partition, message):
        envelope = wire.unpack(parcel_of(message.content))
        if partition or not isinstance(envelope.body, m.Ask):
            return (message,)
        (message.content,) = contents([wire.pack(replace(envelope, body=replace(envelope.body, query=query(7))))])
        return (message,)

    services = [service(tmp_path, party) for party in range(3)]
    parties = federation(tmp_path, services, plan(3, **NOISELESS), on_request=switch)
    parties.open()
    with pytest.raises(ProtocolError, match="sum of"):  # masks that did not cancel
        parties.ask("votes", 0, query(0))

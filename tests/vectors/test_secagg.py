"""The golden runs are reproduced byte for byte and add up; every hostile message is refused with its own error."""

import json

import numpy as np
import pytest

from client.secagg import begin
from common import errors
from common.secagg.identity import Roster
from common.secagg.messages import KeyAdvert, UnmaskShares
from server.federation.secagg import collect_adverts
from tests.vectors import generate_secagg as golden

VECTORS = json.loads(golden.PATH.read_text())
RUNS = ["full_graph_malicious", "sparse_semi_honest"]


@pytest.fixture(scope="module")
def made():
    return json.loads(json.dumps(golden.vectors()))


@pytest.mark.parametrize("part", VECTORS)
def test_vectors_are_reproduced(made, part):
    assert made[part] == VECTORS[part]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("index", "survivors"), [(2, [0, 1, 2, 3]), (5, [1, 2, 3, 4])])
def test_the_golden_sum_is_that_of_the_survivors(run, index, survivors):
    one = VECTORS[run]["rounds"][str(index)]
    assert one["survivors"] == survivors
    assert one["sum"] == sum(golden.inputs(index)[party] for party in survivors).tolist()


def test_the_golden_runs_show_both_modes_and_both_graphs():
    full, sparse = (VECTORS[run] for run in RUNS)
    assert (full["mode"], sparse["mode"]) == ("malicious", "semi-honest")
    assert {len(peers) for peers in full["graph"].values()} == {5}
    assert {len(peers) for peers in sparse["graph"].values()} == {4}


@pytest.mark.parametrize("case", VECTORS["hostile"], ids=lambda case: f"{case['to']}: {case['name']}")
def test_hostile_messages_are_refused_with_their_own_error(case):
    with pytest.raises(errors.CaucusError) as caught:
        DELIVER[case["to"]](case["body"])
    assert type(caught.value).__name__ == case["error"]


@pytest.mark.parametrize("to", sorted({case["to"] for case in VECTORS["hostile"]} - {"party, roster", "party, set-up"}))
def test_the_same_messages_unchanged_are_accepted(to):
    DELIVER[to]([0, 1, 2, 3] if to == "party 0, agree" else {})


RUN = golden.Golden(golden.set_up())


def changed(good, body, read):
    """The genuine messages with one replaced, added or, for null, left out."""
    messages = good | {int(party): None if message is None else read(message) for party, message in body.items()}
    return {party: message for party, message in messages.items() if message is not None}


def adverts_to_party(body):
    states, adverts, _ = RUN.advertised()
    states[0].share(changed(adverts, body, advert))


def adverts_to_coordinator(body):
    _, adverts, _ = RUN.advertised()
    collect_adverts(RUN.asked, changed(adverts, body, advert), roster=golden.ROSTER)


def inbox_to_party(body):
    states, sealed, _ = RUN.shared()
    inbox = {sender: texts[0] for sender, texts in sealed.items() if sender != 0}
    states[0].receive(changed(inbox, body, bytes.fromhex), frozenset(sealed))


def shares_to_coordinator(body):
    _, sealed, coordinator = RUN.shared()
    coordinator.collect(changed(sealed, body, by_party))


def survivors_to_party(body):
    states, _ = RUN.ready()
    masked, _ = states[0].mask(2, golden.inputs(2)[0], subject=b"")
    masked.agree(frozenset(body))


def signatures_to_party(body):
    states, signatures, _ = RUN.agreed()
    states[0].unmask(changed(signatures, body, bytes.fromhex))


def signatures_to_coordinator(body):
    _, signatures, coordinator = RUN.agreed()
    coordinator.collect(changed(signatures, body, bytes.fromhex))


def answers_to_coordinator(body):
    answers, coordinator = RUN.unmasking()
    coordinator.combine(changed(answers, body, unmask))


def roster_file(body):
    Roster.from_json(body)


def set_up_and_begin(body):
    aggregation = golden.set_up(parties=tuple(body["parties"]), rounds=tuple(body["rounds"]))
    begin(aggregation, 0, golden.entropy(0), identity=golden.identity(0), roster=golden.ROSTER)


DELIVER = {
    "party 0, share": adverts_to_party,
    "coordinator, advertise": adverts_to_coordinator,
    "party 0, receive": inbox_to_party,
    "coordinator, share": shares_to_coordinator,
    "party 0, agree": survivors_to_party,
    "party 0, unmask": signatures_to_party,
    "coordinator, agree": signatures_to_coordinator,
    "coordinator, unmask": answers_to_coordinator,
    "party, roster": roster_file,
    "party, set-up": set_up_and_begin,
}


def advert(message):
    return KeyAdvert(
        seal_public=bytes.fromhex(message["seal_public"]),
        mask_publics=tuple(bytes.fromhex(key) for key in message["mask_publics"]),
        signature=bytes.fromhex(message["signature"]),
    )


def unmask(message):
    return UnmaskShares(self_seeds=by_party(message["self_seeds"]), mask_keys=by_party(message["mask_keys"]))


def by_party(texts):
    return {int(party): bytes.fromhex(text) for party, text in texts.items()}


def test_a_masked_vector_that_comes_twice_is_refused():
    _, masked, masking = RUN.masked(*RUN.ready(), 2, (0, 1))
    with pytest.raises(errors.ReplayError):
        masking.add(1, masked[1])
    with pytest.raises(errors.ProtocolError, match="uint64"):
        masking.add(2, masked[1][:-1])
    with pytest.raises(errors.PlanError):
        RUN.ready()[0][0].mask(2, np.full(5, 2**62), subject=b"")

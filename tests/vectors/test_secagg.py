"""The golden round is reproduced byte for byte, adds up, and its hostile messages are refused."""

import json

import numpy as np
import pytest

from client.secagg import advertise
from common.errors import ProtocolError
from common.secagg import shamir
from common.secagg.keys import check_public
from tests.vectors import generate_secagg as golden

VECTORS = json.loads(golden.PATH.read_text())


@pytest.mark.parametrize("part", ["primitives", "round_with_dropouts", "hostile"])
def test_vectors_are_reproduced(part):
    made = json.loads(json.dumps(getattr(golden, part)()))
    assert made == VECTORS[{"round_with_dropouts": "round"}.get(part, part)]


def test_the_golden_sum_is_that_of_the_survivors():
    survivors = VECTORS["round"]["survivors"]
    assert survivors == [0, 1, 2]
    assert VECTORS["round"]["sum"] == [sum(golden.inputs()[party][place] for party in survivors) for place in range(4)]


@pytest.mark.parametrize("name", VECTORS["hostile"]["sealed_for_0_from_1"])
def test_hostile_ciphertexts_are_refused(name):
    adverts, states = {}, {}
    for party in golden.context().parties:
        states[party], adverts[party] = advertise(golden.context(), party, golden.entropy(party))
    shared, _ = states[0].share(adverts)
    inbox = {sender: bytes.fromhex(VECTORS["round"]["sealed"][str(sender)]["0"]) for sender in (1, 2, 3)}
    inbox[1] = bytes.fromhex(VECTORS["hostile"]["sealed_for_0_from_1"][name])
    with pytest.raises(ProtocolError, match="party 1"):
        shared.mask(inbox, np.zeros(4, np.int64))


@pytest.mark.parametrize("name", VECTORS["hostile"]["public_keys"])
def test_hostile_keys_are_refused(name):
    with pytest.raises(ProtocolError, match="party 4"):
        check_public(bytes.fromhex(VECTORS["hostile"]["public_keys"][name]), where="party 4, advertise")


@pytest.mark.parametrize("name", VECTORS["hostile"]["shares"])
def test_hostile_shares_are_refused(name):
    with pytest.raises(ProtocolError, match="party 4"):
        shamir.check_shares([bytes.fromhex(VECTORS["hostile"]["shares"][name])], where="party 4, unmask")

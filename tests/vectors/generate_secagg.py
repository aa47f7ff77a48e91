"""Writes secagg.json: one round of secure aggregation, byte for byte, and messages that must be refused.

    python -m tests.vectors.generate_secagg

Another implementation that reproduces the file speaks the same protocol. A change of the file is a change of the
protocol: raise its version in `common/secagg/keys.py`.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from client.secagg import advertise
from common.secagg import shamir
from common.secagg.keys import KeyPair, Secret, mask_key
from common.secagg.masks import keystream
from common.secagg.messages import RoundContext
from server.secagg import collect_adverts

PATH = Path(__file__).with_name("secagg.json")


def main():
    PATH.write_text(json.dumps(vectors(), indent=1) + "\n")


def vectors():
    """The file's contents."""
    return {"primitives": primitives(), "round": round_with_dropouts(), "hostile": hostile()}


def context():
    return RoundContext(
        run="golden", index=2, attempt=1, parties=(0, 1, 2, 3, 7), threshold=3, minimum_survivors=2, length=4
    )


def entropy(party):
    return hashlib.sha256(f"caucus golden {party}".encode()).digest()


def inputs():
    limit = (2**63 - 1) // 5
    return {0: [0, 1, -1, limit], 1: [5, -6, 7, limit], 2: [1000, 0, -1000, limit], 3: [1] * 4, 7: [2] * 4}


def primitives():
    asked = context()
    key = bytes(range(32))
    one, other = (KeyPair(Secret(bytes([number]) * 32)) for number in (1, 2))
    shares = shamir.split(key, 3, [1, 2, 3, 8], entropy("shamir"), label=asked.binding)
    return {
        "binding": asked.binding.hex(),
        "derived": {
            purpose: Secret(key).derive(purpose, asked, 0, 7).reveal().hex()
            for purpose in (
                "mask",
                "seal",
                "own mask key",
                "own seal key",
                "own self-mask seed",
                "own share coefficients",
            )
        },
        "mask_key": mask_key(one, other.public, asked, 7, 0).reveal().hex(),
        "keystream": keystream(key, 64).hex(),
        "shamir": {str(point): share.hex() for point, share in shares.items()},
    }


def round_with_dropouts():
    """Party 7 leaves after advertising, party 3 after sharing, party 2 after sending its vector."""
    asked = context()
    states, adverts, sealed, masked = {}, {}, {}, {}
    for party in asked.parties:
        states[party], adverts[party] = advertise(asked, party, entropy(party))
    coordinator, roster = collect_adverts(asked, adverts)
    for party in (0, 1, 2, 3):
        states[party], sealed[party] = states[party].share(roster)
    coordinator, inboxes = coordinator.collect(sealed)
    for party in (0, 1, 2):
        states[party], masked[party] = states[party].mask(inboxes[party], np.array(inputs()[party], dtype=np.int64))
        coordinator.add(party, masked[party])
    coordinator, survivors = coordinator.close()
    answers = {party: states[party].unmask(survivors) for party in (0, 1, 2)}
    total = coordinator.combine(answers)
    return {
        "adverts": {party: [advert.mask_public.hex(), advert.seal_public.hex()] for party, advert in roster.items()},
        "sealed": {sender: _hex(texts) for sender, texts in sealed.items()},
        "masked": {party: vector.tolist() for party, vector in masked.items()},
        "survivors": sorted(survivors),
        "unmask": {
            party: {"self_seeds": _hex(answer.self_seeds), "mask_keys": _hex(answer.mask_keys)}
            for party, answer in answers.items()
        },
        "sum": total.tolist(),
    }


def hostile():
    """Messages of the round above, changed; each must be refused by the party or the coordinator."""
    asked = context()
    states, adverts, sealed = {}, {}, {}
    for party in asked.parties:
        states[party], adverts[party] = advertise(asked, party, entropy(party))
    for party in (0, 1, 2, 3):
        _, sealed[party] = states[party].share(adverts)
    good = sealed[1][0]
    return {
        "sealed_for_0_from_1": {
            "one bit flipped": (good[:5] + bytes([good[5] ^ 1]) + good[6:]).hex(),
            "truncated": good[:-1].hex(),
            "empty": "",
            "sealed by party 2": sealed[2][0].hex(),
            "sealed for party 2": sealed[1][2].hex(),
            "sent by the receiver": sealed[0][1].hex(),
        },
        "public_keys": {
            "zero": bytes(32).hex(),
            "one": (b"\x01" + bytes(31)).hex(),
            "order 8": "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "order 8, the other": "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
            "p - 1": "ec" + "ff" * 30 + "7f",
            "p": "ed" + "ff" * 30 + "7f",
            "p + 1": "ee" + "ff" * 30 + "7f",
        },
        "shares": {
            "truncated": bytes(63).hex(),
            "too long": bytes(65).hex(),
            "the modulus itself": (shamir.PRIME.to_bytes(4, "little") + bytes(60)).hex(),
            "largest word": "ff" * 64,
        },
    }


def _hex(texts):
    return {party: text.hex() for party, text in texts.items()}


if __name__ == "__main__":
    main()

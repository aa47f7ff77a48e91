"""Writes secagg.json: runs of secure aggregation, byte for byte, and messages that must be refused.

    python -m tests.vectors.generate_secagg

Another implementation that reproduces the file speaks the same protocol. A change of the file is a change of the
protocol: raise its version in `common/secagg/messages.py`.

Each hostile message says to whom it comes at which step of the golden run (malicious mode, round 2), and with which
error it is refused.
"""

import dataclasses
import hashlib
import json
from pathlib import Path

import numpy as np

from client.secagg import begin
from common.secagg import shamir
from common.secagg.identity import Identity, Roster
from common.secagg.keys import KeyPair, Secret, mask_key
from common.secagg.masks import keystream
from common.secagg.messages import AggregationSetup
from common.secagg.rules import advert_statement, check_adverts, round_context, survivors_statement
from server.federation.secagg import collect_adverts
from tests.support.shares import split

PATH = Path(__file__).with_name("secagg.json")
PARTIES = (0, 1, 2, 3, 4, 7)
LOW_ORDER = {
    "zero": bytes(32).hex(),
    "one": (b"\x01" + bytes(31)).hex(),
    "order 8": "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "order 8, the other": "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "p - 1": "ec" + "ff" * 30 + "7f",
    "p": "ed" + "ff" * 30 + "7f",
    "p + 1": "ee" + "ff" * 30 + "7f",
    "p + 1 with the top bit": "ee" + "ff" * 31,
}


def main():
    PATH.write_text(json.dumps(vectors(), indent=1) + "\n")


def vectors():
    """The file's contents."""
    return {
        "primitives": primitives(),
        "full_graph_malicious": Golden(set_up()).run(),
        "sparse_semi_honest": Golden(set_up(degree=4, roster_digest=b"")).run(),
        "hostile": hostile(),
    }


def identity(party):
    return Identity(hashlib.sha256(f"caucus golden identity {party}".encode()).digest())


def entropy(party):
    return hashlib.sha256(f"caucus golden {party}".encode()).digest()


PLAN = hashlib.sha256(b"caucus golden plan").digest()
OTHER_PLAN = hashlib.sha256(b"another golden plan").digest()
ROSTER = Roster({party: identity(party).public for party in PARTIES})


def set_up(**changes):
    fields = {"run": "golden", "attempt": 1, "rounds": (2, 5), "parties": PARTIES, "threshold": 3, "degree": 5}
    fields |= {"minimum_survivors": 2, "corrupt": 0, "plan_digest": PLAN, "roster_digest": ROSTER.digest}
    return AggregationSetup(**fields | changes)


def inputs(index):
    limit = (2**63 - 1) // 6
    small = {0: [0, 1, -1], 1: [5, -6, 7], 2: [1000, 0, -1000], 3: [1, 1, 1], 4: [2, 2, 2], 7: [3, 3, 3]}
    return {party: np.array([*row, limit, index], dtype=np.int64) for party, row in small.items()}


class Golden:
    """One golden run, whose states can be had at each step; party 7 leaves after advertising."""

    def __init__(self, asked):
        self.asked = asked
        self.roster = ROSTER if asked.roster_digest else None

    def begin(self, party):
        me = identity(party) if self.roster else None
        return begin(self.asked, party, entropy(party), identity=me, roster=self.roster)

    def advertised(self):
        states, adverts = {}, {}
        for party in PARTIES:
            states[party], adverts[party] = self.begin(party)
        coordinator, adverts = collect_adverts(self.asked, adverts, roster=self.roster)
        return states, adverts, coordinator

    def shared(self):
        states, adverts, coordinator = self.advertised()
        sealed = {}
        for party in PARTIES[:-1]:
            states[party], sealed[party] = states[party].share(adverts)
        return states, sealed, coordinator

    def ready(self):
        states, sealed, coordinator = self.shared()
        coordinator, inboxes = coordinator.collect(sealed)
        return {party: states[party].receive(inboxes[party], coordinator.sharers) for party in inboxes}, coordinator

    def masked(self, states, coordinator, index, survivors):
        one, masked, coordinator = {}, {}, coordinator.open(index, 5, subject=b"")
        for party in survivors:
            one[party], masked[party] = states[party].mask(index, inputs(index)[party], subject=b"")
            coordinator.add(party, masked[party])
        return one, masked, coordinator

    def agreed(self, index=2, survivors=(0, 1, 2, 3)):
        states, _, coordinator = self.masked(*self.ready(), index, survivors)
        coordinator, survivors = coordinator.close()
        both = {party: states[party].agree(survivors) for party in sorted(survivors)}
        return (
            {party: state for party, (state, _) in both.items()},
            {party: text for party, (_, text) in both.items()},
            coordinator,
        )

    def unmasking(self, index=2, survivors=(0, 1, 2, 3)):
        states, signatures, coordinator = self.agreed(index, survivors)
        coordinator, signatures = coordinator.collect(signatures)
        return {party: state.unmask(signatures) for party, state in states.items()}, coordinator

    def run(self):
        """Everything that crosses the wire: party 4 drops in the first round, party 0 in the second."""
        states, adverts, _ = self.advertised()
        transcript, graph = check_adverts(self.asked, adverts, self.roster, "golden")
        _, sealed, _ = self.shared()
        parties, coordinator = self.ready()
        rounds = {}
        for index, survivors in ((2, (0, 1, 2, 3)), (5, (1, 2, 3, 4))):
            states, masked, masking = self.masked(parties, coordinator, index, survivors)
            agreeing, named = masking.close()
            both = {party: states[party].agree(named) for party in survivors}
            unmasking, signatures = agreeing.collect({party: text for party, (_, text) in both.items()})
            answers = {party: state.unmask(signatures) for party, (state, _) in both.items()}
            rounds[index] = {
                "masked": {party: vector.tolist() for party, vector in masked.items()},
                "survivors": sorted(named),
                "signatures": _hex(signatures),
                "unmask": {party: _unmask(answer) for party, answer in answers.items()},
                "sum": unmasking.combine(answers).tolist(),
            }
        return {
            "mode": self.asked.mode,
            "binding": self.asked.binding.hex(),
            "adverts": {party: _advert(advert) for party, advert in adverts.items()},
            "transcript": transcript.hex(),
            "graph": {party: sorted(peers) for party, peers in sorted(graph.items())},
            "sealed": {sender: _hex(texts) for sender, texts in sealed.items()},
            "rounds": rounds,
        }


def primitives():
    key = bytes(range(32))
    binding = round_context(set_up().binding, 2)
    one, other = (KeyPair(Secret(bytes([number]) * 32)) for number in (1, 2))
    shares = split(key, 3, [1, 2, 3, 8], entropy("shamir"), label=binding)
    purposes = ("mask", "seal", "own mask key", "own seal key", "own self-mask seed", "own share coefficients")
    return {
        "roster": ROSTER.digest.hex(),
        "set-up": set_up().binding.hex(),
        "round": binding.hex(),
        "survivors statement": survivors_statement(binding, {0, 1, 2}, {0, 2}).hex(),
        "derived": {purpose: Secret(key).derive(purpose, binding, 0, 7).reveal().hex() for purpose in purposes},
        "mask_key": mask_key(one, other.public, binding, 7, 0).reveal().hex(),
        "keystream": keystream(key, 64).hex(),
        "shamir": {str(point): share.hex() for point, share in shares.items()},
    }


def hostile():
    """Every case: to whom, what, and the error."""
    return [*_hostile_adverts(), *_hostile_inboxes(), *_hostile_survivors(), *_hostile_answers(), *_hostile_files()]


def _hostile_adverts():
    golden = Golden(set_up())
    _, adverts, _ = golden.advertised()
    good = adverts[1]
    later = Golden(set_up(attempt=2)).begin(1)[1]

    def signed(advert, party=1, asked=golden.asked, signer=1):
        return dataclasses.replace(advert, signature=identity(signer).sign(advert_statement(asked, party, advert)))

    cases = {
        f"low order to seal: {name}": (
            "PublicKeyError",
            signed(dataclasses.replace(good, seal_public=bytes.fromhex(key))),
        )
        for name, key in LOW_ORDER.items()
    } | {
        f"low order to mask: {name}": (
            "PublicKeyError",
            signed(dataclasses.replace(good, mask_publics=(good.mask_publics[0], bytes.fromhex(key)))),
        )
        for name, key in LOW_ORDER.items()
    }
    cases |= {
        "keys of party 0": ("PublicKeyError", signed(dataclasses.replace(good, mask_publics=adverts[0].mask_publics))),
        "one key for two rounds": (
            "PublicKeyError",
            signed(dataclasses.replace(good, mask_publics=good.mask_publics[:1] * 2)),
        ),
        "no key for the last round": (
            "PublicKeyError",
            signed(dataclasses.replace(good, mask_publics=good.mask_publics[:1])),
        ),
        "rounds swapped": ("SignatureError", dataclasses.replace(good, mask_publics=good.mask_publics[::-1])),
        "no signature": ("SignatureError", dataclasses.replace(good, signature=b"")),
        "truncated signature": ("SignatureError", dataclasses.replace(good, signature=good.signature[:-1])),
        "one bit of the signature flipped": (
            "SignatureError",
            dataclasses.replace(good, signature=_flipped(good.signature)),
        ),
        "signed by party 2": ("SignatureError", signed(good, signer=2)),
        "signed as party 2": ("SignatureError", signed(good, party=2)),
        "signed for the next attempt": ("SignatureError", signed(good, asked=set_up(attempt=2))),
        "signed for a lower threshold": ("SignatureError", signed(good, asked=set_up(threshold=2))),
        "signed for another plan": ("SignatureError", signed(good, asked=set_up(plan_digest=OTHER_PLAN))),
        "replayed from the next attempt": ("SignatureError", later),
        "the coordinator's own keys": ("SignatureError", dataclasses.replace(later, signature=good.signature)),
    }
    for name, (error, advert) in cases.items():
        for to in ("party 0, share", "coordinator, advertise"):
            yield _case(to, name, error, {"1": _advert(advert)})
    for to in ("party 0, share", "coordinator, advertise"):
        yield _case(to, "a party that was not asked", "MembershipError", {"9": _advert(good)})
    yield _case(
        "party 0, share",
        "its own keys replaced",
        "PublicKeyError",
        {"0": _advert(Golden(set_up(attempt=2)).begin(0)[1])},
    )


def _hostile_inboxes():
    golden = Golden(set_up())
    _, sealed, _ = golden.shared()
    _, later, _ = Golden(set_up(attempt=2)).shared()
    _, other, _ = Golden(set_up(rounds=(2, 6))).shared()
    _, planned, _ = Golden(set_up(plan_digest=OTHER_PLAN)).shared()
    good = sealed[1][0]
    cases = {
        "one bit flipped": _flipped(good),
        "truncated": good[:-1],
        "empty": b"",
        "too long": good + b"\0",
        "sealed by party 2": sealed[2][0],
        "sealed for party 2": sealed[1][2],
        "sent by the receiver": sealed[0][1],
        "sealed for the next attempt": later[1][0],
        "sealed for other rounds": other[1][0],
        "sealed under another plan": planned[1][0],
    }
    for name, text in cases.items():
        yield _case("party 0, receive", name, "SealError", {"1": text.hex()})
    yield _case("party 0, receive", "from a party that did not share", "MembershipError", {"7": good.hex()})
    yield _case("party 0, receive", "from itself", "MembershipError", {"0": good.hex()})
    yield _case("party 0, receive", "kept back", "MembershipError", {"1": None})
    yield _case("coordinator, share", "truncated", "SealError", {"1": _hex(sealed[1] | {0: good[:-1]})})
    yield _case("coordinator, share", "a neighbour left out", "MembershipError", {"1": _hex({0: good})})
    yield _case("coordinator, share", "from a party that was not asked", "MembershipError", {"9": _hex(sealed[1])})


def _hostile_survivors():
    golden = Golden(set_up())
    _, good, _ = golden.agreed()
    _, fewer, _ = golden.agreed(survivors=(0, 1, 2, 4))
    _, replayed, _ = golden.agreed(index=5)
    _, later, _ = Golden(set_up(attempt=2)).agreed()
    _, planned, _ = Golden(set_up(plan_digest=OTHER_PLAN)).agreed()
    binding = round_context(check_adverts(golden.asked, golden.advertised()[1], ROSTER, "golden")[0], 2)
    sharers = {0, 1, 2, 3}
    for name, error, survivors in (
        ("without the receiver", "MembershipError", [1, 2, 3, 4]),
        ("one that never shared", "MembershipError", [0, 1, 2, 7]),
        ("one that was not asked", "MembershipError", [0, 1, 2, 9]),
        ("too few", "DropoutError", [0, 1, 2]),
    ):
        yield _case("party 0, agree", name, error, survivors)
    cases = {
        "over other survivors": fewer[1],
        "over other sharers": identity(1).sign(survivors_statement(binding, sharers, sharers)),
        "of another round": replayed[1],
        "of another attempt": later[1],
        "under another plan": planned[1],
        "by party 2": good[2],
        "one bit flipped": _flipped(good[1]),
        "truncated": good[1][:-1],
        "empty": b"",
    }
    for name, text in cases.items():
        for to in ("party 0, unmask", "coordinator, agree"):
            yield _case(to, name, "SignatureError", {"1": text.hex()})
    for to in ("party 0, unmask", "coordinator, agree"):
        yield _case(to, "by one that dropped", "MembershipError", {"4": fewer[4].hex()})
        yield _case(to, "too few", "DropoutError", {"1": None})


def _hostile_answers():
    golden = Golden(set_up())
    answers, _ = golden.unmasking()
    good, replayed = _unmask(answers[1]), _unmask(golden.unmasking(index=5)[0][1])
    later = _unmask(Golden(set_up(attempt=2)).unmasking()[0][1])
    planned = _unmask(Golden(set_up(plan_digest=OTHER_PLAN)).unmasking()[0][1])
    seeds, keys = good["self_seeds"], good["mask_keys"]
    modulus = shamir.PRIME.to_bytes(4, "little").hex()
    cases = {
        "of another round": ("ShareError", replayed),
        "of another attempt": ("ShareError", later),
        "under another plan": ("ShareError", planned),
        "of party 2": ("ShareError", _unmask(answers[2])),
        "seeds of two parties swapped": ("ShareError", good | {"self_seeds": seeds | {0: seeds[2], 2: seeds[0]}}),
        "a mask key in place of a seed": ("ShareError", good | {"self_seeds": seeds | {0: keys[4]}}),
        "truncated": ("ShareError", good | {"self_seeds": seeds | {0: seeds[0][:-2]}}),
        "too long": ("ShareError", good | {"mask_keys": {4: keys[4] + "00"}}),
        "the modulus itself": ("ShareError", good | {"self_seeds": seeds | {0: modulus + seeds[0][8:]}}),
        "the largest word": ("ShareError", good | {"self_seeds": seeds | {0: "ff" * 64}}),
        "one number changed": ("ShareError", good | {"mask_keys": {4: "00" * 64}}),
        "a seed of the dropped": ("MembershipError", {"self_seeds": seeds | keys, "mask_keys": {}}),
        "no mask key of the dropped": ("MembershipError", good | {"mask_keys": {}}),
        "both kinds for one party": ("ProtocolError", good | {"self_seeds": seeds | keys}),
    }
    for name, (error, answer) in cases.items():
        yield _case("coordinator, unmask", name, error, {"1": answer})
    yield _case("coordinator, unmask", "by one that dropped", "MembershipError", {"4": good})
    yield _case("coordinator, unmask", "too few", "DropoutError", {"1": None, "2": None})


def _hostile_files():
    key, other = ROSTER.keys[0].hex(), ROSTER.keys[1].hex()
    for name, text in {
        "a party twice": f'{{"0": "{key}", "0": "{other}"}}',
        "one key for two parties": f'{{"0": "{key}", "1": "{key}"}}',
        "a short key": f'{{"0": "{key[:-2]}"}}',
        "a list": f'[["0", "{key}"]]',
        "no JSON": key,
    }.items():
        yield _case("party, roster", name, "ConfigError", text)
    fields = {"parties": list(PARTIES), "rounds": [2, 5]}
    for name, error, changes in (
        ("a party twice", "ConfigError", {"parties": [0, 0, 1, 2, 3, 4]}),
        ("a round twice", "ConfigError", {"rounds": [2, 2]}),
        ("a party that is not on the roster", "MembershipError", {"parties": [0, 1, 2, 3, 4, 8]}),
    ):
        yield _case("party, set-up", name, error, fields | changes)


def _case(to, name, error, body):
    return {"to": to, "name": name, "error": error, "body": body}


def _flipped(text):
    return text[:5] + bytes([text[5] ^ 1]) + text[6:]


def _hex(texts):
    return {party: text.hex() for party, text in texts.items()}


def _advert(advert):
    return {
        "seal_public": advert.seal_public.hex(),
        "mask_publics": [key.hex() for key in advert.mask_publics],
        "signature": advert.signature.hex(),
    }


def _unmask(answer):
    return {"self_seeds": _hex(answer.self_seeds), "mask_keys": _hex(answer.mask_keys)}


if __name__ == "__main__":
    main()

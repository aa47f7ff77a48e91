"""The coordinator's side of secure aggregation: it sums vectors that it cannot read. No I/O, no clock.

`client/secagg.py` mirrors it step by step; `common/secagg/__init__.py` has the threat model.

    once:            collect_adverts -> Sharing.collect -> Ready
    for each round:  Ready.open -> Masking.add, ..., Masking.close -> Agreeing.collect -> Unmasking.combine

1. Advertise. Collect the parties' public keys (U1); broadcast them.
2. Share. Collect the ciphertexts that each party made for each neighbour (U2 of U1); hand each receiver its own, and
   the list of U2, with the first round's query. The shares stay sealed, and this side stores none of them.
3. Mask. Add the masked vectors of U2 as they arrive. Closing fixes the survivors (U3); a later vector is refused, and
   would be useless: its self-mask stays on. A party that missed one round can take part in the next.
4. Agree. In malicious mode collect the survivors' signatures over U2 and U3 and hand out enough of them; in semi-honest
   mode there is nothing to collect and no exchange.
5. Unmask. From shares of t of its holders recover each survivor's self-mask seed and each dropped party's mask key
   (dropped: in U2, not in U3). Take each survivor's PRG(b), and each mask between a survivor and a dropped neighbour,
   off the total: what is left is Σ x over U3 modulo 2^64, read as signed.

A party may drop at any step. Too few left for the threshold, the planned noise or the signatures is a DropoutError;
nothing ever returns the sum of fewer parties. Damaged shares cannot make a wrong sum: recovered seeds carry a checksum
of this round, and recovered mask keys must belong to the public keys that were advertised.

This side learns who took part, who dropped when, and Σ x over the survivors. It is the untrusted side: all checks here
serve the coordinator itself, to name and exclude offenders; the checks that protect a party are in the party's code.

A transition that raises leaves its state unchanged, so that the coordinator can exclude the offender and try again; one
that succeeds spends it. After a restart the coordinator sets up the remaining rounds anew, with the next attempt.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from common.domain import PartyId
from common.errors import ProtocolError, PublicKeyError, ReplayError
from common.secagg import ring, shamir
from common.secagg.identity import Roster, check_roster
from common.secagg.keys import KeyPair, Secret, mask_key
from common.secagg.masks import Sign, add_masks
from common.secagg.messages import AggregationSetup, KeyAdvert, SealedShares, UnmaskShares
from common.secagg.once import Once, OnceEach
from common.secagg.rules import (
    Graph,
    about,
    check_adverts,
    check_enough,
    check_exactly,
    check_members,
    check_sealed,
    check_signatures,
    of_round,
    point_of,
    sign_of_mask,
    survivors_statement,
)


def collect_adverts(
    setup: AggregationSetup, adverts: Mapping[PartyId, KeyAdvert], *, roster: Roster | None = None
) -> tuple["Sharing", dict[PartyId, KeyAdvert]]:
    """Step 1: the keys of the parties that answered.

    Args:
        setup: As every party makes it for itself.
        adverts: Party to its keys.
        roster: The parties' identities; None in semi-honest mode.

    Returns:
        The next state; and the keys to broadcast to the same parties.

    Raises:
        MembershipError: If a party is not in the set-up, or not on the roster.
        PublicKeyError: If a key is of low order or not its owner's alone.
        SignatureError: If a party did not sign its keys.
        DropoutError: If too few answered.
    """
    check_roster(setup, roster)
    transcript, graph = check_adverts(setup, adverts, roster, "advertise")
    keys = dict(sorted(adverts.items()))
    common = _Common(setup=setup, roster=roster, transcript=transcript, adverts=keys, graph=graph)
    return Sharing(common), dict(keys)


class Sharing:
    """After step 1: waits for the sealed shares of the parties that advertised."""

    __slots__ = ("_held",)

    def __init__(self, common: "_Common") -> None:
        self._held = Once(common, step="share")

    def collect(self, shares: Mapping[PartyId, SealedShares]) -> tuple["Ready", dict[PartyId, dict[PartyId, bytes]]]:
        """Step 2: sort the ciphertexts by receiver.

        Args:
            shares: Sender to receiver to ciphertext.

        Returns:
            The next state; and receiver to sender to ciphertext, among the parties that shared.

        Raises:
            MembershipError: If a sender did not advertise, or its receivers are not just its neighbours.
            SealError: If it sent what cannot be a ciphertext.
            DropoutError: If too few shared, in all or around one of them.
        """
        common = self._held.get()
        setup, graph = common.setup, common.graph
        check_members("share", shares, graph)
        for sender, sealed in shares.items():
            check_exactly(f"party {sender}, share", sealed, graph[sender])
            for text in sealed.values():
                check_sealed(setup, text, where=f"party {sender}, share")
        check_enough("share", len(shares), setup.quorum)
        sharers = frozenset(shares)
        for party in sharers:
            check_enough(f"party {party}, share, neighbours", len(graph[party] & sharers) + 1, setup.threshold)

        self._held.take()
        inboxes = {
            receiver: {sender: shares[sender][receiver] for sender in sorted(graph[receiver] & sharers)}
            for receiver in sorted(sharers)
        }
        return Ready(common, sharers), inboxes


class Ready:
    """After the set-up: each round can be opened once, in ascending order; rounds may be skipped.

    Attributes:
        sharers: U2, to be sent to each of them with its inbox.
    """

    __slots__ = ("_common", "_rounds", "sharers")

    def __init__(self, common: "_Common", sharers: frozenset[PartyId]) -> None:
        self.sharers = sharers
        self._common = common
        self._rounds = OnceEach({index: place for place, index in enumerate(common.setup.rounds)}, step="open")

    def open(self, index: int, length: int, *, subject: bytes = b"") -> "Masking":
        """Begin a round.

        Args:
            index: The round.
            length: Words in each vector.
            subject: Digest of the query; every party must have been asked the same one.

        Raises:
            ReplayError: If this round, or a later one, was opened before.
            ProtocolError: If the set-up has no such round.
        """
        place = self._rounds.take(index)
        binding = of_round(self._common.transcript, index)
        return Masking(
            _Total(
                common=self._common,
                binding=binding,
                asked=about(binding, subject),
                publics={party: self._common.adverts[party].mask_publics[place] for party in sorted(self.sharers)},
                words=np.zeros(length, dtype=np.uint64),
            )
        )


class Masking:
    """A round has begun: masked vectors are added as they arrive, so that one vector's memory serves any number."""

    __slots__ = ("_held",)

    def __init__(self, held: "_Total") -> None:
        self._held = Once(held, step="mask")

    def add(self, party: PartyId, vector: NDArray[np.uint64]) -> None:
        """Step 3: one party's masked vector, (length,) uint64.

        Raises:
            MembershipError: If the party never shared.
            ReplayError: If it was counted already, or comes after the close.
            ProtocolError: If the vector has another shape or type. The total is then as it was.
        """
        held = self._held.get()
        check_members("mask", {party}, held.publics)
        where = f"party {party}, mask"
        if party in held.survivors:
            raise ReplayError("masked vector", expected="one", got="a second one", where=where)
        if not isinstance(vector, np.ndarray) or vector.dtype != np.uint64 or vector.shape != held.words.shape:
            got = (vector.dtype, vector.shape) if isinstance(vector, np.ndarray) else type(vector).__name__
            raise ProtocolError("masked vector", expected=f"uint64 of {held.words.shape}", got=got, where=where)
        ring.add_into(held.words, vector)
        held.survivors.add(party)

    def close(self) -> tuple["Agreeing", frozenset[PartyId]]:
        """End of step 3: who survived.

        Returns:
            The next state; and the survivors, to be sent to each of them.

        Raises:
            DropoutError: If too few vectors arrived. More can still be added.
        """
        held = self._held.get()
        check_enough("mask", len(held.survivors), held.common.setup.quorum)
        self._held.take()
        return Agreeing(held), frozenset(held.survivors)


class Agreeing:
    """After step 3: the survivors are known to the coordinator."""

    __slots__ = ("_held",)

    def __init__(self, held: "_Total") -> None:
        self._held = Once(held, step="agree")

    def collect(self, signatures: Mapping[PartyId, bytes]) -> tuple["Unmasking", dict[PartyId, bytes]]:
        """Step 4: the signatures over the survivors that a party requires.

        Args:
            signatures: Survivor to its signature; empty in semi-honest mode.

        Returns:
            The next state; and the signatures to be sent to each survivor.

        Raises:
            MembershipError: If a signer did not survive.
            SignatureError: If a signature does not hold.
            DropoutError: If too few signed.
        """
        held = self._held.get()
        setup = held.common.setup
        statement = survivors_statement(held.asked, held.publics.keys(), held.survivors)
        check_signatures(setup, held.common.roster, statement, held.survivors, signatures)
        self._held.take()
        return Unmasking(held), dict(sorted(signatures.items())[: setup.signers])


class Unmasking:
    """After step 4: the total is complete and still masked."""

    __slots__ = ("_held",)

    def __init__(self, held: "_Total") -> None:
        self._held = Once(held, step="unmask")

    def combine(self, shares: Mapping[PartyId, UnmaskShares]) -> NDArray[np.int64]:
        """Step 5: remove the masks.

        Args:
            shares: Survivor to the shares that it revealed.

        Returns:
            (length,) int64, the exact sum of the survivors' vectors.

        Raises:
            MembershipError: If a party did not survive, or revealed other shares than requested.
            ShareError: If a share is malformed, or shares do not fit together.
            PublicKeyError: If a recovered mask key is not the advertised one.
            DropoutError: If fewer than threshold of a party's holders answered.
        """
        held = self._held.get()
        graph, survivors = held.common.graph, frozenset(held.survivors)
        dropped = held.publics.keys() - survivors
        check_members("unmask", shares, survivors)
        for party, given in shares.items():
            where = f"party {party}, unmask"
            owners = graph[party] | {party}
            check_exactly(f"{where}, seeds of survivors", given.self_seeds, owners & survivors)
            check_exactly(f"{where}, mask keys of the dropped", given.mask_keys, owners & dropped)
            shamir.check_shares([*given.self_seeds.values(), *given.mask_keys.values()], where=where)
        seeds = _recover(held, {party: given.self_seeds for party, given in shares.items()}, survivors)
        keys = _recover(held, {party: given.mask_keys for party, given in shares.items()}, dropped)
        pairs = {party: KeyPair(secret) for party, secret in keys.items()}
        for party, pair in pairs.items():
            if pair.public != held.publics[party]:
                raise PublicKeyError(
                    "mask key", expected="the advertised one", got="another", where=f"party {party}, unmask"
                )

        self._held.take()
        add_masks(held.words, ((seed.reveal(), -1) for seed in seeds.values()))
        add_masks(held.words, _left_over(held, pairs))
        return ring.decode(held.words)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Common:
    """Values shared by all rounds of a set-up."""

    setup: AggregationSetup
    roster: Roster | None
    transcript: bytes
    adverts: Mapping[PartyId, KeyAdvert]
    graph: Graph


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Total:
    """One round: the mask keys of U2, the sum so far, and who is in it."""

    common: _Common
    binding: bytes
    asked: bytes
    publics: Mapping[PartyId, bytes]
    words: NDArray[np.uint64]
    survivors: set[PartyId] = field(default_factory=set)


def _left_over(held: _Total, pairs: Mapping[PartyId, KeyPair]) -> Iterator[tuple[bytes, Sign]]:
    """Key and sign of each mask that a dropped party would have added; it cancels the mask of its surviving peer."""
    for party, pair in pairs.items():
        for peer in held.common.graph[party] & held.survivors:
            key = mask_key(pair, held.publics[peer], held.asked, party, peer)
            yield key.reveal(), sign_of_mask(party, peer)


def _recover(
    held: _Total, shares: Mapping[PartyId, Mapping[PartyId, bytes]], owners: Collection[PartyId]
) -> dict[PartyId, Secret]:
    """Owner to its secret, recovered from its holders' shares (holder to owner to share)."""
    threshold = held.common.setup.threshold
    # Owners whose shares lie with the same parties have one Lagrange basis: on the full graph, all of them.
    groups: defaultdict[tuple[PartyId, ...], dict[str, dict[int, bytes]]] = defaultdict(dict)
    names = {f"party {owner}, unmask": owner for owner in sorted(owners)}
    for name, owner in names.items():
        holders = sorted((held.common.graph[owner] | {owner}) & shares.keys())
        check_enough(f"{name}, holders of its shares", len(holders), threshold)
        used = tuple(holders[:threshold])
        groups[used][name] = {point_of(holder): shares[holder][owner] for holder in used}
    return {
        names[name]: Secret(secret)
        for group in groups.values()
        for name, secret in shamir.combine_many(group, threshold, label=held.binding).items()
    }

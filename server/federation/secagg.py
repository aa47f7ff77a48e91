"""The coordinator's side of secure aggregation, which sums vectors that it cannot read. It uses no I/O and no clock.

`client/secagg.py` mirrors it step by step; `common/secagg/__init__.py` describes the threat model.

    once:            collect_adverts -> Sharing.collect -> Ready
    for each round:  Ready.open -> Masking.add, ..., Masking.close -> Agreeing.collect -> Unmasking.combine

1. Advertise. Collect the parties' public keys and broadcast them; U1 is the set of these parties.
2. Share. Collect the ciphertexts that each party made for each of its neighbours; U2 is the subset of U1 that did so.
   Send each receiver its own ciphertexts, and the list of U2, with the first round's query. The shares stay sealed, and
   this side stores none of them.
3. Mask. Add the masked vectors of U2 as they arrive. Closing fixes the survivors (U3). A later vector is rejected; it
   would be useless, since its self-mask is never removed. A party that missed one round can take part in the next.
4. Agree. In malicious mode, collect the survivors' signatures over U2 and U3, and send enough of them to each survivor.
   In semi-honest mode there is nothing to collect, and no exchange.
5. Unmask. Recover each survivor's self-mask seed b, and the mask key of each dropped party (in U2, not in U3), from the
   shares of t holders, where t is the threshold. Subtract each survivor's PRG(b), and each mask between a survivor and
   a dropped neighbour, from the total: the result is Σ x over U3 modulo 2^64, read as signed.

A party may drop out at any step. If too few are left for the threshold, the planned noise or the signatures, a
DropoutError is raised; nothing ever returns the sum of fewer parties. Corrupted shares cannot make a wrong sum:
recovered seeds carry a checksum of this round, and recovered mask keys must belong to the public keys that were
advertised.

This side learns who took part, who dropped when, and Σ x over the survivors. It is the untrusted side: all checks here
serve the coordinator itself, which names and excludes offenders; the checks that protect a party are in the party's
code.

A transition that raises an error leaves its state unchanged, so that the coordinator can exclude the offender and try
again. A transition that succeeds consumes its state. After a restart the coordinator sets up the remaining rounds
again, with the next attempt.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from common.domain import PartyId
from common.errors import ProtocolError, PublicKeyError, ReplayError
from common.phrases import NumberedParty, Phrase
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
    point_of,
    round_context,
    sign_of_mask,
    survivors_statement,
)


def collect_adverts(
    setup: AggregationSetup, adverts: Mapping[PartyId, KeyAdvert], *, roster: Roster | None
) -> tuple["Sharing", dict[PartyId, KeyAdvert]]:
    """Check the keys of the parties that answered (step 1).

    Args:
        setup: The set-up, which every party also derives for itself.
        adverts: The public keys of each party, keyed by party.
        roster: The parties' identities; None in semi-honest mode.

    Returns:
        The next state, and the keys to broadcast to the same parties.

    Raises:
        MembershipError: If a party is not in the set-up, or not on the roster.
        PublicKeyError: If a key is of low order, or not unique.
        SignatureError: If a party did not sign its keys.
        DropoutError: If too few parties answered.
    """
    check_roster(setup, roster)
    transcript, graph = check_adverts(setup, adverts, roster, "advertise")
    keys = dict(sorted(adverts.items()))
    common = _Common(setup=setup, roster=roster, transcript=transcript, adverts=keys, graph=graph)
    return Sharing(common), dict(keys)


class Sharing:
    """The state after step 1, which waits for the sealed shares of the parties that advertised."""

    __slots__ = ("_state",)

    def __init__(self, common: "_Common") -> None:
        self._state = Once(common, step="share")

    def collect(
        self, shares: Mapping[PartyId, SealedShares]
    ) -> tuple["ReadyAggregation", dict[PartyId, dict[PartyId, bytes]]]:
        """Sort the ciphertexts by receiver (step 2).

        Args:
            shares: Ciphertexts, keyed by sender and then receiver.

        Returns:
            The next state, and the ciphertexts between parties that shared, keyed by receiver and then sender.

        Raises:
            MembershipError: If a sender did not advertise, or its receivers are not exactly its neighbours.
            SealError: If a sender sent something that cannot be a ciphertext.
            DropoutError: If too few parties shared, overall or among the neighbours of one of them.
        """
        common = self._state.get()
        setup, graph = common.setup, common.graph
        check_members("share", shares, graph)
        for sender, sealed in shares.items():
            where = Phrase(NumberedParty(sender), ", share")
            check_exactly(where, sealed, graph[sender])
            for text in sealed.values():
                check_sealed(setup, text, where=where)
        check_enough("share", len(shares), setup.quorum)
        sharers = frozenset(shares)
        for party in sharers:
            where = Phrase(NumberedParty(party), ", share, neighbours")
            check_enough(where, len(graph[party] & sharers) + 1, setup.threshold)

        self._state.take()
        inboxes = {
            receiver: {sender: shares[sender][receiver] for sender in sorted(graph[receiver] & sharers)}
            for receiver in sorted(sharers)
        }
        return ReadyAggregation(common, sharers), inboxes


class ReadyAggregation:
    """The state after the set-up. Each round can be opened once, in ascending order; rounds may be skipped.

    Attributes:
        sharers: The parties that shared (U2); this set is sent to each of these parties, together with the ciphertexts
            for that party.
    """

    __slots__ = ("_common", "_rounds", "sharers")

    def __init__(self, common: "_Common", sharers: frozenset[PartyId]) -> None:
        self.sharers = sharers
        self._common = common
        self._rounds = OnceEach({index: place for place, index in enumerate(common.setup.rounds)}, step="open")

    def open(self, index: int, length: int, *, subject: bytes) -> "Masking":
        """Begin a round, and return the state to which masked vectors are added.

        Args:
            index: Index of the round.
            length: Number of 64-bit words in each vector.
            subject: Digest of the query, which must be the same for every party.

        Raises:
            ReplayError: If this round, or a later one, was opened before.
            ProtocolError: If the set-up has no such round.
        """
        place = self._rounds.take(index)
        binding = round_context(self._common.transcript, index)
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
    """The state within step 3. Masked vectors are added as they arrive, which needs the memory of only one vector."""

    __slots__ = ("_state",)

    def __init__(self, total: "_Total") -> None:
        self._state = Once(total, step="mask")

    def add(self, party: PartyId, vector: NDArray[np.uint64]) -> None:
        """Add one party's masked vector, (length,) uint64 (step 3).

        Raises:
            MembershipError: If the party never shared.
            ReplayError: If the party's vector has already been added, or arrives after the close.
            ProtocolError: If the vector has the wrong shape or type. The total then stays unchanged.
        """
        total = self._state.get()
        check_members("mask", {party}, total.publics)
        where = Phrase(NumberedParty(party), ", mask")
        if party in total.survivors:
            raise ReplayError("masked vector", expected="one", got="a second one", where=where)
        if not isinstance(vector, np.ndarray) or vector.dtype != np.uint64 or vector.shape != total.words.shape:
            got = (vector.dtype, vector.shape) if isinstance(vector, np.ndarray) else type(vector).__name__
            raise ProtocolError("masked vector", expected=f"uint64 of {total.words.shape}", got=got, where=where)
        ring.add_into(total.words, vector)
        total.survivors.add(party)

    def close(self) -> tuple["Agreeing", frozenset[PartyId]]:
        """Fix the survivors, which ends step 3.

        Returns:
            The next state, and the survivors; this set is sent to each of them.

        Raises:
            DropoutError: If too few vectors arrived. In this case, more vectors can still be added.
        """
        total = self._state.get()
        check_enough("mask", len(total.survivors), total.common.setup.quorum)
        self._state.take()
        return Agreeing(total), frozenset(total.survivors)


class Agreeing:
    """The state after step 3: the survivors are known to the coordinator."""

    __slots__ = ("_state",)

    def __init__(self, total: "_Total") -> None:
        self._state = Once(total, step="agree")

    @property
    def signers(self) -> int:
        """Number of survivors that must sign."""
        return self._state.get().common.setup.signers

    def collect(self, signatures: Mapping[PartyId, bytes]) -> tuple["Unmasking", dict[PartyId, bytes]]:
        """Check the survivors' signatures, and select as many of them as each party requires (step 4).

        Args:
            signatures: Signatures, keyed by survivor; empty in semi-honest mode.

        Returns:
            The next state, and the signatures to send to each survivor.

        Raises:
            MembershipError: If a signer did not survive.
            SignatureError: If a signature is invalid.
            DropoutError: If too few survivors signed.
        """
        total = self._state.get()
        setup = total.common.setup
        statement = survivors_statement(total.asked, total.publics.keys(), total.survivors)
        check_signatures(setup, total.common.roster, statement, total.survivors, signatures)
        self._state.take()
        return Unmasking(total), dict(sorted(signatures.items())[: setup.signers])


class Unmasking:
    """The state after step 4: the total is complete but still masked."""

    __slots__ = ("_state",)

    def __init__(self, total: "_Total") -> None:
        self._state = Once(total, step="unmask")

    def combine(self, shares: Mapping[PartyId, UnmaskShares]) -> NDArray[np.int64]:
        """Remove the masks (step 5).

        Args:
            shares: Revealed shares, keyed by survivor.

        Returns:
            (length,) int64, the exact sum of the survivors' vectors.

        Raises:
            MembershipError: If a party did not survive, or revealed shares other than those requested.
            ShareError: If a share is malformed, or shares are inconsistent.
            PublicKeyError: If a recovered mask key is not the advertised one.
            DropoutError: If fewer holders of a party's shares answered than the threshold requires.
        """
        total = self._state.get()
        graph, survivors = total.common.graph, frozenset(total.survivors)
        dropped = total.publics.keys() - survivors
        check_members("unmask", shares, survivors)
        for party, party_shares in shares.items():
            where = Phrase(NumberedParty(party), ", unmask")
            owners = graph[party] | {party}
            check_exactly(Phrase(where, ", seeds of survivors"), party_shares.self_seeds, owners & survivors)
            check_exactly(Phrase(where, ", mask keys of the dropped"), party_shares.mask_keys, owners & dropped)
            shamir.check_shares([*party_shares.self_seeds.values(), *party_shares.mask_keys.values()], where=where)
        seeds = _recover(total, {party: party_shares.self_seeds for party, party_shares in shares.items()}, survivors)
        keys = _recover(total, {party: party_shares.mask_keys for party, party_shares in shares.items()}, dropped)
        pairs = {party: KeyPair(secret) for party, secret in keys.items()}
        for party, pair in pairs.items():
            if pair.public != total.publics[party]:
                where = Phrase(NumberedParty(party), ", unmask")
                raise PublicKeyError("mask key", expected="the advertised one", got="another", where=where)

        self._state.take()
        add_masks(total.words, ((seed.reveal(), -1) for seed in seeds.values()))
        add_masks(total.words, _uncancelled_masks(total, pairs))
        return ring.decode(total.words)


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
    """The total of one round: the mask keys of U2, the sum so far, and the parties in it."""

    common: _Common
    binding: bytes
    asked: bytes
    publics: Mapping[PartyId, bytes]
    words: NDArray[np.uint64]
    survivors: set[PartyId] = field(default_factory=set)


def _uncancelled_masks(total: _Total, pairs: Mapping[PartyId, KeyPair]) -> Iterator[tuple[bytes, Sign]]:
    """Yield the key and sign of each mask that a dropped party would have added to cancel a survivor's mask."""
    for party, pair in pairs.items():
        for peer in total.common.graph[party] & total.survivors:
            key = mask_key(pair, total.publics[peer], total.asked, party, peer)
            yield key.reveal(), sign_of_mask(party, peer)


def _recover(
    total: _Total, shares: Mapping[PartyId, Mapping[PartyId, bytes]], owners: Collection[PartyId]
) -> dict[PartyId, Secret]:
    """Recover each owner's secret from its holders' shares (`shares` is keyed by holder, then by owner)."""
    threshold = total.common.setup.threshold
    # Owners with the same holders have the same Lagrange basis: on the full graph, all owners.
    groups: defaultdict[tuple[PartyId, ...], dict[NumberedParty, dict[int, bytes]]] = defaultdict(dict)
    for owner in map(NumberedParty, sorted(owners)):
        holders = sorted((total.common.graph[owner] | {owner}) & shares.keys())
        check_enough(Phrase(owner, ", unmask, holders of its shares"), len(holders), threshold)
        quorum = tuple(holders[:threshold])
        groups[quorum][owner] = {point_of(holder): shares[holder][owner] for holder in quorum}
    return {
        owner: Secret(secret)
        for group in groups.values()
        for owner, secret in shamir.combine_many(group, threshold, label=total.binding).items()
    }

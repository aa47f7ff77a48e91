"""The coordinator's side of secure aggregation: it adds vectors that it cannot read. No I/O.

The protocol of Bonawitz et al. 2017 on the full graph, for one attempt at one sum; `client/secagg.py` mirrors it step
for step and holds the same statement of what is protected.

    collect_adverts -> Sharing.collect -> Masking.add, ..., Masking.close -> Unmasking.combine

1. Advertise. Collect the parties' public keys (U1); broadcast them.
2. Share. Collect the ciphertexts that each party made for each peer (U2 of U1); hand each receiver its own. They stay
   sealed, and nothing of them is kept.
3. Mask. Add the masked vectors of U2 as they arrive. Closing fixes the survivors (U3); a later vector is refused, and
   would be useless to us: its self-mask stays on.
4. Unmask. From shares of at least t survivors recover each survivor's self-mask seed and each dropped party's mask key
   (dropped: in U2, not in U3). Take each survivor's PRG(b), and each mask between a survivor and a dropped party, off
   the total: what is left is Σ x over U3 modulo 2^64, read as signed.

A party may drop at any step. Too few left for the threshold or for the planned noise is a DropoutError; nothing ever
returns the sum of fewer parties. Damaged shares cannot make a wrong sum: recovered seeds carry a checksum of this
round, and recovered mask keys must belong to the public keys that were advertised.

What each side learns. This side: who took part, who dropped when, Σ x over the survivors. A party: the roster and the
survivors.

Threat model. Semi-honest, also when this coordinator pools what it sees with fewer than t parties: the paper's security
against an honest-but-curious server (section 6). Then each x of the others stays hidden but for their sum, which noise
protects. Not covered: a coordinator that departs from these steps (replaced keys, different survivor sets for different
parties), and parties that lie about x or about their secrets, which can falsify the sum or make the round fail.

Why not the engine's own SecAgg+ (Flower 1.41): masks from 32 bits of secret, silent clipping, and one dropout before
masking aborts the round.

A transition that raises leaves its state as it was, so that the coordinator can leave out the offender and try again;
one that succeeds spends it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from common.domain import PartyId
from common.errors import ProtocolError
from common.secagg import ring, shamir
from common.secagg.keys import KeyPair, Secret, check_public, mask_key
from common.secagg.masks import add_mask
from common.secagg.messages import KeyAdvert, RoundContext, SealedShares, UnmaskShares
from common.secagg.once import Once
from common.secagg.rules import SEALED_BYTES, check_enough, check_members, point_of, sign_of_mask


def collect_adverts(
    context: RoundContext, adverts: Mapping[PartyId, KeyAdvert]
) -> tuple["Sharing", dict[PartyId, KeyAdvert]]:
    """Step 1: the keys of the parties that answered.

    Args:
        context: The round as announced.
        adverts: Party to its keys.

    Returns:
        The next state; and the keys to broadcast to the same parties.

    Raises:
        ProtocolError: If a party is not on the roster, or a key is of low order or not its owner's alone.
        DropoutError: If too few answered.
    """
    check_members("advertise", adverts, context.parties)
    seen: set[bytes] = set()
    for party, advert in adverts.items():
        for key in (advert.mask_public, advert.seal_public):
            check_public(key, where=f"party {party}, advertise")
            if key in seen:
                raise ProtocolError(
                    "public key", expected="a fresh one", got="a repeated one", where=f"party {party}, advertise"
                )
            seen.add(key)
    check_enough("advertise", len(adverts), context.quorum)
    roster = dict(sorted(adverts.items()))
    return Sharing(context, roster), dict(roster)


class Sharing:
    """Step 1 is done: waiting for the sealed shares of those who advertised."""

    __slots__ = ("_held",)

    def __init__(self, context: RoundContext, adverts: Mapping[PartyId, KeyAdvert]) -> None:
        self._held = Once((context, adverts), step="share")

    def collect(self, shares: Mapping[PartyId, SealedShares]) -> tuple["Masking", dict[PartyId, dict[PartyId, bytes]]]:
        """Step 2: sort the ciphertexts by receiver.

        Args:
            shares: Sender to receiver to ciphertext.

        Returns:
            The next state; and receiver to sender to ciphertext, among the parties that shared.

        Raises:
            ProtocolError: If a sender did not advertise, left out a peer, or sent what cannot be a ciphertext.
            DropoutError: If too few shared.
        """
        context, adverts = self._held.get()
        check_members("share", shares, adverts)
        for sender, sealed in shares.items():
            where = f"party {sender}, share"
            if set(sealed) != set(adverts) - {sender}:
                raise ProtocolError("receivers", expected="each peer that advertised", got=sorted(sealed), where=where)
            if not all(isinstance(text, bytes) and len(text) == SEALED_BYTES for text in sealed.values()):
                raise ProtocolError("sealed shares", expected=f"{SEALED_BYTES} bytes", got="other", where=where)
        check_enough("share", len(shares), context.quorum)

        self._held.take()
        senders = sorted(shares)
        inboxes = {
            receiver: {sender: shares[sender][receiver] for sender in senders if sender != receiver}
            for receiver in senders
        }
        return Masking(context, {party: adverts[party].mask_public for party in senders}), inboxes


class Masking:
    """Step 2 is done: masked vectors are added as they arrive, so that one vector's memory serves any number."""

    __slots__ = ("_held",)

    def __init__(self, context: RoundContext, mask_publics: Mapping[PartyId, bytes]) -> None:
        total = np.zeros(context.length, dtype=np.uint64)
        self._held = Once(_Total(context=context, mask_publics=mask_publics, total=total), step="mask")

    def add(self, party: PartyId, vector: NDArray[np.uint64]) -> None:
        """Step 3: one party's masked vector, (length,) uint64.

        Raises:
            ProtocolError: If the party never shared, was counted already or comes after the close, or the vector has
                another shape or type. The total is then as it was.
        """
        held = self._held.get()
        check_members("mask", {party}, held.mask_publics)
        where = f"party {party}, mask"
        if party in held.counted:
            raise ProtocolError("masked vector", expected="one", got="a second one", where=where)
        if not isinstance(vector, np.ndarray) or vector.dtype != np.uint64 or vector.shape != held.total.shape:
            got = (vector.dtype, vector.shape) if isinstance(vector, np.ndarray) else type(vector).__name__
            raise ProtocolError("masked vector", expected=f"uint64 of {held.total.shape}", got=got, where=where)
        ring.add_into(held.total, vector)
        held.counted.add(party)

    def close(self) -> tuple["Unmasking", frozenset[PartyId]]:
        """End of step 3: who survived.

        Returns:
            The next state; and the survivors, to be told to each of them.

        Raises:
            DropoutError: If too few vectors arrived. More can still be added.
        """
        held = self._held.get()
        check_enough("mask", len(held.counted), held.context.quorum)
        self._held.take()
        return Unmasking(held), frozenset(held.counted)


class Unmasking:
    """Step 3 is done: the total is complete and still masked."""

    __slots__ = ("_held",)

    def __init__(self, held: "_Total") -> None:
        self._held = Once(held, step="unmask")

    def combine(self, shares: Mapping[PartyId, UnmaskShares]) -> NDArray[np.int64]:
        """Step 4: take the masks off.

        Args:
            shares: Survivor to what it handed out; at least threshold of them.

        Returns:
            (length,) int64, the exact sum of the survivors' vectors.

        Raises:
            ProtocolError: If a party did not survive, handed out other shares than asked, a malformed one, or ones
                that do not fit together.
            DropoutError: If fewer than threshold answered.
        """
        held = self._held.get()
        context, survivors = held.context, frozenset(held.counted)
        dropped = set(held.mask_publics) - survivors
        check_members("unmask", shares, survivors)
        for party, given in shares.items():
            where = f"party {party}, unmask"
            if set(given.self_seeds) != survivors or set(given.mask_keys) != dropped:
                raise ProtocolError(
                    "shares", expected="seeds of survivors, mask keys of the dropped", got="others", where=where
                )
            shamir.check_shares([*given.self_seeds.values(), *given.mask_keys.values()], where=where)
        check_enough("unmask", len(shares), context.threshold)
        secrets = _recover(context, shares, survivors, sorted(held.mask_publics))
        pairs = {party: KeyPair(secrets[party]) for party in dropped}
        for party, pair in pairs.items():
            if pair.public != held.mask_publics[party]:
                raise ProtocolError(
                    "mask key", expected="the advertised one", got="another", where=f"party {party}, unmask"
                )

        self._held.take()
        for party in survivors:
            add_mask(held.total, secrets[party].reveal(), -1)
        for party, pair in pairs.items():
            for peer in survivors:
                key = mask_key(pair, held.mask_publics[peer], context, party, peer)
                # What the dropped party would have added is just what would have cancelled the survivor's mask.
                add_mask(held.total, key.reveal(), sign_of_mask(party, peer))
        return ring.decode(held.total)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Total:
    """Who may contribute, who has, and the sum so far."""

    context: RoundContext
    mask_publics: Mapping[PartyId, bytes]
    total: NDArray[np.uint64]
    counted: set[PartyId] = field(default_factory=set)


def _recover(
    context: RoundContext,
    shares: Mapping[PartyId, UnmaskShares],
    survivors: frozenset[PartyId],
    owners: list[PartyId],
) -> dict[PartyId, Secret]:
    """Owner to its self-mask seed if it survived, to its private mask key if it dropped."""
    secrets = shamir.combine_many(
        {
            f"party {owner}, unmask": {
                point_of(party): (given.self_seeds if owner in survivors else given.mask_keys)[owner]
                for party, given in shares.items()
            }
            for owner in owners
        },
        context.threshold,
        label=context.binding,
    )
    return {owner: Secret(secret) for owner, secret in zip(owners, secrets.values(), strict=True)}

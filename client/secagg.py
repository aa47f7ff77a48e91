"""A party's side of secure aggregation: the sum becomes known, the vectors do not. No I/O.

The protocol of Bonawitz et al. 2017 ("Practical Secure Aggregation for Privacy-Preserving Machine Learning", figure 4
without its signatures) on the full graph, for one attempt at one sum. `server/secagg.py` mirrors it step for step.

    advertise -> Advertised.share -> Shared.mask -> Masked.unmask

1. Advertise. Two X25519 pairs: one will agree on masks, one on keys that seal shares.
2. Share. From everybody's public keys: split this party's self-mask seed b and its private mask key by Shamir's
   scheme, threshold t, among all who advertised; seal one share of each to each peer; keep one of each.
3. Mask. From the peers that shared (U2): y = x + PRG(b) + Σ_{v > u} PRG(s_uv) - Σ_{v < u} PRG(s_uv) mod 2^64, where
   s_uv is derived from the Diffie-Hellman agreement of u's and v's mask keys. x must already hold this party's noise.
4. Unmask. From the survivors (U3, whose y arrived): for each party of U2 hand out one share: of its self-mask seed if
   it survived, of its mask key if it dropped. Never both, and only once: with t of each the coordinator could read y.
   The self-mask is what protects a vector that arrives late, after its pairwise masks have been recovered.

What each side learns. The coordinator: who took part and who dropped at which step, and the sum of x over the
survivors, provided that they are at least t and at least the planned minimum; nothing else about any x. A party: the
roster, the survivors, and nothing about any other x. Colluders who also know the sum can subtract their own vectors
from it: what is left, the sum over the others, is protected by noise alone.

Threat model. Semi-honest: everybody follows the protocol, then pools what they saw. The coordinator may pool with fewer
than t parties; parties without the coordinator may pool in any number. The coordinator carries all messages faithfully,
keys included. This is the paper's security against an honest-but-curious server that colludes with fewer than t users
(section 6), which assumes decisional Diffie-Hellman, a secure PRG and authenticated encryption; here X25519 with
HKDF-SHA256, AES-256 in counter mode and AES-256-GCM. No bound such as t > L/2 is needed in this model.

Not covered. A malicious coordinator: it could replace keys by its own, or name different survivors to different parties
and so collect t shares of both secrets of one party; that takes signed keys, signed survivor sets and a larger t. A
party that lies about x or about its secrets: masks hide nonsense as well as truth. Timing, and which parties take part.

Why not the engine's own SecAgg+ (Flower 1.41): its masks come from a generator seeded with 32 bits folded from the
32-byte secret, so they can be searched, and it clips large values silently, so its sum can be wrong without a word.

Each state is spent by its transition, even by one that raises, and cannot be copied: nothing here can be used twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.domain import PartyId
from common.errors import PlanError, ProtocolError
from common.secagg import ring, shamir
from common.secagg.keys import KeyPair, Secret, mask_key, open_sealed, seal
from common.secagg.masks import add_mask
from common.secagg.messages import KeyAdvert, RoundContext, UnmaskShares
from common.secagg.once import Once
from common.secagg.rules import check_enough, check_members, halves, point_of, sign_of_mask


def advertise(context: RoundContext, party: PartyId, entropy: bytes) -> tuple["Advertised", KeyAdvert]:
    """Step 1: fresh keys for this attempt.

    Args:
        context: The round as announced.
        party: This party.
        entropy: 32 fresh bytes of the operating system's entropy, used for nothing else.

    Raises:
        ProtocolError: If this party is not on the roster.
    """
    if party not in context.parties:
        raise ProtocolError("roster", expected=f"party {party} on it", got=context.parties, where="advertise")
    root = Secret(entropy)
    own = _Own(
        context=context,
        party=party,
        seed=root.derive("own self-mask seed", context, party, party),
        coefficients=root.derive("own share coefficients", context, party, party),
        mask_keys=KeyPair(root.derive("own mask key", context, party, party)),
        seal_keys=KeyPair(root.derive("own seal key", context, party, party)),
    )
    return Advertised(own), own.advert()


class Advertised:
    """Step 1 is done: the keys are out, nothing is shared."""

    __slots__ = ("_held",)

    def __init__(self, own: "_Own") -> None:
        self._held = Once(own, step="share")

    def share(self, adverts: Mapping[PartyId, KeyAdvert]) -> tuple["Shared", dict[PartyId, bytes]]:
        """Step 2: split this party's two secrets among all who advertised.

        Args:
            adverts: The roster's keys as broadcast, this party's own among them.

        Returns:
            The next state; and peer to the ciphertext for it.

        Raises:
            ProtocolError: If a party is not on the roster, this party's keys are missing or altered, or keys repeat.
            DropoutError: If too few advertised.
        """
        own = self._held.take()
        context, party = own.context, own.party
        check_members("share", adverts, set(context.parties))
        if adverts.get(party) != own.advert():
            raise ProtocolError("keys as broadcast", expected="this party's own", got="others", where="share")
        publics = [key for advert in adverts.values() for key in (advert.mask_public, advert.seal_public)]
        if len(set(publics)) != len(publics):
            raise ProtocolError("keys as broadcast", expected="all distinct", got="a repeated one", where="share")
        check_enough("share", len(adverts), context.quorum)

        agreed = {
            peer: own.seal_keys.agree(advert.seal_public, where=f"party {peer}, seal key")
            for peer, advert in adverts.items()
            if peer != party
        }
        seeds, mask_keys = shamir.split_many(
            [own.seed.reveal(), own.mask_keys.private().reveal()],
            context.threshold,
            [point_of(peer) for peer in adverts],
            own.coefficients.reveal(),
            label=context.binding,
        )
        shares = {peer: seeds[point_of(peer)] + mask_keys[point_of(peer)] for peer in adverts}
        sealed = {peer: seal(secret, context, party, peer, shares[peer]) for peer, secret in agreed.items()}
        mask_publics = {peer: adverts[peer].mask_public for peer in agreed}
        held = _Sharing(own=own, mask_publics=mask_publics, agreed=agreed, own_shares=shares[party])
        return Shared(held), sealed


class Shared:
    """Step 2 is done: this party's secrets are split, its vector is still in its own hands."""

    __slots__ = ("_held",)

    def __init__(self, held: "_Sharing") -> None:
        self._held = Once(held, step="mask")

    def mask(self, inbox: Mapping[PartyId, bytes], vector: NDArray[np.int64]) -> tuple["Masked", NDArray[np.uint64]]:
        """Step 3: open the peers' shares and mask the vector.

        Args:
            inbox: Sender to the ciphertext it made for this party, from every other party that shared.
            vector: (length,) int64, noise included.

        Returns:
            The next state; and the masked vector, (length,) uint64, uniform to whoever lacks the masks.

        Raises:
            ProtocolError: If a sender did not advertise, or a ciphertext is not what it sealed for this party.
            DropoutError: If too few shared.
            PlanError: If the vector has another shape or type, or a value that could make the sum wrap.
        """
        held = self._held.take()
        own = held.own
        context, party = own.context, own.party
        check_members("mask", inbox, set(held.agreed))
        check_enough("mask", len(inbox) + 1, context.quorum)
        shares = {
            sender: open_sealed(held.agreed[sender], context, sender, party, sealed) for sender, sealed in inbox.items()
        }
        for sender, pair in shares.items():
            shamir.check_shares(halves(pair), where=f"party {sender}, sealed shares")

        if vector.shape != (context.length,):
            raise PlanError("vector to mask", expected=(context.length,), got=vector.shape, where="mask")
        masked = ring.encode(vector, parties=len(context.parties))
        add_mask(masked, own.seed.reveal(), 1)
        for peer in inbox:
            key = mask_key(own.mask_keys, held.mask_publics[peer], context, party, peer)
            add_mask(masked, key.reveal(), sign_of_mask(party, peer))
        return Masked(_Shares(context=context, party=party, shares={party: held.own_shares, **shares})), masked


class Masked:
    """Step 3 is done: the masked vector is out. Holds shares, and no secret of this party's own as a whole."""

    __slots__ = ("_held",)

    def __init__(self, held: "_Shares") -> None:
        self._held = Once(held, step="unmask")

    def unmask(self, survivors: frozenset[PartyId]) -> UnmaskShares:
        """Step 4: one share for each party that shared: self-mask seed of a survivor, mask key of a dropped one.

        Args:
            survivors: The parties whose masked vectors are in the sum.

        Raises:
            ProtocolError: If a survivor never shared, or this party, which did send its vector, is not among them.
            DropoutError: If they are fewer than the threshold or than the planned noise needs.
        """
        held = self._held.take()
        check_members("unmask", survivors, set(held.shares))
        if held.party not in survivors:
            raise ProtocolError("survivors", expected=f"party {held.party} among them", got="without", where="unmask")
        check_enough("unmask", len(survivors), held.context.quorum)
        pairs = held.shares.items()
        return UnmaskShares(
            self_seeds={party: halves(pair)[0] for party, pair in pairs if party in survivors},
            mask_keys={party: halves(pair)[1] for party, pair in pairs if party not in survivors},
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Own:
    """What one party keeps to itself."""

    context: RoundContext
    party: PartyId
    seed: Secret
    coefficients: Secret
    mask_keys: KeyPair
    seal_keys: KeyPair

    def advert(self) -> KeyAdvert:
        return KeyAdvert(mask_public=self.mask_keys.public, seal_public=self.seal_keys.public)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Sharing:
    """Between steps 2 and 3: by peer, its mask key and what the seal keys agreed on; both shares of its own."""

    own: _Own
    mask_publics: Mapping[PartyId, bytes]
    agreed: Mapping[PartyId, Secret]
    own_shares: bytes


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Shares:
    """Between steps 3 and 4: for each party of U2, the share of its seed followed by the share of its mask key."""

    context: RoundContext
    party: PartyId
    shares: Mapping[PartyId, bytes]

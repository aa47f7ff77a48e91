"""A party's side of secure aggregation, without I/O or clock. The threat model is described in `common.secagg`.

    once:            begin -> Advertised.share -> Shared.receive -> Ready
    for each round:  Ready.mask -> Masked.agree -> Agreed.unmask

1. Advertise. For each round, make one X25519 key pair to agree on masks and one self-mask seed b; for the set-up, make
    one pair to agree on sealing keys. Send all public keys in one message, signed over the set-up and the keys.
2. Share. Check the keys of all parties that advertised (U1). The hash of the keys (the transcript) seeds the graph and
   binds everything that is derived later. Split each round's b and private mask key by Shamir's scheme, threshold t,
   among the neighbours and oneself; all shares for one peer are sent in one ciphertext. Decrypt the ciphertexts of the
   peers that shared (U2), and delete the sealing key.
3. Mask. y = x + PRG(b) + Σ_{v > u} PRG(s_uv) - Σ_{v < u} PRG(s_uv) mod 2^64 over the neighbours v in U2, where s_uv is
   derived from u's and v's mask keys of this round. The party's vector x must already include its noise. Several
   vectors of one round are concatenated in the plan's order, and the sum is split at the same positions.
4. Agree. Sign the survivors (U3, the parties whose y arrived) and U2, once per round. In semi-honest mode the signature
   is empty and nobody waits for it, so this step and the next are one exchange.
5. Unmask. After enough valid signatures of distinct survivors over exactly what this party signed, send one share for
   itself and each neighbour in U2: a share of that party's b if it survived, or of its mask key if it dropped out.
   Never send both shares of a party, and never send twice: with t shares of each secret, the coordinator could read y.
   The self-mask protects a vector that arrives late, after its pairwise masks have been recovered.

A party learns the roster, U1, U2 and U3, and nothing about any other vector. Its own vector is hidden from a
coordinator that colludes with the corrupt parties, even if, in malicious mode, the coordinator does not follow the
protocol; see the proofs of Bonawitz et al. 2017, section 6. A set-up takes 2 exchanges, and a round 2 more, or 3 in
malicious mode.

Each transition consumes its state, even if it raises an error, and no state can be copied, so no state can be used
twice. A party that restarts has lost its secrets and takes part again from the next set-up on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.compute import Compute, directly
from common.domain import PartyId
from common.errors import MembershipError, PublicKeyError
from common.phrases import NumberedParty, Phrase
from common.secagg import ring, shamir
from common.secagg.identity import Identity, Roster, check_roster, sign
from common.secagg.keys import KeyPair, Secret, mask_key, open_sealed, seal
from common.secagg.masks import Sign, add_masks
from common.secagg.messages import AggregationSetup, KeyAdvert, UnmaskShares
from common.secagg.once import Once, OnceEach
from common.secagg.rules import (
    Graph,
    about,
    advert_statement,
    check_adverts,
    check_enough,
    check_exactly,
    check_members,
    check_sealed,
    check_signatures,
    point_of,
    round_context,
    sign_of_mask,
    split_shares,
    survivors_statement,
)


def begin(
    setup: AggregationSetup,
    party: PartyId,
    entropy: bytes,
    *,
    identity: Identity | None,
    roster: Roster | None,
    compute: Compute = directly,
) -> tuple["Advertised", KeyAdvert]:
    """Step 1: make fresh keys for all rounds.

    Args:
        setup: The set-up that this party derived from the plan that it accepted.
        party: Number of this party.
        entropy: 32 fresh bytes of the operating system's entropy, used for nothing else.
        identity: This party's identity; None in semi-honest mode.
        roster: The identities of all parties, from this party's own file; None in semi-honest mode.
        compute: Function that runs the check of all keys and signatures, which is the same for several parties.

    Raises:
        MembershipError: A party is not in the set-up or not on the roster, or roster and identity do not match.
    """
    check_members("advertise", {party}, setup.parties)
    check_roster(setup, roster)
    if (identity.public if identity else None) != (roster.keys[party] if roster else None):
        raise MembershipError(
            "identity",
            expected=Phrase("that of ", NumberedParty(party), " on its roster"),
            got="another",
            where="advertise",
        )
    root = Secret(entropy)
    seal_keys = KeyPair(root.derive("own seal key", setup.binding, party, party))
    own_secrets = {index: _OwnSecrets(root, round_context(setup.binding, index), party) for index in setup.rounds}
    unsigned = KeyAdvert(
        seal_public=seal_keys.public, mask_publics=tuple(secrets.mask_keys.public for secrets in own_secrets.values())
    )
    advert = replace(unsigned, signature=sign(identity, advert_statement(setup, party, unsigned)))
    me = _Me(setup=setup, party=party, identity=identity, roster=roster, compute=compute)
    return Advertised(_Begun(me=me, advert=advert, seal_keys=seal_keys, rounds=own_secrets)), advert


class Advertised:
    """The state after step 1: the keys have been sent, and nothing is shared yet."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: "_Begun") -> None:
        self._secrets = Once(secrets, step="share")

    def share(self, adverts: Mapping[PartyId, KeyAdvert]) -> tuple["Shared", dict[PartyId, bytes]]:
        """Step 2: split each round's two secrets among the neighbours.

        Args:
            adverts: The keys of all parties as broadcast, including this party's own.

        Returns:
            The next state, and the ciphertext for each neighbour.

        Raises:
            MembershipError: A party does not take part.
            PublicKeyError: Keys are weak, repeated or missing, or this party's own keys were altered.
            SignatureError: A party did not sign its keys for this set-up.
            DropoutError: Too few parties advertised keys.
        """
        secrets = self._secrets.take()
        me, setup, party = secrets.me, secrets.me.setup, secrets.me.party
        if adverts.get(party) != secrets.advert:
            raise PublicKeyError("keys as broadcast", expected="this party's own", got="others", where="share")
        transcript, graph = me.compute(check_adverts, setup, adverts, me.roster, "share")

        agreed = {
            peer: secrets.seal_keys.agree(adverts[peer].seal_public, where=Phrase(NumberedParty(peer), ", seal key"))
            for peer in sorted(graph[party])
        }
        holders = (party, *agreed)
        shares = {
            index: own_secrets.split(setup.threshold, holders, round_context(transcript, index))
            for index, own_secrets in secrets.rounds.items()
        }
        sealed = {
            peer: seal(secret, transcript, party, peer, b"".join(shares[index][peer] for index in setup.rounds))
            for peer, secret in agreed.items()
        }
        rounds = {
            index: _Round(
                binding=round_context(transcript, index),
                seed=secrets.rounds[index].seed,
                mask_keys=secrets.rounds[index].mask_keys,
                publics={peer: adverts[peer].mask_publics[place] for peer in agreed},
                shares={party: shares[index][party]},
            )
            for place, index in enumerate(setup.rounds)
        }
        return Shared(_Sharing(me=me, transcript=transcript, graph=graph, agreed=agreed, rounds=rounds)), sealed


class Shared:
    """The state in the middle of step 2: this party's secrets are split, but its peers' shares have not arrived."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: "_Sharing") -> None:
        self._secrets = Once(secrets, step="receive")

    def receive(self, inbox: Mapping[PartyId, bytes], sharers: frozenset[PartyId]) -> "Ready":
        """Step 2, second half: decrypt the neighbours' shares, and return the state for the next step.

        Args:
            inbox: The ciphertext for this party from every neighbour that shared, by sender.
            sharers: All parties that shared (U2), including this one.

        Raises:
            MembershipError: A sharer did not advertise, or the senders are not exactly the neighbours that shared.
            SealError: A ciphertext is not what its sender sealed for this party in this set-up.
            ShareError: The plaintexts are not shares.
            DropoutError: Too few parties shared.
        """
        secrets = self._secrets.take()
        me, setup = secrets.me, secrets.me.setup
        check_members("receive", sharers, secrets.graph)
        check_members("receive", {me.party}, sharers)
        check_exactly("receive", inbox, secrets.graph[me.party] & sharers)
        check_enough("receive", len(sharers), setup.quorum)
        check_enough("receive, neighbours", len(inbox) + 1, setup.threshold)
        rounds = {index: replace(round_, sharers=sharers) for index, round_ in secrets.rounds.items()}
        for sender, sealed in inbox.items():
            where = Phrase(NumberedParty(sender), ", sealed shares")
            check_sealed(setup, sealed, where=where)
            pairs = open_sealed(secrets.agreed[sender], secrets.transcript, sender, me.party, sealed)
            shamir.check_words(pairs, where=where)
            for place, index in enumerate(setup.rounds):
                rounds[index].shares[sender] = pairs[place * shamir.PAIR_BYTES : (place + 1) * shamir.PAIR_BYTES]
        return Ready(me, rounds)


class Ready:
    """The state after the set-up: each round can be masked once, in ascending order, and any round may be skipped."""

    __slots__ = ("_me", "_rounds")

    def __init__(self, me: "_Me", rounds: Mapping[int, "_Round"]) -> None:
        self._me = me
        self._rounds = OnceEach(rounds, step="mask")

    def mask(self, index: int, vector: NDArray[np.int64], *, subject: bytes) -> tuple["Masked", NDArray[np.uint64]]:
        """Step 3: mask this round's vector; delete this party's secrets for this round and all earlier ones.

        Args:
            index: The round.
            vector: (length,) int64, noise included. Its length follows from the plan.
            subject: The question that the vector answers. Vectors that answer different questions must not be added
                together.

        Returns:
            The round's next state, and the masked vector, (length,) uint64, which looks uniformly random to anybody
            without the masks.

        Raises:
            ReplayError: This round, or a later one, was masked before.
            ProtocolError: The set-up has no such round.
            PlanError: The vector has the wrong type or shape, or a value that could make the sum wrap around.
        """
        round_secrets = self._rounds.take(index)
        masked = ring.encode(vector, parties=len(self._me.setup.parties))
        asked = about(round_secrets.binding, subject)
        add_masks(masked, round_secrets.masks(self._me.party, asked))
        return Masked(self._me, _Shares(asked=asked, sharers=round_secrets.sharers, pairs=round_secrets.shares)), masked


class Masked:
    """The state after step 3: the masked vector has been sent.

    It contains shares, but no complete secret of the party.
    """

    __slots__ = ("_me", "_secrets")

    def __init__(self, me: "_Me", secrets: "_Shares") -> None:
        self._me = me
        self._secrets = Once(secrets, step="agree")

    def agree(self, survivors: frozenset[PartyId]) -> tuple["Agreed", bytes]:
        """Step 4: accept this set of survivors, and from now on no other set.

        Args:
            survivors: The parties whose masked vectors are in the sum.

        Returns:
            The next state, and the signature, which has 64 bytes or, in semi-honest mode, is empty.

        Raises:
            MembershipError: A survivor never shared, or this party, which did send its vector, is not among the
                survivors.
            DropoutError: There are fewer survivors than the threshold, the planned noise or the signatures require.
        """
        secrets = self._secrets.take()
        check_members("agree", survivors, secrets.sharers)
        check_members("agree", {self._me.party}, survivors)
        check_enough("agree", len(survivors), self._me.setup.quorum)
        statement = survivors_statement(secrets.asked, secrets.sharers, survivors)
        return Agreed(self._me, secrets, survivors, statement), sign(self._me.identity, statement)


class Agreed:
    """The state after step 4: one set of survivors has been accepted."""

    __slots__ = ("_me", "_secrets", "_statement", "_survivors")

    def __init__(self, me: "_Me", secrets: "_Shares", survivors: frozenset[PartyId], statement: bytes) -> None:
        self._me = me
        self._secrets = Once(secrets, step="unmask")
        self._survivors = survivors
        self._statement = statement

    def unmask(self, signatures: Mapping[PartyId, bytes]) -> UnmaskShares:
        """Step 5: return one share each for this party and each neighbour that shared.

        Each share is of that party's self-mask seed or, if that party dropped out, of its mask key.

        Args:
            signatures: Signatures, keyed by survivor; empty in semi-honest mode.

        Raises:
            MembershipError: A signer did not survive.
            SignatureError: A signature is not over exactly what this party signed.
            DropoutError: There are too few signatures.
        """
        pairs = self._secrets.take().pairs
        me = self._me
        me.compute(check_signatures, me.setup, me.roster, self._statement, self._survivors, signatures)
        return UnmaskShares(
            self_seeds={owner: split_shares(pair)[0] for owner, pair in pairs.items() if owner in self._survivors},
            mask_keys={owner: split_shares(pair)[1] for owner, pair in pairs.items() if owner not in self._survivors},
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Me:
    """Identity and set-up of this party, contained in every state."""

    setup: AggregationSetup
    party: PartyId
    identity: Identity | None
    roster: Roster | None
    compute: Compute


class _OwnSecrets:
    """This party's own secrets for one round, before they are split."""

    __slots__ = ("_coefficients", "mask_keys", "seed")

    def __init__(self, root: Secret, binding: bytes, party: PartyId) -> None:
        self.seed = root.derive("own self-mask seed", binding, party, party)
        self.mask_keys = KeyPair(root.derive("own mask key", binding, party, party))
        self._coefficients = root.derive("own share coefficients", binding, party, party)

    def split(self, threshold: int, holders: tuple[PartyId, ...], label: bytes) -> dict[PartyId, bytes]:
        """Split both secrets; return each holder's pair of shares, keyed by holder."""
        seeds, keys = shamir.split_many(
            [self.seed.reveal(), self.mask_keys.private().reveal()],
            threshold,
            [point_of(holder) for holder in holders],
            self._coefficients.reveal(),
            label=label,
        )
        return {holder: seeds[point_of(holder)] + keys[point_of(holder)] for holder in holders}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Begun:
    """The state between steps 1 and 2."""

    me: _Me
    advert: KeyAdvert
    seal_keys: KeyPair
    rounds: Mapping[int, _OwnSecrets]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Round:
    """A future round: this party's secrets, the neighbours' public mask keys, pairs of shares by owner, and sharers."""

    binding: bytes
    seed: Secret
    mask_keys: KeyPair
    publics: Mapping[PartyId, bytes]
    shares: dict[PartyId, bytes]
    sharers: frozenset[PartyId] = frozenset()

    def masks(self, party: PartyId, asked: bytes) -> Iterator[tuple[bytes, Sign]]:
        """Yield the key and sign of the self-mask, and of the pairwise mask with each neighbour that shared."""
        yield self.seed.reveal(), 1
        for peer in self.shares.keys() - {party}:
            key = mask_key(self.mask_keys, self.publics[peer], asked, party, peer)
            yield key.reveal(), sign_of_mask(party, peer)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Sharing:
    """The state while the peers' shares are in transit: keys to decrypt them, and the rounds, still without shares."""

    me: _Me
    transcript: bytes
    graph: Graph
    agreed: Mapping[PartyId, Secret]
    rounds: Mapping[int, _Round]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Shares:
    """The state between steps 3 and 5: a share of each owner's seed and of its mask key, this party included."""

    asked: bytes
    sharers: frozenset[PartyId]
    pairs: Mapping[PartyId, bytes]

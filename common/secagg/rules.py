"""Rules that both sides of secure aggregation must apply identically: checks, statements, graph and share layout."""

import hashlib
import struct
from collections.abc import Collection, Mapping

from common.domain import PartyId
from common.errors import DropoutError, MembershipError, PublicKeyError, SealError
from common.phrases import NumberedParty, Phrase, list_parties
from common.secagg.graph import neighbours
from common.secagg.identity import Roster, verify
from common.secagg.keys import SEAL_OVERHEAD, check_public
from common.secagg.masks import Sign
from common.secagg.messages import PROTOCOL, AggregationSetup, KeyAdvert
from common.secagg.shamir import PAIR_BYTES, SHARE_BYTES

Graph = Mapping[PartyId, frozenset[PartyId]]
"""Neighbours of each party."""


def check_adverts(
    setup: AggregationSetup, adverts: Mapping[PartyId, KeyAdvert], roster: Roster | None, step: str
) -> tuple[bytes, Graph]:
    """Check all advertised keys, and compute transcript and graph from them.

    Args:
        setup: The set-up, as both sides made it.
        adverts: The keys of all parties that advertised, keyed by party.
        roster: The parties' identities; None in semi-honest mode.
        step: Name of the step, for errors.

    Returns:
        The transcript, 32 bytes that bind set-up and keys; and the graph, which is random with the transcript as seed.

    Raises:
        MembershipError: If a party does not take part.
        PublicKeyError: If keys are too few or too many, weak, not canonical or repeated.
        SignatureError: If a party did not sign its keys for this set-up.
        DropoutError: If too few parties advertised keys.
    """
    parties = sorted(adverts)
    check_members(step, parties, setup.parties)
    seen: set[bytes] = set()
    statements = []
    for party in parties:
        advert = adverts[party]
        where = Phrase(NumberedParty(party), ", ", step)
        if len(advert.mask_publics) != len(setup.rounds):
            raise PublicKeyError(
                "public keys", expected=f"{len(setup.rounds)} for masks", got=len(advert.mask_publics), where=where
            )
        for key in advert.keys:
            check_public(key, where=where)
            if key in seen:
                raise PublicKeyError("public key", expected="a fresh one", got="a repeated one", where=where)
            seen.add(key)
        statements.append(advert_statement(setup, party, advert))
        verify(roster, party, statements[-1], advert.signature, where=where)
    check_enough(step, len(adverts), setup.quorum)
    transcript = hashlib.sha256(PROTOCOL + b"|adverts|" + b"".join(statements)).digest()
    # Fewer parties than asked may have advertised; a small group is a full graph.
    return transcript, neighbours(parties, min(setup.degree, len(adverts) - 1), transcript)


def advert_statement(setup: AggregationSetup, party: PartyId, advert: KeyAdvert) -> bytes:
    """Return the statement that a party signs over its keys. It is injective, as all its parts have fixed lengths."""
    return PROTOCOL + b"|advert|" + setup.binding + party.to_bytes(8, "big") + b"".join(advert.keys)


def round_context(binding: bytes, index: int) -> bytes:
    """Return 32 bytes that bind one round of the set-up with this `binding`."""
    return hashlib.sha256(PROTOCOL + b"|round|" + binding + index.to_bytes(8, "big")).digest()


def about(binding: bytes, subject: bytes) -> bytes:
    """Return 32 bytes that bind a round to its query: masks of parties with different queries never cancel."""
    return hashlib.sha256(PROTOCOL + b"|about|" + binding + hashlib.sha256(subject).digest()).digest()


def survivors_statement(binding: bytes, sharers: Collection[PartyId], survivors: Collection[PartyId]) -> bytes:
    """Return the statement that a party signs before it unmasks: sharers and survivors, in the round of `binding`."""
    lists = [number for group in (sharers, survivors) for number in (len(group), *sorted(group))]
    return PROTOCOL + b"|survivors|" + binding + struct.pack(f">{len(lists)}Q", *lists)


def check_signatures(
    setup: AggregationSetup,
    roster: Roster | None,
    statement: bytes,
    survivors: Collection[PartyId],
    signatures: Mapping[PartyId, bytes],
) -> None:
    """Check, before unmasking, that enough survivors signed exactly this statement.

    Raises:
        MembershipError: If a signer did not survive.
        SignatureError: If a signature is invalid.
        DropoutError: If too few survivors signed.
    """
    check_members("survivors' signatures", signatures, survivors)
    for party, signature in signatures.items():
        verify(roster, party, statement, signature, where=Phrase(NumberedParty(party), ", survivors' signatures"))
    check_enough("survivors' signatures", len(signatures), setup.signers)


def check_sealed(setup: AggregationSetup, sealed: bytes, *, where: Phrase) -> None:
    """Raise SealError if bytes cannot be a ciphertext of a pair of shares for each round.

    Raises:
        SealError: The length is invalid; the message names party and step.
    """
    expected = PAIR_BYTES * len(setup.rounds) + SEAL_OVERHEAD
    if not isinstance(sealed, bytes) or len(sealed) != expected:
        raise SealError("sealed shares", expected=f"{expected} bytes", got="something else", where=where)


def split_shares(pair: bytes) -> tuple[bytes, bytes]:
    """Split a pair into the share of the self-mask seed and the share of the mask key."""
    return pair[:SHARE_BYTES], pair[SHARE_BYTES:]


def point_of(party: PartyId) -> int:
    """Return the evaluation point of a party's shares; the secret is at 0."""
    return party + 1


def sign_of_mask(party: PartyId, peer: PartyId) -> Sign:
    """Return the sign with which `party` adds the mask that it shares with `peer`, which uses the opposite sign."""
    return 1 if party < peer else -1


def check_members(step: str, parties: Collection[PartyId], allowed: Collection[PartyId]) -> None:
    """Raise MembershipError if messages are of or about parties that do not take part in this step.

    Raises:
        MembershipError: There are such parties; the message names them and the step.
    """
    strangers = set(parties) - set(allowed)
    if strangers:
        raise MembershipError(
            "parties in this step",
            expected=Phrase("some of ", list_parties(allowed)),
            got=list_parties(strangers),
            where=step,
        )


def check_exactly(step: str | Phrase, parties: Collection[PartyId], expected: Collection[PartyId]) -> None:
    """Raise MembershipError unless messages are of or about exactly the expected parties.

    Raises:
        MembershipError: The parties differ; the message names both and the step.
    """
    if set(parties) != set(expected):
        raise MembershipError(
            "parties in this step", expected=list_parties(expected), got=list_parties(parties), where=step
        )


def check_enough(step: str | Phrase, count: int, needed: int) -> None:
    """Raise DropoutError if there are too few parties to continue.

    Raises:
        DropoutError: There are too few parties; the message contains both numbers and the step.
    """
    if count < needed:
        raise DropoutError(
            "too few parties are left",
            expected=f"at least {needed}",
            got=count,
            where=step,
            do="Set up again, or plan for fewer survivors and more noise per party",
        )

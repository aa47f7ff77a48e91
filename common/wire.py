"""Conversion of messages to bytes and back; this is the only module that uses the protobuf classes.

`unpack(pack(envelope)) == envelope` for every message. `unpack` raises ProtocolError for anything else: a message of
another version, a bulk array that differs from its digest, sizes that disagree, or a number that is infinite or NaN.
Format: `protos/*.proto`.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import assert_never

import numpy as np
from google.protobuf.message import DecodeError

from common import messages as m
from common.compute import Compute, directly
from common.domain import PartyId
from common.errors import CaucusError, ProtocolError, TooLargeError
from common.queries import closed_set
from common.queries.closed_set import spec_from_dict, spec_to_dict
from common.secagg.messages import VERSION, KeyAdvert, UnmaskShares
from protos import party_pb2, query_pb2, secagg_pb2, session_pb2

_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){2}[0-9a-z.+]{0,18}")
"""Form of a party's version, at most 32 characters, so that a page can show no other text as a version."""
LARGEST_ROSTER = 1 << 20
"""Upper limit for party numbers. No federation is this large; a decoder should limit what it accepts."""


def pack_all(envelopes: Mapping[PartyId, m.Envelope]) -> dict[PartyId, m.Parcel]:
    """Convert one message per party to bytes; a body or array that is sent to several parties is converted once."""
    bulks: dict[int, tuple[bytes, bytes]] = {}
    last, packed = None, b""
    parcels = {}
    for party, envelope in envelopes.items():
        body = envelope.body
        key = id(body.query) if isinstance(body, m.Ask) else id(body)
        if key not in bulks:
            bulk = _bulk(body)
            bulks[key] = bulk, _digest(bulk)
        if body is not last:
            last, packed = body, _packed(body)
        parcels[party] = _pack(envelope, packed, *bulks[key])
    return parcels


def pack(envelope: m.Envelope) -> m.Parcel:
    """Return the bytes of one message."""
    bulk = _bulk(envelope.body)
    return _pack(envelope, _packed(envelope.body), bulk, _digest(bulk))


def unpack(parcel: m.Parcel, compute: Compute = directly, *, largest: int = m.LARGEST_ENVELOPE) -> m.Envelope:
    """Return the message in `parcel`.

    Args:
        parcel: The received parcel.
        compute: Function that computes values that are the same in messages to several parties.
        largest: Maximum size of the envelope, in bytes.

    Raises:
        TooLargeError: `parcel` is too large; it is neither parsed nor hashed.
        ProtocolError: `parcel` is not a message of this protocol version, or its parts disagree.
    """
    proto = _envelope(parcel, largest)
    if proto.version != VERSION:
        raise ProtocolError(
            "protocol version", expected=VERSION, got=proto.version, do="Install the same version on both sides"
        )
    if len(proto.plan_digest) != hashlib.sha256().digest_size:
        raise ProtocolError("plan digest", expected="32 bytes", got=len(proto.plan_digest))
    if compute(_digest, parcel.bulk) != proto.bulk_digest:
        raise ProtocolError("bulk", expected="bytes with the digest that the envelope names", got="others")
    try:
        body = _body(proto, parcel.bulk, compute)
    except ProtocolError:
        raise
    except (CaucusError, ValueError) as error:
        raise ProtocolError("message body", got=f"values out of range in {proto.WhichOneof('body')}") from error
    return m.Envelope(
        run=proto.run,
        party=_party(proto.party),
        plan_digest=proto.plan_digest,
        index=proto.index,
        attempt=proto.attempt,
        body=body,
    )


def sender(parcel: m.Parcel) -> PartyId:
    """Return the claimed sender, even of a parcel that `unpack` rejects.

    All protocol versions encode party and version in the same way.

    Raises:
        ProtocolError: The parcel has no envelope, or is too large.
    """
    proto = _envelope(parcel)
    if not proto.version:
        raise ProtocolError("envelope", expected="one of some version", got="none")
    return _party(proto.party)


def pack_parcel(parcel: m.Parcel, partition: int) -> bytes:
    """Serialise a parcel for a process that hosts several simulated parties; a deployment's partition is 0."""
    return party_pb2.Parcel(envelope=parcel.envelope, bulk=parcel.bulk, partition=partition).SerializeToString()


def unpack_parcel(data: bytes) -> tuple[m.Parcel, int]:
    """Return a parcel, and the partition for which it is meant."""
    try:
        proto = party_pb2.Parcel.FromString(data)
    except DecodeError as error:
        raise ProtocolError("parcel", expected="a protobuf message", got="bytes that are none") from error
    return m.Parcel(proto.envelope, proto.bulk), proto.partition


def check_size(parcel: m.Parcel, largest: int = m.LARGEST_ENVELOPE) -> None:
    """Raise a TooLargeError if a parcel's envelope has more than `largest` bytes, or its bulk more than may come."""
    for what, data, most in (("envelope", parcel.envelope, largest), ("bulk", parcel.bulk, m.LARGEST_BULK)):
        if len(data) > most:
            raise TooLargeError(what, expected=f"at most {most:,} bytes", got=f"{len(data):,}")


def _envelope(parcel: m.Parcel, largest: int = m.LARGEST_ENVELOPE) -> party_pb2.Envelope:
    check_size(parcel, largest)
    try:
        return party_pb2.Envelope.FromString(parcel.envelope)
    except DecodeError as error:
        raise ProtocolError("envelope", expected="a protobuf message", got="bytes that are none") from error


def _digest(bulk: bytes) -> bytes:
    return hashlib.sha256(bulk).digest()


def _bulk(body: m.Request | m.Reply) -> bytes:
    match body:
        case m.Ask(query):
            return closed_set.to_bytes(query)
        case m.Answer(words):
            return words.astype("<u8", copy=False).tobytes()
        case m.Release(texts):
            return texts
        case _:
            return b""


def _pack(envelope: m.Envelope, body: bytes, bulk: bytes, bulk_digest: bytes) -> m.Parcel:
    proto = party_pb2.Envelope(
        version=VERSION,
        run=envelope.run,
        party=envelope.party,
        plan_digest=envelope.plan_digest,
        index=envelope.index,
        attempt=envelope.attempt,
        bulk_digest=bulk_digest,
    )
    # Two protobuf messages one after the other are one that has the fields of both.
    return m.Parcel(proto.SerializeToString(deterministic=True) + body, bulk)


def _packed(body: m.Request | m.Reply) -> bytes:
    """Return the bytes of an envelope that contains only the body."""
    proto = party_pb2.Envelope()
    match body:
        case m.Open(plan, first):
            proto.open.CopyFrom(session_pb2.Open(plan=plan, first=first))
        case m.AskShares(adverts):
            proto.ask_shares.SetInParent()
            for party, advert in adverts.items():
                proto.ask_shares.adverts[party].CopyFrom(_advert(advert))
        case m.Ask(query, delivery):
            proto.ask.spec = json.dumps(spec_to_dict(query.spec), sort_keys=True).encode()
            proto.ask.arrays.extend(
                query_pb2.Array(name=name, shape=array.shape) for name, array in closed_set.inputs(query).items()
            )
            if delivery:
                proto.ask.delivery.CopyFrom(
                    secagg_pb2.Delivery(inbox=dict(delivery.inbox), sharers=sorted(delivery.sharers))
                )
        case m.AskAgree(survivors):
            proto.ask_agree.CopyFrom(secagg_pb2.AskAgree(survivors=sorted(survivors)))
        case m.AskUnmask(survivors, signatures):
            proto.ask_unmask.CopyFrom(secagg_pb2.AskUnmask(survivors=sorted(survivors), signatures=dict(signatures)))
        case m.Close():
            proto.close.SetInParent()
        case m.Release():
            proto.release.SetInParent()
        case m.Opened(encoder, advert, version):
            proto.opened.encoder = encoder
            proto.opened.version = version
            if advert:
                proto.opened.advert.CopyFrom(_advert(advert))
        case m.Shares(sealed):
            proto.shares.CopyFrom(secagg_pb2.Shares(sealed=dict(sealed)))
        case m.Answer(words):
            proto.answer.length = len(words)
        case m.Agreement(signature):
            proto.agreement.signature = signature
        case UnmaskShares(self_seeds=self_seeds, mask_keys=mask_keys):
            proto.unmasking.CopyFrom(secagg_pb2.Unmasking(self_seeds=dict(self_seeds), mask_keys=dict(mask_keys)))
        case m.Closed():
            proto.closed.SetInParent()
        case m.Received():
            proto.received.SetInParent()
        case m.Refusal(reason):
            proto.refusal.CopyFrom(session_pb2.Refusal(reason=session_pb2.Reason.Name(reason)))
        case _ as unreachable:
            assert_never(unreachable)
    return proto.SerializeToString(deterministic=True)


def _body(proto: party_pb2.Envelope, bulk: bytes, compute: Compute) -> m.Request | m.Reply:
    kind = proto.WhichOneof("body")
    if bulk and kind not in ("ask", "answer", "release"):
        raise ProtocolError("bulk", expected=f"none with {kind}", got=f"{len(bulk)} bytes")
    match kind:
        case "open":
            return m.Open(proto.open.plan, proto.open.first)
        case "ask_shares":
            return m.AskShares(compute(_adverts, proto.ask_shares.SerializeToString(deterministic=True)))
        case "ask":
            return m.Ask(_query(proto.ask, bulk, compute), _delivery(proto.ask))
        case "ask_agree":
            return m.AskAgree(frozenset(_parties(proto.ask_agree.survivors)))
        case "ask_unmask":
            signatures = _by_party(proto.ask_unmask.signatures)
            return m.AskUnmask(frozenset(_parties(proto.ask_unmask.survivors)), signatures)
        case "close":
            return m.Close()
        case "release":
            return m.Release(bulk)
        case "opened":
            advert = _keys(proto.opened.advert) if proto.opened.HasField("advert") else None
            return m.Opened(proto.opened.encoder, advert, _version(proto.opened.version))
        case "shares":
            return m.Shares(_by_party(proto.shares.sealed))
        case "answer":
            return m.Answer(_words(proto.answer.length, bulk))
        case "agreement":
            return m.Agreement(proto.agreement.signature)
        case "unmasking":
            return UnmaskShares(
                self_seeds=_by_party(proto.unmasking.self_seeds), mask_keys=_by_party(proto.unmasking.mask_keys)
            )
        case "closed":
            return m.Closed()
        case "received":
            return m.Received()
        case "refusal":
            return m.Refusal(m.Reason(proto.refusal.reason))
        case _:
            raise ProtocolError("message body", expected="one of this protocol version", got="none")


def _adverts(data: bytes) -> Mapping[PartyId, KeyAdvert]:
    """Return the keys of all parties, decoded from bytes that are the same in every party's envelope."""
    adverts = secagg_pb2.AskShares.FromString(data).adverts
    return MappingProxyType({_party(party): _keys(advert) for party, advert in adverts.items()})


def _query(proto: query_pb2.Ask, bulk: bytes, compute: Compute) -> closed_set.Query:
    shapes = {array.name: tuple(array.shape) for array in proto.arrays}
    if len(shapes) < len(proto.arrays):
        raise ProtocolError("arrays of a query", expected="each once", got="one twice")
    return compute(_parsed, proto.spec, tuple(shapes.items()), bulk)


def _parsed(json_spec: bytes, shapes: tuple[tuple[str, tuple[int, ...]], ...], bulk: bytes) -> closed_set.Query:
    try:
        spec = spec_from_dict(json.loads(json_spec))
    except (ValueError, TypeError, RecursionError) as error:
        raise ProtocolError("specification of a query", expected="JSON as in the plan", got="another") from error
    return closed_set.from_bytes(spec, dict(shapes), bulk)


def _delivery(proto: query_pb2.Ask) -> m.Delivery | None:
    if not proto.HasField("delivery"):
        return None
    return m.Delivery(_by_party(proto.delivery.inbox), frozenset(_parties(proto.delivery.sharers)))


def _words(length: int, bulk: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    if len(bulk) != 8 * length:
        raise ProtocolError("answer", expected=f"{length} words of 8 bytes", got=f"{len(bulk)} bytes")
    return np.frombuffer(bulk, dtype="<u8").astype(np.uint64, copy=False)


def _advert(advert: KeyAdvert) -> secagg_pb2.KeyAdvert:
    return secagg_pb2.KeyAdvert(
        seal_public=advert.seal_public, mask_publics=advert.mask_publics, signature=advert.signature
    )


def _keys(proto: secagg_pb2.KeyAdvert) -> KeyAdvert:
    return KeyAdvert(seal_public=proto.seal_public, mask_publics=tuple(proto.mask_publics), signature=proto.signature)


def _version(text: str) -> str:
    """Return a party's version if the text has the form of one; otherwise return an empty text."""
    return text if _VERSION.fullmatch(text) else ""


def _party(number: int) -> int:
    if number > LARGEST_ROSTER:
        raise ProtocolError("party number", expected=f"at most {LARGEST_ROSTER}", got=number)
    return number


def _parties(numbers: Iterable[int]) -> tuple[int, ...]:
    parties = tuple(_party(number) for number in numbers)
    if list(parties) != sorted(set(parties)):
        raise ProtocolError("list of parties", expected="ascending, each once", got="another order")
    return parties


def _by_party(sealed: Mapping[int, bytes]) -> dict[int, bytes]:
    return {_party(number): value for number, value in sealed.items()}

"""Messages between coordinator and party as plain values; `common/wire.py` turns them into bytes and back.

    coordinator                                        party
    Open(plan, first query)                       ->   Opened(encoder digest, keys)   once a run,
    AskShares(everybody's keys)                   ->   Shares                         or again after a failure

    Ask(query, delivery of the shares)            ->   Answer(masked words)           for each
    AskAgree(survivors)                           ->   Agreement(signature)           query
    AskUnmask(survivors, signatures)              ->   UnmaskShares

    Close                                         ->   Closed
    Release(texts)                                ->   Received                       after the run, if at all
    any                                           ->   Refusal(coarse reason)

AskAgree is skipped if the coordinator is trusted to follow the protocol. Without secure aggregation a run consists of
one Open and one Ask for each query, and the answer contains the party's whole noise. Answers that are not summed need
no agreement and no unmasking: they are noised inside the party and sent without masks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from common.domain import PartyId
from common.errors import ProtocolError
from common.queries.closed_set import Query
from common.secagg.messages import KEY_BYTES, KeyAdvert, UnmaskShares
from common.secagg.shamir import PAIR_BYTES

LARGEST_RELEASE = 200_000_000
"""Maximum size of a release, in bytes."""
LARGEST_BULK = 2**28
"""Maximum size of a bulk array, in bytes: a release, an answer of 2^24 words, 174,000 candidates of 384 dimensions."""
LARGEST_ENVELOPE = 2**26
"""Maximum size of an envelope, in bytes: keys or shares of 100 hospitals for 5,000 answers, on the full graph."""
LARGEST_PLAN = 2**16
"""Maximum size of a plan, in bytes, since a hospital stores each plan. Plans of our methods have about 600 bytes."""
LARGEST_OPENING = LARGEST_PLAN + 2**10
"""Maximum size of an envelope without keys or shares, in bytes: a plan and the envelope's other fields."""
_PARTY, _KEY = 2**8, KEY_BYTES + 2
"""Bounds on an envelope's bytes for a party (a key, a signature, a seal, numbers), and for a party's key for an answer,
with a tag and a length."""


def largest_request(*, parties: int, degree: int, answers: int) -> int:
    """Return a bound on an envelope's bytes in a run: all parties' keys, or all neighbours' shares, for all answers.

    Args:
        parties: Number of parties in the plan.
        degree: Number of neighbours of each party; 0 without secure aggregation.
        answers: Number of answers in the plan, attempts included.
    """
    return LARGEST_OPENING + parties * _PARTY + answers * max(parties * _KEY, degree * PAIR_BYTES)


@dataclass(frozen=True, slots=True)
class Parcel:
    """Unit of transport: a protobuf envelope and one bulk array as raw bytes, which can be split into chunks."""

    envelope: bytes
    bulk: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Open:
    """Begin or continue a run under this plan (canonical JSON), with query number `first`."""

    plan: bytes
    first: int = 0

    def __post_init__(self) -> None:
        """Raise a ProtocolError if the plan is too large."""
        if len(self.plan) > LARGEST_PLAN:
            expected, got = f"at most {LARGEST_PLAN:,} bytes", f"{len(self.plan):,}"
            raise ProtocolError("plan", expected=expected, got=got, do="Use fewer or shorter labels")


@dataclass(frozen=True, slots=True)
class Opened:
    """The party accepts the plan and runs the encoder with this digest. Under secure aggregation it sends its keys.

    Attributes:
        encoder: Digest of the encoder.
        advert: The party's keys; None if secure aggregation is not used.
        version: The version of Caucus that the party runs, for display only; empty if it is not known.
    """

    encoder: str
    advert: KeyAdvert | None = None
    version: str = ""


@dataclass(frozen=True, slots=True)
class AskShares:
    """Ask the party for shares of its secrets, given the public keys of all parties that take part."""

    adverts: Mapping[PartyId, KeyAdvert]


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the party's secrets, sealed for each peer. The coordinator passes them on and cannot open them."""

    sealed: Mapping[PartyId, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Delivery:
    """End of the set-up: the shares that the peers sealed for this party, and the parties that sent shares."""

    inbox: Mapping[PartyId, bytes] = field(repr=False)
    sharers: frozenset[PartyId]


@dataclass(frozen=True, slots=True)
class Ask:
    """A query on private records. It contains the delivery until this party has answered once."""

    query: Query
    delivery: Delivery | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The noised answer as (length,) uint64 words modulo 2^64; masked under secure aggregation."""

    words: NDArray[np.uint64] = field(repr=False)


@dataclass(frozen=True, slots=True)
class AskAgree:
    """Ask the party to sign the set of parties whose answers were summed."""

    survivors: frozenset[PartyId]


@dataclass(frozen=True, slots=True)
class Agreement:
    """This party's signature over the survivors."""

    signature: bytes


@dataclass(frozen=True, slots=True)
class AskUnmask:
    """Ask the party for the shares that unmask a sum, given the summed parties and their signatures over this set."""

    survivors: frozenset[PartyId]
    signatures: Mapping[PartyId, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Close:
    """End of the run: the party deletes its keys, and no plan of the run awaits the party's decision any longer."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The party has closed the run."""


@dataclass(frozen=True, slots=True)
class Release:
    """The run's synthetic texts, for a party that has answered in the run: the bytes of `synthetic.jsonl`."""

    texts: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Received:
    """The party has received the texts."""


class Reason(IntEnum):
    """Coarse reason for a refusal: the coordinator learns nothing else about an error at a party."""

    UNKNOWN = 0
    MALFORMED = 1
    OUT_OF_ORDER = 2
    UNPLANNED = 3
    OVER_LIMIT = 4
    TOO_FEW = 5
    ENCODER = 6
    INTERNAL = 7
    IDENTITY = 8
    AWAITING = 9
    DECLINED = 10
    ROSTER = 11
    RECORDS = 12
    SETTINGS = 13
    FULL = 14
    SURVIVORS = 15


WORDS: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.UNKNOWN: "it does not say why",
        Reason.MALFORMED: "it cannot read the message: do both sides run the same version?",
        Reason.OUT_OF_ORDER: "the message is not the next one of this run there: its service may have restarted",
        Reason.UNPLANNED: "the message is not in the plan that it agreed to",
        Reason.OVER_LIMIT: (
            "the plan, the query or the texts are beyond its own limits, or it has closed the run or the query, "
            "or taken other texts before"
        ),
        Reason.TOO_FEW: "fewer hospitals are left than the plan's noise and masks need",
        Reason.ENCODER: "its encoder is not the plan's",
        Reason.INTERNAL: "something failed there, and its own log says what",
        Reason.IDENTITY: "a signature or a member of the exchange is not the one that its roster says",
        Reason.AWAITING: "has not decided yet (caucus-party approve)",
        Reason.DECLINED: "somebody there has refused the plan, and may reconsider (caucus-party approve --refused)",
        Reason.ROSTER: "the plan's hospitals differ from its roster",
        Reason.RECORDS: "its file of records is not the one that the run began with, or that its service has read",
        Reason.SETTINGS: "its settings are wrong, or have changed since its service started",
        Reason.FULL: "it has no room for another run, answer, release or line of its log",
        Reason.SURVIVORS: "it has agreed to the sum of this query over other hospitals, and to no second one",
    }
)
"""For each reason, a clause that tells the coordinator's operator why a hospital ("it") refused; see `refused_for`."""


def refused_for(reason: Reason, words: str = "") -> str:
    """Return a clause to follow a hospital's name: that the hospital refused, and why; for `AWAITING`, only why.

    A clause about the reason may replace the one in `WORDS`.
    """
    words = words or WORDS[reason]
    return words if reason is Reason.AWAITING else f"refused: {reason.name}, {words}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The party refuses to answer."""

    reason: Reason


Request = Open | AskShares | Ask | AskAgree | AskUnmask | Close | Release
Reply = Opened | Shares | Answer | Agreement | UnmaskShares | Closed | Received | Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One message with its position in the run.

    Attributes:
        run: ID of the run.
        party: Receiver of a request, or sender of a reply.
        plan_digest: SHA-256 of the agreed plan, 32 bytes.
        index: Index of the query in the plan, counted from 0.
        attempt: Attempt number of the set-up, from 0; each set-up creates new keys.
        body: The message.
    """

    run: str
    party: PartyId
    plan_digest: bytes
    index: int = 0
    attempt: int = 0
    body: Request | Reply

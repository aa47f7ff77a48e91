"""What coordinator and party say to each other, as plain values; `common/wire.py` turns them into bytes and back.

    coordinator                                party
    Open(plan)                            ->   Opened(encoder digest)
    AskKeys(roster, length)               ->   KeyAdvert             one round of
    AskShares(adverts)                    ->   Shares                secure
    AskVotes(query, inbox)                ->   Answer(masked words)  aggregation
    AskUnmask(survivors)                  ->   UnmaskShares
    Close                                 ->   Closed
    any                                   ->   Refusal(coarse reason)

Without secure aggregation a round is `AskVotes -> Answer` alone, and the answer carries the party's whole noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from common.domain import PartyId
from common.queries import Votes
from common.secagg.messages import KeyAdvert, UnmaskShares

VERSION = 1
"""Protocol version; a party refuses every other one."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """What travels: a protobuf envelope and one bulk array as raw bytes, so that transports can cut it into chunks."""

    envelope: bytes
    bulk: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Open:
    """Begin a run under this plan (canonical JSON)."""

    plan: bytes


@dataclass(frozen=True, slots=True)
class Opened:
    """The party accepts the plan and runs the encoder with this digest."""

    encoder: str


@dataclass(frozen=True, slots=True)
class AskKeys:
    """Begin a round of secure aggregation among `roster` for a vector of `length` words."""

    roster: tuple[PartyId, ...]
    length: int


@dataclass(frozen=True, slots=True)
class AskShares:
    """The public keys of all who take part."""

    adverts: Mapping[PartyId, KeyAdvert]


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares sealed for each peer; the coordinator passes them on and cannot open them."""

    sealed: Mapping[PartyId, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class AskVotes:
    """The private query itself, with the sealed shares that peers sent to this party."""

    query: Votes
    inbox: Mapping[PartyId, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """The noised words, uint64 modulo 2^64, (length,); masked under secure aggregation."""

    words: NDArray[np.uint64] = field(repr=False)


@dataclass(frozen=True, slots=True)
class AskUnmask:
    """The parties whose answers were summed."""

    survivors: frozenset[PartyId]


@dataclass(frozen=True, slots=True)
class Close:
    """The run is over: forget its keys."""


@dataclass(frozen=True, slots=True)
class Closed:
    """Done."""


class Reason(IntEnum):
    """All that a coordinator learns of what went wrong at a party."""

    UNKNOWN = 0
    MALFORMED = 1
    OUT_OF_ORDER = 2
    UNPLANNED = 3
    OVER_LIMIT = 4
    TOO_FEW = 5
    ENCODER = 6
    INTERNAL = 7


@dataclass(frozen=True, slots=True)
class Refusal:
    """The party does not answer."""

    reason: Reason


Request = Open | AskKeys | AskShares | AskVotes | AskUnmask | Close
Reply = Opened | KeyAdvert | Shares | Answer | UnmaskShares | Closed | Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One message with its place in the run.

    Attributes:
        run: Identity of the run.
        party: The party that it is for, or from.
        plan_digest: SHA-256 of the agreed plan, 32 bytes.
        index: Number of the query in the plan, from 0.
        attempt: From 0; a query that failed may be asked again.
        body: The message.
    """

    run: str
    party: PartyId
    plan_digest: bytes
    index: int = 0
    attempt: int = 0
    body: Request | Reply

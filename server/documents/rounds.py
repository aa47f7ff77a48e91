"""`rounds.jsonl`: a line for each round, with requests to the models, queries to the parties, and results."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from server.documents import codec
from server.documents.codec import ABSENT, OTHERS
from server.documents.files import Document

WORK = ("generate", "embed", "ask")
"""Kinds of work whose seconds are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens(Document):
    """Tokens of all requests of a round.

    Attributes:
        input: Tokens read.
        cached: Tokens read from a provider's prompt cache.
        output: Tokens written.
    """

    input: int
    cached: int = 0
    output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment(Document):
    """Payments for one remote model.

    Attributes:
        replies: Number of replies.
        input_tokens: Tokens read.
        cached_tokens: Number of the input tokens that were read from the prompt cache.
        output_tokens: Tokens written.
        cost: Cost in the currency of the prices; None if the price is unknown.
    """

    replies: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost: float | None

    def __sub__(self, other: "Payment") -> "Payment":
        unknown = self.cost is None or other.cost is None
        return Payment(
            replies=self.replies - other.replies,
            input_tokens=self.input_tokens - other.input_tokens,
            cached_tokens=self.cached_tokens - other.cached_tokens,
            output_tokens=self.output_tokens - other.output_tokens,
            cost=None if unknown else round(self.cost - other.cost, 6),  # type: ignore[operator]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuery(Document):
    """A query that the parties answered.

    Attributes:
        index: Index of the attempt among all attempts of the plan.
        name: The query's name in the plan.
        mechanism: The mechanism that adds noise to the answers.
        scale: Scale of the noise in the answer's unit.
        noise: Standard deviation of the noise in the sum; None for answers that are not summed.
        survivors: Number of parties whose answers are in the result.
        parties: Number of parties that were asked.
    """

    index: int
    name: str
    mechanism: str
    scale: float
    noise: float | None = None
    survivors: int
    parties: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport(Document):
    """A round. The method creates the report; `server/run.py` adds the queries, and measurements from `fid` on.

    Attributes:
        round: Number of the round: from 0 in the program, from 1 in the file.
        requested: Number of texts requested as candidates, for each model.
        generated: Number of requested texts that became candidates, for each model.
        lost: Number of requested texts that did not become candidates, for each model.
        candidates: Number of candidates after the round.
        tokens: Tokens of all models.
        calls: Number of requests.
        losses: Number of replies with fewer texts than requested, for each model and reason (`server.llm.base.LOSSES`).
        cleaned: Number of changes and dropped texts, for each model and each rule of the cleaner.
        queries: The queries asked in the round.
        notes: Remarks for the reader.
        figures: Figures that this method alone reports, such as WASP's weights, stored among the other fields.
        fid: Distance to the held-out texts; None if there are none.
        fid_error: Standard error of `fid`; None if there is no `fid`, or for very few texts.
        seconds: Seconds for each kind of work; None until the run has measured the round.
        paid: Payments for the round, for each remote model.
        epsilon: Privacy loss of all answers so far; None in earlier versions.
    """

    FILE: ClassVar[str] = "rounds.jsonl"

    round: int
    requested: Mapping[str, int]
    generated: Mapping[str, int]
    lost: Mapping[str, int]
    candidates: int
    tokens: Tokens
    calls: int
    losses: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    cleaned: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    queries: tuple[AskedQuery, ...] = ()
    notes: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict, metadata=OTHERS)
    fid: float | None = None
    fid_error: float | None = None
    seconds: Mapping[str, float] | None = None
    paid: Mapping[str, Payment] = field(default_factory=dict)
    epsilon: float | None = field(default=None, metadata=ABSENT)

    def to_json(self) -> dict[str, Any]:
        """Return the report as strict JSON. Measurements are absent until the run has made them."""
        line = codec.to_json(self)
        return line if self.seconds is not None else {name: line[name] for name in line if name not in _MEASURED}

    def for_readers(self) -> "RoundReport":
        """Return the round with its number counted from 1, for people; the program counts from 0."""
        return replace(self, round=self.round + 1)

    @property
    def label_shares(self) -> Mapping[str, float]:
        """Proportion of each label among the records, from noised answers; empty if the method did not ask for it."""
        counted = self.figures.get("metadata")
        shares = self.figures.get("shares") or (counted.get("labels") if isinstance(counted, Mapping) else None)
        return shares if isinstance(shares, Mapping) and all(map(codec.is_number, shares.values())) else {}


_MEASURED = {"fid", "fid_error", "seconds", "paid", "epsilon"}

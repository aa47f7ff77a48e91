"""`rounds.jsonl`: a line for each round, with requests to the models, queries to the parties, and results."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from server.documents import codec
from server.documents.codec import ABSENT, OTHERS
from server.documents.files import Document

WORK = ("generate", "embed", "ask")
"""Kinds of work for which the seconds are measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens(Document):
    """Numbers of tokens in all requests of a round.

    Attributes:
        input: Tokens read by the models.
        cached: Tokens in `input` that were read from a provider's prompt cache.
        output: Tokens written by the models.
    """

    input: int
    cached: int = 0
    output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment(Document):
    """Payments for one remote model.

    Attributes:
        replies: Number of replies.
        input_tokens: Number of tokens read.
        cached_tokens: Number of the input tokens that were read from the prompt cache.
        output_tokens: Number of tokens written.
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
class RoundQuery(Document):
    """A query that the parties answered.

    Attributes:
        index: Index of the attempt among all attempts of the plan.
        name: The query's name in the plan.
        mechanism: The mechanism that adds noise to the answers.
        scale: Scale of the noise in the answer's unit.
        noise: Standard deviation of the noise in the sum; None for answers that are not summed.
        survivors: Number of parties whose answers are included in the result.
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
class Exchange(Document):
    """A prompt and its reply, as an example for readers; never one that may hold private text.

    Attributes:
        written_by: Name of the model.
        prompt: The prompt as the model got it.
        reply: The model's whole output, before parsing.
    """

    written_by: str
    prompt: str
    reply: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LostReply(Document):
    """A reply with lost texts, as an example for readers; never one to a prompt that may hold private text.

    Attributes:
        written_by: Name of the model.
        reply: The beginning of the model's output, before parsing.
    """

    written_by: str
    reply: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport(Document):
    """Report on a round. The method creates it; `server/run.py` adds `queries`, and the measurements from `fid` on.

    Attributes:
        round: Round number: from 0 in the program, from 1 in the file.
        requested: Number of texts requested as candidates, keyed by model. A text that one model did not write and
            another one did counts for both.
        generated: Number of requested texts that became candidates, keyed by model.
        lost: Number of requested texts that did not become candidates, keyed by model.
        candidates: Number of candidates after the round.
        tokens: Numbers of tokens of all models.
        calls: Number of requests to the models.
        losses: Number of replies with fewer texts than requested, keyed by model and reason (`server.llm.base.LOSSES`).
        cleaned: Number of repaired and dropped texts, keyed by model and by rule of the cleaner.
        queries: The queries asked in the round.
        notes: Remarks for the reader.
        figures: Figures that only this method reports, such as WASP's weights; the file stores them beside the other
            fields.
        fid: Distance (FID) of the texts from the held-out texts; None if there are no held-out texts.
        fid_error: Standard error of `fid`; None if there is no `fid`, or if there are very few texts.
        seconds: Seconds, keyed by kind of work; None until the run has measured the round.
        paid: Payments for the round, keyed by remote model.
        epsilon: Privacy loss of all answers so far; None in earlier versions.
        prompts: The first prompt of each kind in the round that may be shown, with its reply, keyed by kind
            (`server.llm.base.PROMPTS`). Prompts whose replies come from a cache are left out.
        lost_replies: The first replies of each kind of loss in the round that may be shown, keyed by kind
            (`server.llm.base.LOSSES`). Replies that come from a cache are left out.
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
    queries: tuple[RoundQuery, ...] = ()
    notes: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict, metadata=OTHERS)
    fid: float | None = None
    fid_error: float | None = None
    seconds: Mapping[str, float] | None = None
    paid: Mapping[str, Payment] = field(default_factory=dict)
    epsilon: float | None = field(default=None, metadata=ABSENT)
    prompts: Mapping[str, Exchange] = field(default_factory=dict, metadata={"absent": {}})
    lost_replies: Mapping[str, tuple[LostReply, ...]] = field(default_factory=dict, metadata={"absent": {}})

    def to_json(self) -> dict[str, Any]:
        """Return the report as strict JSON. Measurements are omitted until the run has made them."""
        line = codec.to_json(self)
        return line if self.seconds is not None else {name: line[name] for name in line if name not in _MEASURED}

    def for_readers(self) -> "RoundReport":
        """Return the round numbered from 1, for readers, while the program numbers rounds from 0."""
        return replace(self, round=self.round + 1)

    @property
    def label_shares(self) -> Mapping[str, float]:
        """Proportions of the labels among the records, from noised answers, keyed by label; empty if not queried."""
        counted = self.figures.get("metadata")
        shares = self.figures.get("shares") or (counted.get("labels") if isinstance(counted, Mapping) else None)
        return shares if isinstance(shares, Mapping) and all(map(codec.is_number, shares.values())) else {}


_MEASURED = {"fid", "fid_error", "seconds", "paid", "epsilon"}


def first_round(rounds: Collection[int], done: int) -> int:
    """Return the number displayed for the first round, which is round 0 internally.

    Methods that vary texts after the votes of a round give the new texts the number of completed rounds, so for these
    methods the number 0 means that a text was written before all rounds.
    """
    return 0 if done in rounds else 1

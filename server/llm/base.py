"""What a method asks of a language model, and what it gets: `provider.generate([Request(...)]) -> [Reply(...)]`.

A request is structured: which fields are set says what is wanted, every provider reads the same fields, and the hash of
the canonical form names the reply in the cache. Private text is never in one: what is shown are synthetic texts, chosen
by votes that were noised before anyone saw them, or texts that were released already (`server/llm/prompts.py`).
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

from common.errors import ConfigError
from common.validate import at_least, in_range, not_empty
from server.domain import Wording

_PARENTS = 2
_SEEDS = 2**64 - 1
_TEXTS = ("good", "bad", "source", "must")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt, before anyone has put it into words.

    The mode follows from the fields: `phrases` asks for a list of subtopics; two `source` texts for a crossover, one
    with `blanks` for filling in, one that is an `abstract` for a text of that content, one without either for a
    paraphrase; else `good` and `bad` for a contrastive prompt, `good`
    alone for one by example; else zero-shot. `label`, `attribute`, `must` and `words` narrow any of them.

    Attributes:
        task_kind: What one text is, for example "emergency-department note".
        labels: Every label of the task with its public description.
        label: The label to write for; None where the prompt must not name one.
        n: How many texts, or phrases, are wanted.
        attribute: A public attribute of the text, such as a topic.
        good: Exemplars to follow and to surpass.
        bad: Exemplars to move away from; need `good` beside them.
        source: The text to rewrite, or the two to cross.
        blanks: Share of the source's words to replace, in [0, 1].
        abstract: The source is an abstract of each text that is wanted; without a source, abstracts are wanted.
        must: Keyphrases that each text contains.
        good_must: Keyphrases that each good exemplar contains, in their order; empty, or one tuple for each.
        phrases: Short phrases are wanted, each a subtopic of the label, and no texts.
        words: Length of each text in words, about.
        temperature: Spread of the sampling, for models that have such a setting.
        seed: Names this request among equal ones, and seeds models that take a seed; 64 bits.
        wording: How a chat model's prompt speaks of the texts.
    """

    task_kind: str
    labels: tuple[tuple[str, str], ...]
    label: str | None = None
    n: int = 1
    attribute: str | None = None
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    blanks: float = 0.0
    abstract: bool = False
    must: tuple[str, ...] = ()
    good_must: tuple[tuple[str, ...], ...] = ()
    phrases: bool = False
    words: int | None = None
    temperature: float = 1.0
    seed: int = 0
    wording: Wording = field(default_factory=Wording)

    def __post_init__(self) -> None:
        """Refuse what no provider could read in one way only."""
        not_empty(task_kind=self.task_kind, labels=self.labels)
        at_least(1, n=self.n)
        in_range(0, 1, blanks=self.blanks)
        in_range(0, 2, temperature=self.temperature)
        in_range(0, _SEEDS, seed=self.seed)
        if self.words is not None:
            at_least(1, words=self.words)
        known = [label for label, _ in self.labels]
        if len(set(known)) < len(known):
            raise ConfigError("labels", expected="each label once", got=f"{len(known) - len(set(known))} repeated")
        if self.label is not None and self.label not in known:
            raise ConfigError("label", expected=f"one of {', '.join(known)}", got=repr(self.label))
        self._fit_together()
        named = [*((name, getattr(self, name)) for name in _TEXTS), *(("good_must", own) for own in self.good_must)]
        for name, texts in named:
            if not all(text.strip() for text in texts):
                raise ConfigError(name, expected="texts that are not blank", got="a blank one")

    def _fit_together(self) -> None:
        if len(self.source) > _PARENTS:
            raise ConfigError("source", expected="at most two texts", got=len(self.source))
        if self.source and (self.good or self.bad):
            raise ConfigError("source", expected="no exemplars beside a source text", got="both")
        if self.blanks and len(self.source) != 1:
            raise ConfigError("blanks", expected="one source text to refill", got=len(self.source))
        if self.abstract and (self.blanks or self.good or self.phrases or len(self.source) > 1):
            raise ConfigError("abstract", expected="beside it at most one source text, whole", got="more")
        if self.bad and not self.good:
            raise ConfigError("bad", expected="good exemplars beside the bad ones", got="none")
        if self.good_must and (len(self.good_must) != len(self.good) or self.bad or not self.must):
            expected = "keyphrases for each good exemplar, beside some for the new text, and no bad exemplars"
            raise ConfigError("good_must", expected=expected, got=f"{len(self.good_must)} for {len(self.good)}")
        if self.phrases and (self.source or self.good or self.must or self.words is not None):
            raise ConfigError("phrases", expected="neither texts nor keyphrases nor a length beside it", got="some")

    @property
    def description(self) -> str:
        """The public description of the wanted label, empty without one."""
        return dict(self.labels)[self.label] if self.label is not None else ""

    @property
    def shown(self) -> tuple[str, ...]:
        """All texts that a prompt shows, none of which may come back."""
        return self.good + self.bad + self.source

    def canonical(self) -> str:
        """The one JSON form of this request: sorted keys, no spaces, ASCII."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    def key(self, provider: str) -> str:
        """SHA-256 in hexadecimal of a provider's identity and this request: the name of the reply in the cache."""
        return hashlib.sha256(f"{provider}\x1f{self.canonical()}".encode()).hexdigest()


LOSSES = ("refused", "filtered", "empty", "truncated", "malformed", "too long", "failed")
"""Why a reply holds fewer texts than it might: the model refused; a content filter of its server did; it wrote nothing
that can be read as texts; it broke off; the answer was no answer; the prompt was too long; every attempt failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back for one request.

    Attributes:
        texts: The texts, or phrases: at most as many as were wanted; fewer, or none, where the model refused or wrote
            something else.
        input_tokens: Tokens read, cached ones among them, as the provider counts them; zero tokens both ways mean that
            no reply came.
        output_tokens: Tokens written, as the provider counts them.
        cached_tokens: Of the tokens read those that the provider had read before, which cost less.
        loss: One of `LOSSES`, or None; a truncated reply keeps its whole texts.
    """

    texts: tuple[str, ...]
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    loss: str | None = None


Arrived = Callable[[int, Reply], None]
"""Called with a request's position and its reply as soon as there is one, in the thread that asked."""


class Provider(Protocol):
    """A language model. It owns concurrency, retries and parsing, so that methods know of none of them."""

    @property
    def name(self) -> str:
        """How reports, weights and candidates name this model."""

    @property
    def identity(self) -> str:
        """All that a reply depends on beside the request, such as model and settings; never a key."""

    @property
    def remote(self) -> bool:
        """Whether it works on somebody else's machine: then others need not wait for it."""

    def check(self) -> None:
        """Probe the model once, before any private query. Cheap.

        Raises:
            ProviderError: The model would not answer, with the reason.
        """

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """The replies, in the order of the requests.

        Args:
            requests: Any number of them.
            arrived: Called with each reply as it comes, in any order; a cache stores it, a progress bar counts it.

        Raises:
            ProviderError: Nothing works at all. One lost or refused item is an empty reply instead.
        """

    def estimate(self, request: Request) -> tuple[int, int]:
        """Input and output tokens to expect, for the forecast before anything is paid."""

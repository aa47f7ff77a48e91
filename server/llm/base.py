"""A method's requests to a language model, and the replies: `provider.generate([Request(...)]) -> [Reply(...)]`.

A request is structured: the fields that are set determine its mode, and every provider reads the same fields. The hash
of its canonical form is the cache key of the reply. A request never contains private text: it shows synthetic texts,
selected by votes that are noised before anyone sees them, or released texts (`server/llm/requests.py`).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol

from common.errors import ConfigError, InternalError
from common.validate import at_least, in_range, not_empty
from server.domain import Wording
from server.llm.marks import Marks

_PARENTS = 2
_SEEDS = 2**64 - 1
_TEXTS = ("good", "bad", "source", "must")
_USUAL_WORDS, _WORDS_OF_A_PHRASE = 60, 3

SIMPLIFIED = "contrast"
"""The only mode that is simply dropped from a request if the model declines it; see `accepted`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt as structured data, independent of its wording.

    The mode follows from the fields. With `phrases`, subtopics are requested; with two `source` texts, a crossover of
    these texts. With one `source` text, a paraphrase is requested. If `blanks` is set too, some words of the source are
    to be replaced instead; if `abstract` is set, a text is requested whose abstract is the source. With `abstract` and
    no source, abstracts are requested. Otherwise, `good` and `bad` together lead to a contrastive prompt, `good` alone
    to a prompt by example, and the absence of both to a zero-shot prompt. `label`, `attribute`, `must` and `words` can
    restrict any of these requests.

    Attributes:
        task_kind: Kind of text, for example "emergency-department note".
        labels: Every label of the task with its public description.
        label: Label of the new texts; None if the prompt must not name one.
        n: Number of texts, or phrases, requested.
        attribute: A public attribute of the text, such as a topic.
        good: Exemplars to follow and to surpass.
        bad: Exemplars to move away from; they require `good`.
        source: The text to rewrite, or the two texts to cross.
        blanks: Fraction of the source's words to replace, in [0, 1].
        abstract: Whether the source is the abstract of each requested text; without a source, whether abstracts are
            requested.
        must: Keyphrases that each text contains.
        good_must: Keyphrases that the good exemplars contain: one tuple per exemplar, in the order of `good`; may be
            empty.
        phrases: Whether to request short phrases, each a subtopic of the label, instead of texts.
        words: Approximate length of each text in words.
        temperature: Sampling temperature, for models that have this setting.
        seed: 64-bit number that distinguishes this request from otherwise equal ones, and seeds models that accept a
            seed.
        wording: Terms for the texts in a chat model's prompt.
        more: Labels that each new text has in addition to `label`.
        marks: Types of the spans that are marked in each requested text, and in the texts shown; None requests no
            marks.
        showable: Whether its maker states that all texts and keyphrases in the request are synthetic, public, or drawn
            from noised answers; see `may_be_shown`.
        before: The text written so far, if its next section is requested; empty for the first section. None requests
            whole texts.
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
    more: tuple[str, ...] = ()
    marks: Marks | None = None
    before: str | None = None
    showable: bool = False

    def __post_init__(self) -> None:
        """Raise `ConfigError` for an ambiguous combination of fields."""
        not_empty(task_kind=self.task_kind, labels=self.labels)
        at_least(1, n=self.n)
        in_range(0, 1, blanks=self.blanks)
        in_range(0, 2, temperature=self.temperature)
        in_range(0, _SEEDS, seed=self.seed)
        if self.words is not None:
            at_least(1, words=self.words)
        names = [label for label, _ in self.labels]
        if len(set(names)) < len(names):
            raise ConfigError("labels", expected="each label once", got=f"{len(names) - len(set(names))} repeated")
        for label in (self.label, *self.more):
            if label is not None and label not in names:
                raise ConfigError("label", expected=f"one of {', '.join(names)}", got=repr(label))
        if self.more and self.label is None:
            raise ConfigError("more", expected="a label before the further ones", got="none")
        self._fit_together()
        fields = [(name, getattr(self, name)) for name in _TEXTS]
        for name, texts in [*fields, *(("good_must", phrases) for phrases in self.good_must)]:
            if not all(text.strip() for text in texts):
                raise ConfigError(name, expected="texts that are not blank", got="a blank one")

    def _fit_together(self) -> None:
        if len(self.source) > _PARENTS:
            raise ConfigError("source", expected="at most two texts", got=len(self.source))
        if self.source and (self.good or self.bad):
            raise ConfigError("source", expected="no exemplars together with a source text", got="both")
        if self.blanks and len(self.source) != 1:
            raise ConfigError("blanks", expected="one source text to refill", got=len(self.source))
        if self.abstract and (self.blanks or self.good or self.phrases or len(self.source) > 1):
            raise ConfigError("abstract", expected="at most one source text, unblanked, and no exemplars", got="more")
        if self.bad and not self.good:
            raise ConfigError("bad", expected="good exemplars as well as bad ones", got="none")
        if self.good_must and (len(self.good_must) != len(self.good) or self.bad or not self.must):
            expected = "keyphrases for each good exemplar and for the new text, and no bad exemplars"
            raise ConfigError("good_must", expected=expected, got=f"{len(self.good_must)} for {len(self.good)}")
        if self.before is not None and (self.source or self.bad or self.abstract or self.phrases):
            raise ConfigError("before", expected="no texts but good exemplars in a section's request", got="others")
        if self.phrases and (self.source or self.good or self.must or self.words is not None):
            raise ConfigError("phrases", expected="no texts, keyphrases or length in the same request", got="some")

    @property
    def requested(self) -> tuple[tuple[str, str], ...]:
        """The requested label, or labels, each with its public description; empty if no label is requested."""
        described = dict(self.labels)
        return tuple((label, described[label]) for label in (self.label, *self.more) if label is not None)

    @property
    def description(self) -> str:
        """Public descriptions of the requested labels, in one string; empty if no label is requested."""
        return "; ".join(description for _, description in self.requested)

    @property
    def modes(self) -> frozenset[str]:
        """The modes of `MODES` that the request uses."""
        return frozenset(mode for mode, used in _USES.items() if used(self))

    @property
    def prompt(self) -> str:
        """The kind of prompt that the request gets, one of `PROMPTS`."""
        return next(kind for kind, asked in PROMPTS.items() if asked(self))

    @property
    def zero_shot(self) -> bool:
        """Whether the request shows no texts and prescribes no words, so that a model has only the task to go by."""
        return not (self.good or self.source or self.abstract or self.must or self.phrases)

    @property
    def shown(self) -> tuple[str, ...]:
        """All texts that a prompt shows; a reply must not contain any of them."""
        return self.good + self.bad + self.source + ((self.before,) if self.before else ())

    @property
    def may_be_shown(self) -> bool:
        """Whether a run folder may keep the prompt and its reply: not if any text in it may be private."""
        return self.showable or not (self.shown or self.must)

    @property
    def expected_words(self) -> float:
        """Expected words of all texts: as requested, or else as in the texts shown, or else 60 each (a phrase: 3)."""
        shown = self.good or self.source
        unseen = _WORDS_OF_A_PHRASE if self.phrases else _USUAL_WORDS
        words_per_text = sum(len(text.split()) for text in shown) / len(shown) if shown else unseen
        return self.n * (self.words or words_per_text)

    def with_texts(self, change: Callable[[str], str], *, marks: Marks | None) -> "Request":
        """Return the request with `change` applied to each text that it shows, and with these marks."""
        good, bad, source = (tuple(map(change, texts)) for texts in (self.good, self.bad, self.source))
        return replace(self, good=good, bad=bad, source=source, marks=marks)

    def canonical(self) -> str:
        """Return the canonical JSON of this request: sorted keys, no spaces, ASCII."""
        fields = asdict(self)
        del fields["showable"]  # no part of the prompt
        if not self.more:
            del fields["more"]  # the form from before texts had several labels: caches keep their replies
        if self.marks is None:
            del fields["marks"]  # and from before marks
        if self.before is None:
            del fields["before"]  # and from before sections
        if not self.wording.plural:
            del fields["wording"]["plural"]  # and from before plurals
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))

    def key(self, provider: str) -> str:
        """Return the cache key of the reply: the hex SHA-256 of the provider's identity and this request."""
        return hashlib.sha256(f"{provider}\x1f{self.canonical()}".encode()).hexdigest()


_USES: Mapping[str, Callable[[Request], object]] = {
    "contrast": lambda request: request.bad,
    "keyphrases": lambda request: request.must,
    "rewriting": lambda request: len(request.source) == 1 and not request.blanks and not request.abstract,
    "crossing": lambda request: len(request.source) == _PARENTS,
    "blanks": lambda request: request.blanks,
    "abstracts": lambda request: request.abstract,
    "subtopics": lambda request: request.phrases,
}

MODES = tuple(_USES)
"""Request modes that a provider may decline. Zero-shot requests and requests by example are always accepted.

In contrast mode the prompt shows good and bad exemplars; in keyphrases mode each text must contain the phrases in
`must`. A source text is paraphrased in rewriting mode, combined with a second source text in crossing mode, and changed
in some of its words in blanks mode. Abstracts mode requests abstracts, or texts written from abstracts; subtopics mode
requests phrases."""

PROMPTS: Mapping[str, Callable[[Request], object]] = {
    "subtopics": _USES["subtopics"],
    "from_abstract": lambda request: request.abstract and request.source,
    "abstracts": _USES["abstracts"],
    "crossing": _USES["crossing"],
    "blanks": _USES["blanks"],
    "paraphrase": _USES["rewriting"],
    "section": lambda request: request.before is not None,
    "contrast": _USES["contrast"],
    "keyphrases": _USES["keyphrases"],
    "examples": lambda request: request.good,
    "zero_shot": lambda _: True,
}
"""Kinds of prompts, each with a file in `server/llm/prompts`. A request gets the first one that its fields ask for."""


def accepted(request: Request, declines: frozenset[str]) -> Request:
    """Return the request as it may be sent to a model that declines these modes.

    If contrast is declined, the bad exemplars are left out; any other request is returned unchanged.

    Raises:
        InternalError: The request uses a declined mode other than contrast. Runs with such requests are rejected
            beforehand.
    """
    declined = request.modes & declines
    if others := declined - {SIMPLIFIED}:
        raise InternalError("request", expected=f"no {', '.join(sorted(declines))}", got=", ".join(sorted(others)))
    return replace(request, bad=()) if declined else request


_EXPLAIN = "say in task.kind and task.wording that the texts are invented and what they are for, or take another model"
_INSTRUCT = "take a model that follows instructions better, or change the prompts (llm.prompts)"

LOSSES: Mapping[str, str] = {
    "failed": "start the model's server again, or check the network and the server's limits",
    "refused": _EXPLAIN,
    "filtered": "loosen the content filter of the model's provider, or take another model",
    "truncated": "raise llm.models.NAME.max_tokens (max_new_tokens of a local model), turn the model's reasoning off, "
    "or ask for shorter texts (method.words) or fewer at a time (method.texts_per_request)",
    "unreadable": f"{_INSTRUCT}: a reply must be the texts alone",
    "short": "ask for one text at a time (method.texts_per_request=1)",
    "empty": "turn off tools and reasoning in the model's server: its replies have no text",
    "malformed": "check that llm.models.NAME.base_url is the address of an API for chats, without a sign-in page",
    "too long": "show fewer or shorter exemplars (method.shots), or take a model of longer context",
    # Texts that the cleaner drops, by its rule; from here on a count is one of texts, not of replies.
    "shells": "describe the texts and their writer (task.kind, task.wording), or take a larger model",
    "names": "describe the labels (task.labels), or take a larger model",
    "refusals": _EXPLAIN,
    "placeholders": "give public texts as examples (task.public_text), or take a larger model",
    "echoes": _INSTRUCT,
    "copies": "raise method.temperature, or take a larger model: it repeats the texts that it is shown",
    "duplicates": "a fixed seed, a temperature of 0 (method.temperature) and a gateway that caches make equal replies: "
    "change them in the model's server, or ask for fewer texts (method.samples)",
    "languages": "set task.language, or take a model that writes the language better",
    "foreign": "give public texts in the script that you want (task.public_text), or take another model",
    "no section": "take a larger model, which writes the section that is requested and no other",
    "no spans": "take a larger model, which marks spans (task.spans)",
}
"""Kinds of loss, each with advice: reasons why a reply has fewer texts than requested, and rules by which texts of a
reply are dropped. Every attempt failed; the model refused; the server's content filter blocked the reply; the reply was
cut off; it has text, but no text that can be read; it has fewer texts than requested; it has no text at all; the
server's answer could not be parsed; the prompt was too long."""


def shown_loss(kind: str) -> str:
    """Return the name of a kind of loss as readers see it."""
    return "with too few texts" if kind == "short" else kind


def kind_of_loss(counted: str) -> str | None:
    """Return the kind of loss that is counted under this name; None for a repair, which loses no text.

    The cleaner counts some kinds with a reason, as in "no spans: an unknown type".
    """
    kind = counted.partition(":")[0]
    return kind if kind in LOSSES else None


def advice_on(kind: str, model: str) -> str:
    """Return the advice on a kind of loss of this model."""
    return LOSSES[kind].replace("NAME", model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply to one request.

    Attributes:
        texts: The texts or phrases, at most the requested number; fewer, or none, if the model refused or wrote
            something else.
        input_tokens: Tokens read, cached ones included, as the provider counts them; zero input and output tokens mean
            that there was no reply.
        output_tokens: Tokens written, as the provider counts them.
        cached_tokens: Tokens read from the provider's prompt cache, which cost less.
        loss: Reason why texts are missing, one of `LOSSES`; None if there is no such reason. A truncated reply keeps
            its complete texts. A reply without texts whose reason is None or "empty" gets "unreadable" if the model
            wrote something, and else "empty".
        prompt: The prompt as the model got it; empty if the reply comes from a cache, or the model gets no prompt.
        raw: The model's whole output, before parsing; empty if there is no prompt.
    """

    texts: tuple[str, ...]
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    loss: str | None = None
    prompt: str = ""
    raw: str = ""

    def __post_init__(self) -> None:
        if not self.texts and self.loss in (None, "empty"):
            object.__setattr__(self, "loss", "unreadable" if self.raw.strip() else "empty")


NO_REPLY = Reply(texts=(), input_tokens=0, output_tokens=0, loss="failed")
"""Stands for the reply of a request whose every attempt failed."""

Arrived = Callable[[int, Reply], None]
"""Called with a request's index and its reply as soon as the reply arrives, in the calling thread."""


class Provider(Protocol):
    """A language model. It handles concurrency, retries and parsing, so that methods do not have to."""

    @property
    def name(self) -> str:
        """Name of this model in reports, weights and candidates."""

    @property
    def identity(self) -> str:
        """Everything that a reply depends on besides the request, such as model and settings, but never an API key."""

    @property
    def remote(self) -> bool:
        """Whether the model runs on another machine, so that the other models need not wait for it."""

    @property
    def declines(self) -> frozenset[str]:
        """The modes of `MODES` that this model does not support; the model receives `accepted(request, declines)`."""

    def check(self) -> None:
        """Check by one cheap call that the model answers, before any private query.

        Raises:
            ProviderError: The model does not answer; the error states the reason.
        """

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """Generate the replies, in the order of the requests.

        Args:
            requests: Any number of requests.
            arrived: Called with each reply when it arrives, in any order, for a cache or a progress bar.

        Raises:
            ProviderError: The model as a whole fails. A single request that is lost or refused gets an empty reply
                instead.
        """

    def estimate(self, request: Request) -> tuple[int, int]:
        """Return the expected numbers of input and output tokens, for the cost forecast."""

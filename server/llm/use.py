"""Totals of the requests sent to models and of the replies: tokens, and losses counted by what they are."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from common.phrases import series
from common.system.log_lines import printable_line
from server.documents.rounds import Exchange, LostReply
from server.llm.base import Reply, Request, advice_on, kind_of_loss, shown_loss
from server.llm.parse import without_surrogates

SAMPLES = 2
"""Number of replies that are kept as samples of each kind of loss."""
_LONGEST_SAMPLE = 400
_LONGEST_QUOTE = 100
_ADVISED = 2
"""Maximum number of kinds of loss that an error gives advice on."""


@dataclass(slots=True, kw_only=True)
class Use:
    """Totals of the requests sent to models and of the replies.

    Attributes:
        calls: Number of requests.
        input_tokens: Tokens read.
        cached_tokens: Those input tokens that came from a provider's prompt cache.
        output_tokens: Tokens written.
        losses: Number of replies with fewer texts than requested, keyed by model and reason (`server.llm.base.LOSSES`).
        cleaned: Number of changes and dropped texts, keyed by model and the cleaner's rule.
        exchanges: The first prompt of each kind that may be shown, with its reply, keyed by kind.
        passed_on: Number of texts requested from other models instead, keyed by the model that wrote nothing usable.
        replies: Number of replies that came, keyed by model.
        samples: The first replies of each kind of loss that may be shown, cut, keyed by kind.
    """

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    losses: dict[str, Counter[str]] = field(default_factory=dict)
    cleaned: dict[str, Counter[str]] = field(default_factory=dict)
    exchanges: dict[str, Exchange] = field(default_factory=dict)
    passed_on: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)
    samples: dict[str, tuple[LostReply, ...]] = field(default_factory=dict)

    def add(self, model: str, request: Request, reply: Reply, cleaned: Counter[str]) -> None:
        """Add one reply of this model to the totals."""
        exchanges: dict[str, Exchange] = {}
        samples: dict[str, tuple[LostReply, ...]] = {}
        raw = without_surrogates(reply.raw)
        if request.may_be_shown and reply.prompt:
            exchanges[request.prompt] = Exchange(written_by=model, prompt=reply.prompt, reply=raw)
        if request.may_be_shown and raw.strip():
            cut = raw if len(raw) <= _LONGEST_SAMPLE else f"{raw[:_LONGEST_SAMPLE]}…"
            samples = dict.fromkeys(kinds_lost(reply, cleaned), (LostReply(written_by=model, reply=cut),))
        self.merge(
            Use(
                calls=1,
                input_tokens=reply.input_tokens,
                cached_tokens=reply.cached_tokens,
                output_tokens=reply.output_tokens,
                losses={model: Counter([reply.loss])} if reply.loss else {},
                cleaned={model: cleaned} if cleaned else {},
                exchanges=exchanges,
                replies=Counter([model] * (reply.loss != "failed")),
                samples=samples,
            )
        )

    def merge(self, more: "Use") -> None:
        """Add other totals to these totals."""
        self.calls += more.calls
        self.input_tokens += more.input_tokens
        self.cached_tokens += more.cached_tokens
        self.output_tokens += more.output_tokens
        for mine, others in ((self.losses, more.losses), (self.cleaned, more.cleaned)):
            for model, counts in others.items():
                mine.setdefault(model, Counter()).update(counts)
        self.exchanges = more.exchanges | self.exchanges
        self.passed_on.update(more.passed_on)
        self.replies.update(more.replies)
        for kind, replies in more.samples.items():
            self.samples[kind] = (*self.samples.get(kind, ()), *replies)[:SAMPLES]

    @property
    def losses_in_words(self) -> str:
        """How many replies came from each model, and how many of them, or of their texts, were lost by each kind."""
        counts = counts_of_losses(self.losses, self.cleaned)
        models = dict.fromkeys((*self.replies, *self.losses))
        return series([self._of_model(model, counts) for model in models] or ["no reply"], "and")

    @property
    def advice(self) -> str:
        """What to change for the most frequent kinds of loss, each with the beginning of its first reply."""
        counts = counts_of_losses(self.losses, self.cleaned)
        frequent = sorted(counts, key=lambda kind: counts[kind].total(), reverse=True)[:_ADVISED]
        return "; ".join(
            f"{shown_loss(kind)}{self._quoted(kind)}: {advice_on(kind, counts[kind].most_common(1)[0][0])}"
            for kind in frequent
        )

    def _of_model(self, model: str, counts: Mapping[str, Counter[str]]) -> str:
        lost = ", ".join(f"{models[model]:,} {shown_loss(kind)}" for kind, models in counts.items() if models[model])
        return f"{self.replies[model]:,} replies of {model}" + (f" ({lost})" if lost else "")

    def _quoted(self, kind: str) -> str:
        for sample in self.samples.get(kind, ()):
            line = printable_line(" ".join(sample.reply.split()))
            return f' ("{line[:_LONGEST_QUOTE]}{"…" * (len(line) > _LONGEST_QUOTE)}")'
        return ""


def kinds_lost(reply: Reply, cleaned: Counter[str]) -> list[str]:
    """Return the kinds of loss in one reply, the most telling first: that few texts came says least."""
    whole = [reply.loss] if reply.loss else []
    dropped = [rule for rule, _ in cleaned.most_common()]
    counted = [*dropped, *whole] if reply.loss == "short" else [*whole, *dropped]
    return list(dict.fromkeys(filter(None, map(kind_of_loss, counted))))


def counts_of_losses(*counted: Mapping[str, Mapping[str, int]]) -> dict[str, Counter[str]]:
    """Return the numbers of losses, keyed by kind and then by model; repairs are left out.

    Args:
        counted: `losses` and `cleaned`, as in `Use`.
    """
    kinds: dict[str, Counter[str]] = {}
    for counts_of_models in counted:
        for model, counts in counts_of_models.items():
            for name, count in counts.items():
                if kind := kind_of_loss(name):
                    kinds.setdefault(kind, Counter())[model] += count
    return kinds

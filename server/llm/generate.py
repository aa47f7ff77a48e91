"""Generation of a round's texts. Each model is asked for the texts ordered from it, and missing texts are reported."""

import itertools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from common import rng
from common.errors import ProviderError
from common.structure import without_surrogates
from server.documents.rounds import Exchange
from server.domain import Candidate
from server.llm.base import Provider, Reply, Request
from server.llm.clean import Cleaner
from server.llm.orders import Order, RequestMaker
from server.llm.remote.provider import cancel_requests
from server.settings.schema import Rules

log = logging.getLogger("caucus.llm")

MOST_PASSES = 3
"""Maximum number of passes; each pass requests the texts that are still missing."""
PASSES_OF_A_LABEL = 9
"""Maximum number of passes for a label that has no text yet; the additional passes request texts only for such
labels."""

PLAIN = Cleaner(Rules.none())
"""A cleaner without rules, which leaves texts unchanged."""

_Text = tuple[str, str]  # its model, and the text


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
    """

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    losses: dict[str, Counter[str]] = field(default_factory=dict)
    cleaned: dict[str, Counter[str]] = field(default_factory=dict)
    exchanges: dict[str, Exchange] = field(default_factory=dict)
    passed_on: Counter[str] = field(default_factory=Counter)

    def add(self, model: str, request: Request, reply: Reply, cleaned: Counter[str]) -> None:
        """Add one reply of this model to the totals."""
        exchanges = {}
        if request.may_be_shown and reply.prompt:
            raw = without_surrogates(reply.raw)
            exchanges[request.prompt] = Exchange(written_by=model, prompt=reply.prompt, reply=raw)
        self.merge(
            Use(
                calls=1,
                input_tokens=reply.input_tokens,
                cached_tokens=reply.cached_tokens,
                output_tokens=reply.output_tokens,
                losses={model: Counter([reply.loss])} if reply.loss else {},
                cleaned={model: cleaned} if cleaned else {},
                exchanges=exchanges,
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


@dataclass(slots=True)
class Generated:
    """The texts that filled the orders of a round.

    Attributes:
        candidates: Texts, in the sequence of the orders; at most the number ordered.
        lost: Number of texts ordered from a model that it did not write, keyed by model.
        use: Totals over all models.
    """

    candidates: list[Candidate] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    use: Use = field(default_factory=Use)

    @property
    def requested(self) -> Counter[str]:
        """Number of texts that were requested from each model: ordered, or written in place of another model."""
        return Counter(candidate.model for candidate in self.candidates) + self.lost


def generate(
    providers: Mapping[str, Provider],
    orders: Sequence[Order],
    write: RequestMaker,
    *,
    round_number: int,
    texts_per_request: int,
    experiment_seed: int,
    cleaner: Cleaner = PLAIN,
    run_texts: Container[str] = (),
    progress: Callable[[Reply], object] = lambda _: None,
) -> Generated:
    """Generate texts that fill the orders of one round.

    If a label gets more texts than ordered, a random subset is kept. Missing texts are requested again (`complete` says
    from which model), and texts still missing after the last pass are reported as lost. Each pass asks all models at
    once. For a label without any text there are further passes. If the label still has no text after these, the first
    round stops before any private query; a later round continues with the texts of earlier rounds.

    Args:
        providers: Language models, keyed by name.
        orders: Number of texts for each model and label.
        write: Makes the requests.
        round_number: Generation round, for the candidates and for the random streams.
        texts_per_request: Number of texts requested at a time.
        experiment_seed: Seed of prompts and of random subsets.
        cleaner: Rules for the texts.
        run_texts: Texts that the run already has.
        progress: Called with each reply when it arrives.

    Raises:
        ProviderError: A label that was ordered in the first round got no text from any model.
    """
    use = Use()
    texts: list[list[_Text]] = [[] for _ in orders]
    known = _Known(run_texts)
    for attempt in range(PASSES_OF_A_LABEL):
        requests: list[tuple[str, Request]] = []
        owners: list[int] = []
        written = {order.named for order, of_order in zip(orders, texts, strict=True) if of_order}
        for at, order in enumerate(orders):
            if attempt >= MOST_PASSES and order.named in written:
                continue
            for i, size in enumerate(_sizes(order.count - len(texts[at]), texts_per_request)):
                stream = rng.experiment(experiment_seed, "prompt", round_number, order.model, order.named, attempt, i)
                requests.append((order.model, write(order, size, stream)))
                owners.append(at)
        replies = complete(providers, requests, cleaner=cleaner, known=known, use=use, progress=progress)
        for at, reply in zip(owners, replies, strict=True):
            texts[at] += reply
    generated = Generated(use=use)
    for order, surplus in zip(orders, texts, strict=True):
        stream = rng.experiment(experiment_seed, "cut", round_number, order.model, order.named)
        order_texts = _cut(surplus, order, stream)
        generated.lost[order.model] += order.count - sum(model == order.model for model, _ in order_texts)
        generated.candidates += [
            Candidate(text=text, label=order.label, model=model, round=round_number, more=order.more)
            for model, text in order_texts
        ]
    ordered = dict.fromkeys(order.named for order in orders if order.count)
    if round_number == 0:
        refuse_missing(ordered, generated.candidates, passes=PASSES_OF_A_LABEL)
    for label in _missing(ordered, generated.candidates):
        log.warning("no new text of %s in %d passes: the run goes on with earlier ones", label, PASSES_OF_A_LABEL)
    return generated


@dataclass(slots=True)
class Written:
    """The texts received in answer to individual requests.

    Attributes:
        texts: Texts of each request, in order; empty if no text was written in any pass.
        lost: Number of texts requested from a model that it did not write, keyed by model.
        use: Totals over all models.
        models: Model of each text, in the order of `texts`.
    """

    texts: list[tuple[str, ...]]
    lost: Counter[str] = field(default_factory=Counter)
    use: Use = field(default_factory=Use)
    models: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def requested(self) -> Counter[str]:
        """Number of texts that were requested from each model, first or in place of another model."""
        return Counter(itertools.chain.from_iterable(self.models)) + self.lost

    def fill(self, drafts: Iterable[Candidate]) -> list[Candidate]:
        """Return the texts as candidates that are, apart from text and model, like the draft of their request."""
        return [
            replace(draft, text=text, model=model)
            for draft, texts, models in zip(drafts, self.texts, self.models, strict=True)
            for text, model in zip(texts, models, strict=True)
        ]


def write(
    providers: Mapping[str, Provider],
    requests: Sequence[tuple[str, Request]],
    *,
    cleaner: Cleaner = PLAIN,
    run_texts: Container[str] = (),
    progress: Callable[[Reply], object] = lambda _: None,
) -> Written:
    """Send each request to its model, and return the texts received.

    A request with an empty reply is sent again under another seed (`complete` says to which model); after the last
    pass, the missing texts count as lost.

    Args:
        providers: Language models, keyed by name.
        requests: Pairs of a model's name and a request to it.
        cleaner: Rules for the texts.
        run_texts: Texts that the run already has.
        progress: Called with each reply when it arrives.
    """
    written = Written(texts=[])
    texts: list[list[_Text]] = [[] for _ in requests]
    known = _Known(run_texts)
    for attempt in range(MOST_PASSES):
        places = [place for place, reply in enumerate(texts) if not reply]
        open_requests = [(requests[place][0], _reseeded(requests[place][1], attempt)) for place in places]
        replies = complete(providers, open_requests, cleaner=cleaner, known=known, use=written.use, progress=progress)
        for place, reply in zip(places, replies, strict=True):
            texts[place] = reply
    for (model, request), reply in zip(requests, texts, strict=True):
        written.texts.append(tuple(text for _, text in reply[: request.n]))
        written.models.append(tuple(writer for writer, _ in reply[: request.n]))
        written.lost[model] += request.n - written.models[-1].count(model)
    return written


def complete(
    providers: Mapping[str, Provider],
    requests: Sequence[tuple[str, Request]],
    *,
    cleaner: Cleaner,
    known: "_Known",
    use: Use,
    progress: Callable[[Reply], object],
) -> list[list[_Text]]:
    """Make one pass: ask all models at once, clean their texts, and add requests and replies to `use`.

    The requests to a model without any clean text in earlier passes go, in turn, to the models that have one.

    Args:
        providers: Language models, keyed by name.
        requests: Pairs of a model's name and a request to it.
        cleaner: Rules for the texts.
        known: Texts that the run already has, and who wrote in earlier passes; the new texts are added.
        use: Totals of requests and replies; the new ones are added.
        progress: Called with each reply when it arrives.

    Returns:
        The clean texts of each request, in order, each with its model.

    Raises:
        ProviderError: A model failed. The error of the first such model is raised once all models have finished.
    """
    turn, asked, passed_on = itertools.cycle(tuple(known.writers)), [], Counter[str]()
    for model, request in requests:
        asked.append((model if model in known.writers else next(turn, model), request))
        passed_on[model] += request.n if asked[-1][0] != model else 0
    use.passed_on |= passed_on  # the larger number: a later pass requests the rest of the same texts
    texts = []
    for (model, request), reply in zip(asked, _ask(providers, asked, progress), strict=True):
        cleaned, changed = cleaner.clean(reply.texts, request, run_texts=known)
        known.add(model, cleaned)
        use.add(model, request, reply, changed)
        texts.append([(model, text) for text in cleaned])
    return texts


def refuse_missing(labels: Iterable[str], candidates: Iterable[Candidate], *, passes: int = MOST_PASSES) -> None:
    """Raise `ProviderError` if a label got no text from any model.

    Raises:
        ProviderError: At least one label has no text; the message names all of them.
    """
    if missing := _missing(labels, candidates):
        raise ProviderError(
            "language models",
            expected="at least one text for each label",
            got=f"none for {', '.join(missing)} in {passes} passes",
            do="Look at the models' own errors above; resuming requests only the missing texts",
        )


def _missing(labels: Iterable[str], candidates: Iterable[Candidate]) -> list[str]:
    """Return the labels without a candidate."""
    written = {candidate.named for candidate in candidates}
    return [label for label in labels if label not in written]


def _sizes(missing: int, most: int) -> list[int]:
    """Return the number of texts to request each time: at most `most`, and `missing` in total."""
    return [min(most, missing - start) for start in range(0, missing, most)]


def _cut(texts: list[_Text], order: Order, stream: np.random.Generator) -> list[_Text]:
    """Return a random subset of the ordered size, in the same order; all texts if there are at most that many."""
    if len(texts) <= order.count:
        return texts
    return [texts[i] for i in sorted(stream.choice(len(texts), order.count, replace=False))]


def _ask(
    providers: Mapping[str, Provider], requests: Sequence[tuple[str, Request]], progress: Callable[[Reply], object]
) -> list[Reply]:
    """Send the requests and return the replies in order.

    Each remote model runs in its own thread; models on this machine run one after another. If a model fails, the others
    finish first, so that their paid replies reach the cache.

    Raises:
        ProviderError: A model failed; the error of the first one is raised.
    """
    lock = threading.Lock()
    replies: dict[int, Reply] = {}
    failures: dict[str, Exception] = {}

    def arrived(_: int, reply: Reply) -> None:
        with lock:
            progress(reply)

    def ask(model: str) -> None:
        places = [place for place, (name, _) in enumerate(requests) if name == model]
        own_requests = [requests[place][1] for place in places]
        try:
            replies.update(zip(places, providers[model].generate(own_requests, arrived=arrived), strict=True))
        except Exception as error:  # noqa: BLE001 raised again below
            failures[model] = error

    models = list(dict.fromkeys(model for model, _ in requests))
    remote = [model for model in models if providers[model].remote]
    # Daemons, so that an interrupted run does not wait for requests under way.
    threads = [threading.Thread(target=ask, args=(model,), name=f"llm-{model}", daemon=True) for model in remote]
    for thread in threads:
        thread.start()
    try:
        for model in models:
            if model not in remote:
                ask(model)
        for thread in threads:
            thread.join()
    except (KeyboardInterrupt, SystemExit):
        cancel_requests()
        raise
    if failures:
        raise next(iter(failures.values()))
    return [replies[place] for place in range(len(requests))]


class _Known:
    """Texts that the run already has, from before the call and from the call itself, and who wrote in the call."""

    def __init__(self, before: Container[str]) -> None:
        self._before = before
        self._new: set[str] = set()
        self.writers: dict[str, None] = {}

    def __contains__(self, text: object) -> bool:
        return text in self._before or text in self._new

    def add(self, model: str, texts: Sequence[str]) -> None:
        self._new.update(texts)
        if texts:
            self.writers[model] = None


def _reseeded(request: Request, attempt: int) -> Request:
    # The seed is part of a request's key in the cache: with the same seed the same reply would come back.
    return replace(request, seed=(request.seed + attempt) % 2**63) if attempt else request

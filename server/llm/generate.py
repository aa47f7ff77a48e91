"""Orders to texts: asks each model for what a round needs of each label, and states what could not be had."""

import threading
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from common import rng
from common.errors import ProviderError
from server.domain import Candidate
from server.llm.base import Provider, Reply, Request
from server.llm.clean import Cleaner, Rules
from server.llm.orders import Order, RequestMaker

MOST_PASSES = 3
"""A model that returns too little is asked again for the rest this often in all."""

PLAIN = Cleaner(Rules.none())
"""Takes texts as they are."""


@dataclass(slots=True, kw_only=True)
class Use:
    """What models were asked and took, and what became of their replies.

    Attributes:
        calls: Requests made.
        input_tokens: Read.
        cached_tokens: Of these, read from a provider's prompt cache.
        output_tokens: Written.
        losses: Replies by model and kind of loss.
        cleaned: Texts by model and the rule that changed or dropped them.
    """

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    losses: dict[str, Counter[str]] = field(default_factory=dict)
    cleaned: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, model: str, reply: Reply, cleaned: Counter[str]) -> None:
        """One more reply."""
        self.calls += 1
        self.input_tokens += reply.input_tokens
        self.cached_tokens += reply.cached_tokens
        self.output_tokens += reply.output_tokens
        if reply.loss:
            self.losses.setdefault(model, Counter())[reply.loss] += 1
        if cleaned:
            self.cleaned.setdefault(model, Counter()).update(cleaned)


@dataclass(slots=True)
class Generated:
    """What a round brought.

    Attributes:
        candidates: In the order of the orders, cut to what was ordered.
        lost: Texts ordered and not had, by model.
        use: Of all models.
    """

    candidates: list[Candidate] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    use: Use = field(default_factory=Use)

    @property
    def requested(self) -> Counter[str]:
        """Texts ordered, by model."""
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
    held: Container[str] = (),
    progress: Callable[[int], object] = lambda _: None,
) -> Generated:
    """Fill the orders of one round.

    A model that wrote too many texts for a label is cut at random to exactly what was ordered; one that wrote too few
    is asked again for the rest, then the shortage is stated. Each pass asks all models at once.

    Args:
        providers: Language models by name.
        orders: What is wanted.
        write: Makes the requests.
        round_number: Generation round, for the candidates and for the random streams.
        texts_per_request: Texts asked for in one request.
        experiment_seed: For prompts and cuts.
        cleaner: What is done to the texts.
        held: Texts that the run has already.
        progress: Told how many texts came, as they come.

    Raises:
        ProviderError: A label that was ordered got no text from any model.
    """
    harvest = Generated()
    texts: list[list[str]] = [[] for _ in orders]
    known = _Known(held)
    for attempt in range(MOST_PASSES):
        asked: list[tuple[str, Request]] = []
        owners: list[int] = []
        for at, order in enumerate(orders):
            sizes = _sizes(order.count - len(texts[at]), texts_per_request)
            for i, size in enumerate(sizes):
                stream = rng.experiment(experiment_seed, "prompt", round_number, order.model, order.label, attempt, i)
                asked.append((order.model, write(order, size, stream)))
                owners.append(at)
        replies = _ask(providers, asked, progress)
        for at, (model, request), reply in zip(owners, asked, replies, strict=True):
            cleaned, changed = cleaner.clean(reply.texts, request, held=known)
            texts[at] += cleaned
            known.more.update(cleaned)
            harvest.use.add(model, reply, changed)
    for order, some in zip(orders, texts, strict=True):
        if len(some) > order.count:
            cut = rng.experiment(experiment_seed, "cut", round_number, order.model, order.label)
            some[:] = [some[i] for i in sorted(cut.choice(len(some), order.count, replace=False))]
        harvest.lost[order.model] += order.count - len(some)
        harvest.candidates += [
            Candidate(text=text, label=order.label, model=order.model, round=round_number) for text in some
        ]
    refuse_missing(dict.fromkeys(order.label for order in orders if order.count), harvest.candidates)
    return harvest


@dataclass(slots=True)
class Written:
    """What models wrote for requests of their own.

    Attributes:
        texts: For each request, in order; none where the model wrote nothing in several passes.
        lost: Texts asked for and not had, by model.
        use: Of all models.
    """

    texts: list[tuple[str, ...]]
    lost: Counter[str] = field(default_factory=Counter)
    use: Use = field(default_factory=Use)


def write(
    providers: Mapping[str, Provider],
    requests: Sequence[tuple[str, Request]],
    *,
    cleaner: Cleaner = PLAIN,
    held: Container[str] = (),
    progress: Callable[[int], object] = lambda _: None,
) -> Written:
    """Have each request answered by its model.

    One that came back empty is asked again under other seeds; then its text is lost, and stated.

    Args:
        providers: Language models by name.
        requests: Name of the model, and what is asked of it.
        cleaner: What is done to the texts.
        held: Texts that the run has already.
        progress: Told how many texts came, as they come.
    """
    written = Written(texts=[()] * len(requests))
    known = _Known(held)
    for attempt in range(MOST_PASSES):
        places = [place for place, texts in enumerate(written.texts) if not texts]
        asked = [(requests[place][0], _reseeded(requests[place][1], attempt)) for place in places]
        for place, (model, request), reply in zip(places, asked, _ask(providers, asked, progress), strict=True):
            texts, changed = cleaner.clean(reply.texts, request, held=known)
            written.texts[place] = tuple(texts)[: request.n]
            known.more.update(written.texts[place])
            written.use.add(model, reply, changed)
    for (model, request), some in zip(requests, written.texts, strict=True):
        written.lost[model] += request.n - len(some)
    return written


def refuse_missing(labels: Iterable[str], candidates: Iterable[Candidate]) -> None:
    """Refuse that a label got no text from any model.

    Raises:
        ProviderError: With the labels' names.
    """
    written = {candidate.label for candidate in candidates}
    if missing := [label for label in labels if label not in written]:
        raise ProviderError(
            "language models",
            expected="at least one text for each label",
            got=f"none for {', '.join(missing)} in {MOST_PASSES} passes",
            do="Look at the models' own errors above; resuming asks again only for what is missing",
        )


def _sizes(missing: int, most: int) -> list[int]:
    """Texts of each request that are to bring `missing` together."""
    if missing <= 0:
        return []
    return [most] * (missing // most) + [missing % most] * (missing % most > 0)


def _ask(
    providers: Mapping[str, Provider], asked: Sequence[tuple[str, Request]], progress: Callable[[int], object]
) -> list[Reply]:
    """The replies, in order. Remote models work in threads of their own, meanwhile those of this machine in turn.

    A model that fails does not take from the others what they are being paid for: their replies reach the cache first.

    Raises:
        ProviderError: Of the first model that failed.
    """
    lock = threading.Lock()
    replies: dict[int, Reply] = {}
    failures: dict[str, Exception] = {}

    def arrived(_: int, reply: Reply) -> None:
        with lock:
            progress(len(reply.texts))

    def work(model: str) -> None:
        places = [place for place, (name, _) in enumerate(asked) if name == model]
        requests = [asked[place][1] for place in places]
        replies.update(zip(places, providers[model].generate(requests, arrived=arrived), strict=True))

    def apart(model: str) -> None:
        try:
            work(model)
        except Exception as error:  # noqa: BLE001 raised again below
            failures[model] = error

    models = list(dict.fromkeys(model for model, _ in asked))
    remote = [model for model in models if providers[model].remote]
    # Daemons: whoever interrupts a run does not wait for what is under way.
    threads = [threading.Thread(target=apart, args=(model,), name=f"llm-{model}", daemon=True) for model in remote]
    for thread in threads:
        thread.start()
    for model in models:
        if model not in remote:
            apart(model)
    for thread in threads:
        thread.join()
    if failures:
        raise next(iter(failures.values()))
    return [replies[place] for place in range(len(asked))]


class _Known:
    """Texts that the run has: those it had before, and more."""

    def __init__(self, before: Container[str]) -> None:
        self._before = before
        self.more: set[str] = set()

    def __contains__(self, text: object) -> bool:
        return text in self._before or text in self.more


def _reseeded(request: Request, attempt: int) -> Request:
    # A request's seed is part of its name in the cache: asked again as it was, it would come back as it did.
    return replace(request, seed=(request.seed + attempt) % 2**63) if attempt else request

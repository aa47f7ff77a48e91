"""Orders to texts: asks each model for what a round needs of each label, and states what could not be had."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from common import rng
from common.domain import Candidate
from common.errors import ProviderError
from common.llm.base import Provider, Reply, Request

MOST_PASSES = 3
"""A model that returns too little is asked again for the rest this often in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How many texts of one label one model owes in one round."""

    model: str
    label: str
    count: int


Writer = Callable[[Order, int, np.random.Generator], Request]
"""(order, number of texts, generator of its own) to a request."""


@dataclass(slots=True)
class Yield:
    """What a round brought.

    Attributes:
        candidates: In the order of the orders, cut to what was ordered.
        lost: Texts ordered and not had, by model.
        calls: Requests made, by all models.
        input_tokens: Read by all models.
        output_tokens: Written by all models.
    """

    candidates: list[Candidate] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def requested(self) -> Counter[str]:
        """Texts ordered, by model."""
        return Counter(candidate.model for candidate in self.candidates) + self.lost


def generate(
    providers: Mapping[str, Provider],
    orders: Sequence[Order],
    write: Writer,
    *,
    round_number: int,
    texts_per_request: int,
    experiment_seed: int,
    progress: Callable[[int], object] = lambda _: None,
) -> Yield:
    """Fill the orders of one round.

    A model that wrote too many texts for a label is cut at random to exactly what was ordered; one that wrote too few
    is asked again for the rest, then the shortage is stated.

    Args:
        providers: Language models by name.
        orders: What is wanted.
        write: Makes the requests.
        round_number: Generation round, for the candidates and for the random streams.
        texts_per_request: Texts asked for in one request.
        experiment_seed: For prompts and cuts.
        progress: Told how many texts came, as they come.

    Raises:
        ProviderError: A label that was ordered got no text from any model.
    """
    harvest = Yield()
    for order in orders:
        texts: list[str] = []
        for attempt in range(MOST_PASSES):
            missing = order.count - len(texts)
            if missing <= 0:
                break
            sizes = [texts_per_request] * (missing // texts_per_request)
            sizes += [missing % texts_per_request] * (missing % texts_per_request > 0)
            requests = [
                write(
                    order,
                    size,
                    rng.experiment(experiment_seed, "prompt", round_number, order.model, order.label, attempt, i),
                )
                for i, size in enumerate(sizes)
            ]
            for reply in providers[order.model].generate(requests):
                texts += _cleaned(reply)
                harvest.input_tokens += reply.input_tokens
                harvest.output_tokens += reply.output_tokens
            harvest.calls += len(requests)
        if len(texts) > order.count:
            cut = rng.experiment(experiment_seed, "cut", round_number, order.model, order.label)
            texts = [texts[i] for i in sorted(cut.choice(len(texts), order.count, replace=False))]
        harvest.lost[order.model] += order.count - len(texts)
        harvest.candidates += [
            Candidate(text=text, label=order.label, model=order.model, round=round_number) for text in texts
        ]
        progress(len(texts))
    refuse_missing(dict.fromkeys(order.label for order in orders if order.count), harvest.candidates)
    return harvest


@dataclass(slots=True)
class Written:
    """What models wrote for requests of their own.

    Attributes:
        texts: For each request, in order; none where the model wrote nothing in several passes.
        lost: Texts asked for and not had, by model.
        calls: Requests made.
        input_tokens: Read by all models.
        output_tokens: Written by all models.
    """

    texts: list[tuple[str, ...]]
    lost: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


def write(
    providers: Mapping[str, Provider],
    requests: Sequence[tuple[str, Request]],
    *,
    progress: Callable[[int], object] = lambda _: None,
) -> Written:
    """Have each request answered by its model.

    One that came back empty is asked again under other seeds; then its text is lost, and stated.

    Args:
        providers: Language models by name.
        requests: Name of the model, and what is asked of it.
        progress: Told how many texts came, as they come.
    """
    written = Written(texts=[()] * len(requests))
    for attempt in range(MOST_PASSES):
        for model, provider in providers.items():
            places = [i for i, (name, _) in enumerate(requests) if name == model and not written.texts[i]]
            asked = [_reseeded(requests[i][1], attempt) for i in places]
            for place, reply in zip(places, provider.generate(asked) if asked else [], strict=True):
                written.texts[place] = tuple(_cleaned(reply))[: requests[place][1].n]
                written.input_tokens += reply.input_tokens
                written.output_tokens += reply.output_tokens
                progress(len(written.texts[place]))
            written.calls += len(asked)
    for (model, request), texts in zip(requests, written.texts, strict=True):
        written.lost[model] += request.n - len(texts)
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


def _reseeded(request: Request, attempt: int) -> Request:
    # A request's seed is part of its name in the cache: asked again as it was, it would come back as it did.
    return replace(request, seed=(request.seed + attempt) % 2**63) if attempt else request


def _cleaned(reply: Reply) -> Iterator[str]:
    # A model may write half of a surrogate pair, which no file holds.
    return filter(None, (text.encode(errors="replace").decode().strip() for text in reply.texts))

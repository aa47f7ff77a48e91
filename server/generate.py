"""Orders to texts: asks each model for what a round needs of each label, and states what could not be had."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from common import rng
from common.domain import Candidate
from common.errors import ProviderError
from common.llm.base import Provider, Request

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
                # A model may write half of a surrogate pair, which no file holds.
                cleaned = (text.encode(errors="replace").decode().strip() for text in reply.texts)
                texts += filter(None, cleaned)
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
    _refuse_empty_labels(orders, harvest)
    return harvest


def _refuse_empty_labels(orders: Sequence[Order], harvest: Yield) -> None:
    wanted = {order.label for order in orders if order.count}
    empty = sorted(wanted - {candidate.label for candidate in harvest.candidates})
    if empty:
        raise ProviderError(
            "language models",
            expected="at least one text for each label",
            got=f"none for {', '.join(empty)} in {MOST_PASSES} passes",
            do="Look at the models' own errors above; resuming asks again only for what is missing",
        )

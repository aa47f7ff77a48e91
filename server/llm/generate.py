"""Generation of a round's texts. Each model is asked for the texts ordered from it, and missing texts are reported.

The passes of a call, and when missing texts stop a run, are in `passes.py`.
"""

import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Unpack

import numpy as np

from common import rng
from common.errors import ProviderError
from server.domain import Candidate
from server.llm.base import Provider, Request
from server.llm.orders import Order, RequestMaker
from server.llm.passes import Asked, Call, HowToAsk, Text, WrittenTexts
from server.llm.use import Use

log = logging.getLogger("caucus.llm")

MOST_PASSES = 3
"""Maximum number of passes; each pass requests the texts that are still missing."""
PASSES_OF_A_LABEL = 9
"""Maximum number of passes for a label that has no text yet; the additional passes request texts only for such
labels."""


@dataclass(slots=True)
class Generated:
    """The texts that filled the orders of a round.

    Attributes:
        candidates: Texts, in the sequence of the orders; at most the number ordered.
        lost: Number of texts ordered from a model that it did not write, keyed by model.
        use: Totals over all models.
        zero_shot: Whether no request showed a text or prescribed words.
    """

    candidates: list[Candidate] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    use: Use = field(default_factory=Use)
    zero_shot: bool = False

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
    **how: Unpack[HowToAsk],
) -> Generated:
    """Generate texts that fill the orders of one round.

    If a label gets more texts than ordered, a random subset is kept. Missing texts are requested again (`passes.py`
    says from which model), and texts still missing after the last pass are reported as lost. Each pass asks all models
    at once. For a label without any text there are further passes. If the label still has no text after these, the
    first round stops before any private query; a later round continues with the texts of earlier rounds, unless too
    many texts are missing (`server.llm.passes`).

    Args:
        providers: Language models, keyed by name.
        orders: Number of texts for each model and label.
        write: Makes the requests.
        round_number: Generation round, for the candidates and for the random streams.
        texts_per_request: Number of texts requested at a time.
        experiment_seed: Seed of prompts and of random subsets.
        how: See `HowToAsk`.

    Raises:
        ProviderError: A label that was ordered in the first round got no text from any model, a model did not answer,
            or too many texts are missing.
    """
    call = Call(providers, **how)
    texts: list[list[Text]] = [[] for _ in orders]
    kinds, failed, zero_shot = [""] * len(orders), [False] * len(orders), True
    for attempt in range(PASSES_OF_A_LABEL):
        requests: list[tuple[str, Request]] = []
        owners: list[int] = []
        written = {order.named for order, of_order in zip(orders, texts, strict=True) if of_order}
        for at, order in enumerate(orders):
            if attempt >= MOST_PASSES and order.named in written:
                continue
            failed[at] = False
            missing = order.count - len(texts[at])
            for i, start in enumerate(range(0, missing, texts_per_request)):
                stream = rng.experiment(experiment_seed, "prompt", round_number, order.model, order.named, attempt, i)
                request = write(order, min(texts_per_request, missing - start), stream)
                requests.append((order.model, request))
                owners.append(at)
                kinds[at] = request.prompt
                zero_shot &= request.zero_shot
        for at, answer in zip(owners, call.ask(requests), strict=True):
            texts[at] += answer.texts
            failed[at] |= answer.failed
    generated = Generated(use=call.use, zero_shot=zero_shot)
    asked = []
    for at, (order, surplus) in enumerate(zip(orders, texts, strict=True)):
        stream = rng.experiment(experiment_seed, "cut", round_number, order.model, order.named)
        order_texts = _cut(surplus, order, stream)
        missing = order.count - len(order_texts)
        asked.append(Asked(kind=kinds[at], wanted=order.count, missing=missing, failed=failed[at] and missing > 0))
        generated.lost[order.model] += order.count - sum(model == order.model for model, _ in order_texts)
        generated.candidates += [
            Candidate(text=text, label=order.label, model=model, round=round_number, more=order.more)
            for model, text in order_texts
        ]
    ordered = dict.fromkeys(order.named for order in orders if order.count)
    call.refuse_failed(asked)
    if round_number == 0:
        refuse_missing(ordered, generated.candidates, passes=call.passes, use=call.use)
    call.refuse_lost(asked)
    for label in _missing(ordered, generated.candidates):
        log.warning("no new text of %s (passes: %d): the run goes on with earlier ones", label, call.passes)
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

    def add(self, more: "Written") -> None:
        """Add the texts received in answer to further requests."""
        self.texts += more.texts
        self.lost += more.lost
        self.use.merge(more.use)
        self.models += more.models

    def fill(self, drafts: Iterable[Candidate]) -> list[Candidate]:
        """Return the texts as candidates that are, apart from text and model, like the draft of their request."""
        return [
            replace(draft, text=text, model=model)
            for draft, texts, models in zip(drafts, self.texts, self.models, strict=True)
            for text, model in zip(texts, models, strict=True)
        ]


def write_texts(
    providers: Mapping[str, Provider],
    requests: Sequence[tuple[str, Request]],
    **how: Unpack[HowToAsk],
) -> Written:
    """Send each request to its model, and return the texts received.

    A request with an empty reply is sent again under another seed (`passes.py` says to which model); after the last
    pass, the missing texts count as lost. A request of several texts that got at least one is not a lost one.

    Args:
        providers: Language models, keyed by name.
        requests: Pairs of a model's name and a request to it.
        how: See `HowToAsk`.

    Raises:
        ProviderError: A model did not answer, or too many requests are lost.
    """
    call = Call(providers, **how)
    written = Written(texts=[], use=call.use)
    answers = [WrittenTexts() for _ in requests]
    for attempt in range(MOST_PASSES):
        places = [place for place, answer in enumerate(answers) if not answer.texts]
        again = call.ask([(requests[place][0], reseeded(requests[place][1], attempt)) for place in places])
        for place, answer in zip(places, again, strict=True):
            answers[place] = answer
    for (model, request), answer in zip(requests, answers, strict=True):
        written.texts.append(tuple(text for _, text in answer.texts[: request.n]))
        written.models.append(tuple(writer for writer, _ in answer.texts[: request.n]))
        written.lost[model] += request.n - written.models[-1].count(model)
    asked = [
        Asked(kind=request.prompt, wanted=1, missing=int(not answer.texts), failed=answer.failed)
        for (_, request), answer in zip(requests, answers, strict=True)
    ]
    call.refuse_failed(asked)
    call.refuse_lost(asked)
    return written


def refuse_missing(
    labels: Iterable[str], candidates: Iterable[Candidate], *, passes: int = MOST_PASSES, use: Use | None = None
) -> None:
    """Raise `ProviderError` if a label got no text from any model; it names all of them, what was lost, and why.

    Args:
        labels: Labels that need a text.
        candidates: The texts.
        passes: Number of passes that were made.
        use: What was asked and lost; if None, a warning in the log has told it.
    """
    if missing := _missing(labels, candidates):
        raise ProviderError(
            "language models",
            expected="at least one text for each label",
            got=f"none for {', '.join(missing)} (passes: {passes})" + (f"; {use.losses_in_words}" if use else ""),
            do=(f"{use.advice}. " if use and use.advice else "") + "Resuming asks for the missing texts again",
        )


def _missing(labels: Iterable[str], candidates: Iterable[Candidate]) -> list[str]:
    """Return the labels without a candidate."""
    written = {candidate.named for candidate in candidates}
    return [label for label in labels if label not in written]


def _cut(texts: list[Text], order: Order, stream: np.random.Generator) -> list[Text]:
    """Return a random subset of the ordered size, in the same order; all texts if there are at most that many."""
    if len(texts) <= order.count:
        return texts
    return [texts[i] for i in sorted(stream.choice(len(texts), order.count, replace=False))]


def reseeded(request: Request, attempt: int) -> Request:
    """Return the request with the seed of a later attempt: with the same seed, the cache has the same reply."""
    return replace(request, seed=(request.seed + attempt) % 2**63) if attempt else request

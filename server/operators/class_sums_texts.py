"""The texts of the method's rounds: how many are ordered, from which models and for which labels, and their prompts.

The first round is zero-shot and orders the same number of texts for each label. Later rounds follow the memory derived
from the answer: a model's weight is its proportion of the texts, a label gets texts according to need, and a prompt
shows S exemplars drawn from the pool of its label; a model that writes what is requested is always prompted zero-shot
(`steering.py`).

Texts with several labels are ordered by sets of labels (`label_sets.py`). Texts in sections are not ordered by label at
all: a sequence of headings is drawn for each text, and each heading gets its own request, which shows the text so far,
asks for the section's part of the words, and is otherwise like a request for one text with that label
(`section_texts.py`). Each of the two modules sends one query: `label_sets.py` after the texts of the first round are
written, `section_texts.py` before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.llm.base import Request
from server.llm.generate import Generated
from server.llm.orders import Order, allocate, dealt, make_orders, per_label
from server.llm.requests import by_example
from server.method import PlainMemory, State, Tools
from server.operators import label_sets, section_texts, selection
from server.operators.questionnaire import Aims, length
from server.settings.methods import ClassSumsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSumsMemory(PlainMemory):
    """The method's memory from round to round.

    Attributes:
        weights: Each model's proportion of the next round's texts; the proportions sum to 1.
        needs: Relative number of the next round's texts that each label needs; empty if all labels need the same
            number.
        pool: Indices in D of the next round's exemplars, keyed by label.
        reliable: Models that write what is requested and are always prompted zero-shot.
        sets: Distribution of label sets, if texts have several labels, or of the order of sections.
    """

    weights: Mapping[str, float]
    needs: Mapping[str, float] = field(default_factory=dict)
    pool: Mapping[str, Sequence[int]] = field(default_factory=dict)
    reliable: Sequence[str] = ()
    sets: Mapping[str, Any] = field(default_factory=dict)


def texts_of_round(settings: ClassSumsSettings, number: int) -> int:
    """Return the number of texts that a round orders; rounds are numbered from 0."""
    before, after = (settings.samples * done // settings.rounds for done in (number, number + 1))
    return (after - before) * (settings.best_of if number and settings.questionnaire != "none" else 1)


def harvest(
    settings: ClassSumsSettings, state: State[ClassSumsMemory], tools: Tools, *, aimed: Aims | None
) -> tuple[Mapping[str, Any], Generated]:
    """Write the round's texts, and ask once which labels occur together, or how sections follow one another.

    Lengths are drawn from the estimated proportions of the records with each form (`aimed`), unless these are None.

    Returns:
        The answer to the query, for the memory's `sets`, and the texts.
    """
    known, task = state.memory.sets, tools.task
    weights = np.array([state.memory.weights[model] for model in tools.models])
    counts = allocate(texts_of_round(settings, state.round), weights)

    def write(order: Order, texts: int, generator: np.random.Generator) -> Request:
        """Request texts with exemplars of their label; without, for a label without a pool or a reliable model."""
        reliable = order.model in state.memory.reliable
        pool = () if reliable else label_sets.pool_for_set(state.memory.pool, order.labels, state.candidates)
        shown = selection.draw_members(pool, settings.shots, generator)
        request = by_example(
            task,
            order.label,
            texts=texts,
            rng=generator,
            good=[section_texts.section_exemplar(state.candidates[i], order.label) for i in shown],
            temperature=settings.temperature,
            words=length(aimed, generator) if aimed and settings.words is None else settings.words,
            more=order.more or (),
        )
        return replace(request, showable=True)

    def write_section(order: Order, before: str, number: int, generator: np.random.Generator) -> Request:
        """Request a section: as for a whole text, but with the text so far and fewer words."""
        request = write(order, 1, generator)
        words = None if settings.words is None else max(1, settings.words // number)
        return replace(request, task_kind=f"section of one {request.task_kind}", before=before, words=words)

    if not task.sectioned:
        written = tools.generate(_orders(settings, counts, state, tools), write, round_number=state.round)
        return known or label_sets.ask_label_sets(tools), written
    known = known or section_texts.ask_section_order(tools)
    return known, section_texts.generate(
        counts, known, write_section, tools, round_number=state.round, shown=settings.shown_words
    )


def _orders(
    settings: ClassSumsSettings, counts: NDArray[np.int64], state: State[ClassSumsMemory], tools: Tools
) -> list[Order]:
    """Return the orders for a round of whole texts; `counts`, of shape (K,), has each model's number of texts."""
    labels = list(tools.task.labels)
    if tools.task.several:
        return label_sets.orders(counts, state.memory.sets, state.candidates, tools, total=settings.samples)
    if not state.memory.needs:
        shares = per_label(counts, len(labels), len(state.candidates))
    else:
        needed = allocate(int(counts.sum()), np.array([state.memory.needs[label] for label in labels]))
        shares = dealt(counts, needed)
    return make_orders(shares, tools.task, tools.models)

"""A round of the method `class_sums`: its query to the hospitals, and its texts.

A plan has one query, for class sums, with all of epsilon. With `questionnaire` the same answer contains the number of
records with each form of text. If texts have several labels, or sections, one more query with a fraction of epsilon
asks which labels occur together (`label_sets.py`, after the texts of the first round are written), or in which order
sections follow one another (`section_texts.py`, before). With the class sums of a finished run (setting `census`) no
queries are asked, so only answers that the finished run obtained can be used. The query contains a public subspace and
the centres of the labels, both functions of the first round's texts and of the labels' descriptions (`class_sums.py`).

The first round is zero-shot and orders the same number of texts for each label. Later rounds follow the memory derived
from the answer: a model's weight is its proportion of the texts, a label gets texts according to need, and a prompt
shows S exemplars drawn from the pool of its label; a model that writes what is requested is always prompted zero-shot
(`steering.py`). Texts with several labels are ordered by sets of labels. Texts in sections are not ordered by label at
all: a sequence of headings is drawn for each text, and each heading gets its own request, which shows the text so far,
asks for the section's part of the words, and is otherwise like a request for one text with that label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.questions import QUESTIONS
from common.queries.terms import encode_terms
from server.domain import Task
from server.llm.base import Request
from server.llm.generate import Generated
from server.llm.orders import Order, allocate, dealt, make_orders, per_label
from server.llm.requests import by_example
from server.method import PlainMemory, State, Tools
from server.operators import class_sums_file, label_sets, section_texts, selection
from server.operators.class_sums import NoisySums, softness, subspace
from server.operators.questionnaire import Aims, common_words, length, released_answers
from server.operators.steering import TextRows
from server.settings.methods import GRID, ClassSumsSettings

CLASS_SUMS = "class sums"
REACH = 0.25
"""Fraction of the first round's texts that lie within the radius; longer coordinates are shortened to the radius."""
FIRST, LISTED = 16, 64
"""Number of terms for which a record counts, and number of terms on the list, with `questionnaire=terms`."""


def check_class_sums(settings: ClassSumsSettings, task: Task) -> None:
    """Raise a ConfigError, with the setting's name, if one does not suit the task or a finished run's sums."""
    if settings.census is not None:
        task.check_single("method.census", "whose numbers say which labels occur together", "Ask: method.census=null")
    if settings.questionnaire != "none":
        do = "Set method.questionnaire=none"
        if settings.labels == "nearest":
            expected = "another choice with a questionnaire, which chooses texts by their form"
            raise ConfigError("method.labels", expected=expected, got="nearest", do=do)
        task.check_single("method.questionnaire", "so that a record's form counts once", do)
    task.check_samples(settings.samples, settings.rounds)
    if settings.census is not None:
        _check_finished(settings, settings.census, task)


def class_sums_queries(settings: ClassSumsSettings, task: Task, max_records: int) -> tuple[PlannedQuery, ...]:
    """Plan no queries if a finished run's sums are used; otherwise one, or two for several labels or sections."""
    if settings.census is not None:
        return ()
    units = round(settings.count * GRID)
    sums = {
        "labels": len(task.labels),
        "directions": settings.directions,
        "count": units,
        "grid": GRID,
        "max_records": max_records,
    }
    if settings.questionnaire == "none":
        plan_sets = section_texts.section_queries if task.sectioned else label_sets.label_set_queries
        sets = plan_sets(task, settings.label_sets_share, max_records)
        share = 1 - settings.label_sets_share if sets else 1.0
        spec = ClassSumsSpec(**sums, labels_per_record=task.labels_per_text)
        return (*sets, PlannedQuery(name=CLASS_SUMS, spec=spec, share=share))
    weights = {question.name: units for question in QUESTIONS}
    if settings.questionnaire == "terms":
        weights |= {"first": FIRST, "term": max(1, units // 2)}
    return (PlannedQuery(name=CLASS_SUMS, spec=QuestionnaireSpec(**sums, **weights)),)


def ask(settings: ClassSumsSettings, texts: TextRows, written: Sequence[str], tools: Tools) -> NoisySums:
    """Ask for the sums of the records' coordinates along public directions, relative to public centres.

    `texts` are those of the first round, with one row for each section or label of a text. `written` has the (n,) text
    of each row.
    """
    described = [description or label for label, description in tools.task.labels.items()]
    space = subspace(
        texts.vectors,
        texts.requested,
        tools.embed(described),
        directions=settings.directions,
        description=settings.description if tools.task.one_label else 0.0,
        quantile=REACH,
    )
    spec = tools.spec(CLASS_SUMS)
    assert isinstance(spec, ClassSumsSpec), "as planned"
    radius, more = np.array([space.radius], dtype=np.float32), {}
    listed: tuple[str, ...] = ()
    if isinstance(spec, QuestionnaireSpec):
        listed = common_words(written, LISTED) if spec.first else ()
        more["terms"] = encode_terms(listed) if listed else np.zeros(0, dtype=np.uint8)
    answer = tools.ask(CLASS_SUMS, 0, basis=space.basis, centres=space.centres, radius=radius, **more)
    noise = tools.noise(CLASS_SUMS, 0)
    rows = answer[: spec.sums].reshape(spec.labels, spec.directions + 1)
    count = spec.count / spec.grid
    noisy = NoisySums(
        labels=tuple(tools.task.labels),
        subspace=space,
        softness=softness(texts.vectors, texts.requested, space.centres),
        sums=rows[:, :-1],
        counts=rows[:, -1] / count,
        noise=noise,
        count_noise=noise / count,
    )
    if isinstance(spec, QuestionnaireSpec):
        noisy = replace(noisy, questionnaire=released_answers(answer[spec.sums :], spec, listed, noise))
    return noisy


def _check_finished(settings: ClassSumsSettings, path: str, task: Task) -> None:
    noisy, _ = class_sums_file.read_noisy_sums(Path(path))
    class_sums_file.check_labels(noisy, tuple(task.labels), Path(path))
    numbers, usable = noisy.questionnaire, ["none"]
    if numbers is not None:
        usable += ["questions", *["terms"] * bool(numbers.listed)]
    if settings.questionnaire not in usable:
        expected = f"{' or '.join(reversed(usable))}, for class sums without more answers"
        raise ConfigError("method.questionnaire", expected=expected, got=settings.questionnaire, where=path)


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

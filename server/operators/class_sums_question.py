"""The query for class sums: how it is planned, and how it is sent to the hospitals.

A plan has one query, for class sums, with all of epsilon. With `questionnaire` the same answer contains the number of
records with each form of text. If texts have several labels, or sections, one more query with a fraction of epsilon
asks which labels occur together (`label_sets.py`), or in which order sections follow one another (`section_texts.py`).

With the class sums of a finished run (setting `census`) no queries are asked, so only answers that the finished run
obtained can be used.

The query contains a public subspace and the centres of the labels, both functions of the first round's texts and of the
labels' descriptions (`class_sums.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from common.errors import ConfigError
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.questions import QUESTIONS
from common.queries.terms import encode_terms
from server.domain import Task
from server.method import Tools
from server.operators import class_sums_file, label_sets, section_texts
from server.operators.class_sums import NoisySums, softness, subspace
from server.operators.questionnaire import common_words, released_answers
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

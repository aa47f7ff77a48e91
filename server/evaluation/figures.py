"""Figures with their intervals and reasons, and the groups of figures that can be had of any texts."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.domain import Record
from common.errors import CaucusError
from common.models.encoder import Encoder
from server.domain import Candidate
from server.evaluation.small_model import Evaluation, predictions
from server.metrics import clusters, intervals, manifolds, surface, transport, utility
from server.metrics.fidelity import fid

log = logging.getLogger("caucus.measures")

Figure = dict[str, Any]
Group = dict[str, Any]

_FID = "FID: squared Frechet distance of Gaussians in the encoder's space, biased upward for few texts. "


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What figures are of.

    Attributes:
        candidates: The synthetic texts.
        test: Real texts that are no party's records.
        evaluation: The small model, and the sizes of others.
        encoder: The agreed one.
        experiment_seed: Of all that is drawn.
        embed: As the encoder does; one that remembers what it has embedded saves the most costly part.
    """

    candidates: Sequence[Candidate]
    test: Sequence[Record] = field(repr=False)
    evaluation: Evaluation
    encoder: Encoder
    experiment_seed: int = 0
    embed: Callable[[Sequence[str]], NDArray[np.float32]] | None = None

    @cached_property
    def texts(self) -> list[str]:
        """Of the candidates."""
        return [candidate.text for candidate in self.candidates]

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(candidates, dim)."""
        return self.embedded(self.texts)

    @cached_property
    def test_vectors(self) -> NDArray[np.float32]:
        """(test, dim)."""
        return self.embedded([record.text for record in self.test])

    def embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, dim)."""
        return (self.embed or self.encoder.encode)(texts)

    def drawn(self, records: Sequence[Any], purpose: str, most: int | None = None) -> list[Any]:
        """At most so many of them, in an order that the experiment seed decides."""
        order = rng.experiment(self.experiment_seed, "measures", purpose).permutation(len(records))
        return [records[at] for at in order[: most or self.evaluation.texts]]


def figure(
    value: Callable[[], float], *, rows: int, interval: Callable[[], intervals.Interval | None] | None = None
) -> Figure:
    """A figure, or why there is none."""
    try:
        found = value()
    except (CaucusError, ValueError, ArithmeticError) as error:
        return missing(["figure"], error, rows=rows)["figure"]
    if math.isnan(found):
        return {"value": None, "reason": "it is not a number: nothing divided by nothing", "rows": rows}
    return {"value": found, "interval": interval() if interval else None, "rows": rows}


def together(make: Callable[[], Mapping[str, float]], names: Sequence[str], *, rows: int) -> dict[str, Figure]:
    """Figures that come from one computation: all of them, or the same reason for each."""
    try:
        made = make()
    except (CaucusError, ValueError, ArithmeticError) as error:
        return missing(names, error, rows=rows)
    return {name: figure(lambda name=name: made[name], rows=rows) for name in names}  # type: ignore[misc]


def missing(names: Iterable[str], error: Exception, *, rows: int) -> dict[str, Figure]:
    """The reason in place of each figure: our message, or a library's kind of error, whose message may hold text."""
    reason = str(error) if isinstance(error, CaucusError) else f"a library failed ({type(error).__name__})"
    log.info("no %s: %s", ", ".join(names), reason)
    return {name: {"value": None, "reason": reason, "rows": rows} for name in names}


def classification(
    measured: Measured, train: Sequence[Record], weights: Sequence[float] | None, evaluation: Evaluation
) -> Group:
    """Accuracy and macro-F1 of the small model trained on these, tested on the test texts."""
    seeds = evaluation.seeds if evaluation.model != "tfidf" else 1  # the default draws no lots
    right = [record.label for record in measured.test]
    note = None
    answers: list[list[str]] = []
    try:
        for seed in range(seeds):
            said, note = predictions(
                train, measured.test, weights=weights, evaluation=evaluation, encoder=measured.encoder,
                experiment_seed=measured.experiment_seed + seed,
            )  # fmt: skip
            answers.append(said)
    except (CaucusError, ValueError) as error:
        return {"definition": evaluation.definition} | missing(("accuracy", "macro_f1"), error, rows=len(right))
    unseen = sum(label not in {record.label for record in train} for label in right)
    notes = ([note] if note else []) + [f"{unseen} of {len(right)} test texts have labels never learned"] * bool(unseen)
    spread = f"over {seeds} trainings (Student's t)" if seeds > 1 else "over test texts (bootstrap, 500 draws)"
    return {
        "definition": f"{evaluation.definition} Trained on {len(train)} texts. Intervals {spread}.",
        "accuracy": _scored(utility.accuracy, answers, right),
        "macro_f1": _scored(utility.macro_f1, answers, right),
    } | ({"note": "; ".join(notes)} if notes else {})


def _scored(
    score: Callable[[NDArray[np.str_], NDArray[np.str_]], float], answers: Sequence[Sequence[str]], right: Sequence[str]
) -> Figure:
    first, true = np.array(answers[0]), np.array(right)
    values = [score(np.array(said), true) for said in answers]

    def again(at: NDArray[np.intp]) -> float:
        return score(first[at], true[at])

    return figure(
        lambda: float(np.mean(values)),
        rows=len(right),
        interval=lambda: intervals.over_seeds(values) or intervals.over_rows(again, len(right)),
    )


def language_modelling(measured: Measured, train: Sequence[str]) -> Group:
    """Perplexity and next-token accuracy, on the test texts, of a language model trained on these."""
    from server.metrics.language_model import DEFINITION, LanguageModel  # noqa: PLC0415 — as torch

    settings, seeds = measured.evaluation.language_model, measured.evaluation.seeds
    test = [record.text for record in measured.drawn(measured.test, "tested")]
    scores: dict[str, Callable[[NDArray[np.float64]], float]] = {
        "perplexity": lambda sums: float(np.exp(sums[0].sum() / sums[1].sum())),
        "next_token_accuracy": lambda sums: float(sums[2].sum() / sums[1].sum()),
    }
    start = settings.get("start") or "a transformer of its own, from nothing"
    about = f"{DEFINITION} From {start}; trained on {len(train)} texts, {seeds} times."
    try:
        models = (
            # The tokenizer is of the test texts, so that perplexities of different training texts can be compared.
            LanguageModel.train(train, seed=measured.experiment_seed + seed, tokens_of=test, **settings)
            for seed in range(seeds)
        )
        totals = [np.stack(model.totals(test)) for model in models]
    except CaucusError as error:
        return {"definition": about} | missing(scores, error, rows=len(test))
    return {"definition": about} | {
        name: figure(
            lambda score=score: float(np.mean([score(sums) for sums in totals])),  # type: ignore[misc]
            rows=len(test),
            interval=lambda score=score: (
                intervals.over_seeds([score(sums) for sums in totals])  # type: ignore[misc]
                or intervals.over_rows(lambda at: score(totals[0][:, at]), len(test))
            ),
        )
        for name, score in scores.items()
    }


def fidelity(measured: Measured, real: Sequence[Record], vectors: Callable[[], NDArray[np.float32]]) -> Group:
    """How far the synthetic texts are from real ones."""
    seed = measured.experiment_seed
    ours, theirs, rows = measured.vectors, vectors(), len(real)
    texts, labels = [record.text for record in real], [record.label for record in real]

    def overlap() -> Mapping[str, float]:
        found = manifolds.overlap(ours, theirs, seed=seed)
        return {name: getattr(found, name) for name in ("precision", "recall", "f1", "density", "coverage")}

    def divergences() -> Mapping[str, float]:
        found = clusters.divergences(ours, theirs, seed=seed)
        return {name: getattr(found, name) for name in ("mauve", "kl", "total_variation")}

    mine = [candidate.label for candidate in measured.candidates]
    return {
        "definition": _FID + " ".join(each.DEFINITION for each in (clusters, manifolds, transport, surface)),
        "fid": figure(lambda: fid(ours, theirs), rows=rows),
        **together(divergences, ("mauve", "kl", "total_variation"), rows=rows),
        **together(overlap, ("precision", "recall", "f1", "density", "coverage"), rows=rows),
        "wasserstein": figure(lambda: transport.wasserstein(ours, theirs, seed=seed), rows=rows),
        "sinkhorn": figure(lambda: transport.sinkhorn(ours, theirs, seed=seed), rows=rows),
        "length_distance": figure(lambda: surface.length_distance(measured.texts, texts), rows=rows),
        "sentiment_agreement": figure(lambda: surface.agreement(measured.texts, mine, texts, labels), rows=rows),
    }

"""Figures with their intervals, or with reasons why they are missing, and the groups that apply to any set of texts."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.domain import Record, is_one_population
from common.errors import CaucusError, DataError
from common.models.encoder import Encoder
from server.documents.metrics import Figure, Group
from server.domain import Candidate, has_label_sets
from server.evaluation import subgroups
from server.evaluation.small_model import Evaluation, predictions
from server.metrics import accuracy, fidelity, intervals, language_model, surface
from server.metrics.language_model import LanguageModel

log = logging.getLogger("caucus.measures")

SEVERAL_LABELS = "a text may have several labels: what they teach is in the figures of label sets"
WITHOUT_LABELS = "the task has no labels, so no classifier learns from the texts"
"""Reason given in place of accuracies."""
_OVER_TEXTS = "over the test texts alone: of accuracy exact (Clopper and Pearson), of macro_f1 by a jackknife"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Input for all figures.

    Attributes:
        candidates: The synthetic texts.
        test: Real texts that do not belong to any party.
        evaluation: Settings of the small model and of all other figures.
        encoder: The agreed encoder.
        experiment_seed: Seed for all sampling.
        embed: Function used in place of `encoder.encode`, for example a version with a cache, since embedding is the
            most costly step.
        released: The synthetic texts as released, if a candidate is one of several sections of a text. If None, the
            candidates' texts are the released texts.
        public: Function that reads the task's public texts, if it has any; needed only for comparisons with public
            texts.
        language: Language of the texts.
    """

    candidates: Sequence[Candidate]
    test: Sequence[Record] = field(repr=False)
    evaluation: Evaluation
    encoder: Encoder
    experiment_seed: int = 0
    embed: Callable[[Sequence[str]], NDArray[np.float32]] | None = None
    released: Sequence[str] | None = None
    public: Callable[[], Sequence[str]] = tuple
    language: str = "english"

    @property
    def labelled(self) -> bool:
        """Whether the texts have labels."""
        return not is_one_population({text.label for text in self.candidates} | {record.label for record in self.test})

    @property
    def several(self) -> bool:
        """Whether a text may have several labels."""
        return has_label_sets(self.candidates)

    @property
    def one_label(self) -> bool:
        """Whether each text has exactly one label."""
        return self.labelled and not self.several

    @property
    def whole_texts(self) -> Sequence[str]:
        """The released texts, each whole."""
        return self.texts if self.released is None else self.released

    @property
    def in_sections(self) -> bool:
        """Whether each candidate is a section of a released text, which may have several sections."""
        return len(self.candidates) != len(self.whole_texts)

    @cached_property
    def texts(self) -> list[str]:
        """Texts of the candidates."""
        return [candidate.text for candidate in self.candidates]

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """Vectors of the candidates, (candidates, dim)."""
        return self.embedded(self.texts)

    @cached_property
    def test_vectors(self) -> NDArray[np.float32]:
        """Vectors of the test texts, (test, dim)."""
        return self.embedded([record.text for record in self.test])

    def embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embeddings of texts, (texts, dim)."""
        return (self.embed or self.encoder.encode)(texts)

    def drawn(self, records: Sequence[Any], purpose: str, most: int | None = None) -> list[Any]:
        """Draw at most `most` records (by default `evaluation.texts`); the experiment seed determines the sample."""
        order = rng.experiment(self.experiment_seed, "measures", purpose).permutation(len(records))
        return [records[at] for at in order[: most or self.evaluation.texts]]


def figure(
    value: Callable[[], float], *, rows: int, interval: Callable[[], intervals.Interval | None] | None = None
) -> Figure:
    """Return a figure with its interval, or the reason why it is missing."""
    try:
        number = value()
    except (CaucusError, ValueError, ArithmeticError) as error:
        return reason_for("figure", error, rows=rows)
    if math.isnan(number):
        return Figure(reason="it is not a number: nothing divided by nothing", rows=rows)
    return Figure(value=number, interval=interval() if interval else None, rows=rows)


def figure_over_texts(
    *scores: Callable[[NDArray[np.intp]], float],
    rows: int,
    within: intervals.Interval = (0.0, 1.0),
    others: Sequence[intervals.Variance] = (),
    exact: intervals.Interval | None = None,
) -> Figure:
    """Return the mean of a figure over several trainings with an interval over them.

    For one training the interval is over the test texts.

    Args:
        scores: For each training, a function that computes the figure from the indices of test texts.
        rows: Number of test texts.
        within: Range of the figure.
        others: For one training, variances from other sources (`intervals.interval_over_rows`).
        exact: For one training, the interval in place of the jackknife's.
    """

    def values() -> list[float]:
        return [score(np.arange(rows)) for score in scores]

    return figure(
        lambda: float(np.mean(values())),
        rows=rows,
        interval=lambda: (
            intervals.interval_over_seeds(values())
            or exact
            or intervals.interval_over_rows(scores[0], rows, within=within, others=others)
        ),
    )


def share(hits: int, rows: int) -> Figure:
    """Return the fraction of hits among the rows, with its exact interval."""
    return Figure(value=hits / rows, interval=intervals.share_interval(hits, rows), rows=rows)


def missing(names: Sequence[str], error: Exception, *, rows: int, of: str = "") -> dict[str, Figure]:
    """Return the reason in place of each figure; the log names the figures, and what they are of."""
    reason = reason_for(", ".join(names) + (of and f" of {of}"), error, rows=rows)
    return dict.fromkeys(names, reason)


def reason_for(name: str, error: Exception, *, rows: int) -> Figure:
    """Return the reason in place of a figure: only the type of a library's error, whose message may quote text."""
    reason = str(error) if isinstance(error, CaucusError) else f"a library failed ({type(error).__name__})"
    log.info("no %s: %s", name, reason)
    return Figure(reason=reason, rows=rows)


def classification(measured: Measured, train: Sequence[Candidate | Record], evaluation: Evaluation) -> Group | Figure:
    """Measure the accuracy and macro-F1 of the small model trained on `train` on test texts, if these have labels."""
    if not measured.one_label:
        return Figure(reason=SEVERAL_LABELS if measured.several else WITHOUT_LABELS)
    seeds = 1 if evaluation.deterministic else evaluation.seeds
    right = [record.label for record in measured.test]
    note = None
    answers: list[list[str]] = []
    try:
        for seed in range(seeds):
            predicted, note = predicted_by(measured, train, evaluation, seed)
            answers.append(predicted)
    except (CaucusError, ValueError) as error:
        return {"definition": evaluation.definition} | missing(("accuracy", "macro_f1"), error, rows=len(right))
    unseen = sum(label not in {record.label for record in train} for label in right)
    notes = ([note] if note else []) + [f"{unseen} of {len(right)} test texts have labels never learned"] * bool(unseen)
    spread = f"over {seeds} {intervals.OVER_TRAININGS}" if seeds > 1 else _OVER_TEXTS
    hits = np.mean([np.array(predicted) == right for predicted in answers], axis=0)
    groups = {"label": right, "length": subgroups.lengths([record.text for record in measured.test])}
    return {
        "definition": f"{evaluation.definition} Trained on {len(train)} texts. Intervals {spread}.",
        "trained_on": len(train),
        **accuracy_scores(answers, right),
        **subgroups.worst(hits, groups),
    } | ({"note": "; ".join(notes)} if notes else {})


def predicted_by(
    measured: Measured, train: Sequence[Candidate | Record], evaluation: Evaluation, number: int
) -> tuple[list[str], str | None]:
    """Predict the test texts' labels by the small model in training number `number` (`small_model.predictions`)."""
    return predictions(
        train,
        measured.test,
        evaluation=evaluation,
        encoder=measured.encoder,
        experiment_seed=measured.experiment_seed + number,
    )


def difference(
    before: NDArray[np.float64], after: NDArray[np.float64], others: Sequence[intervals.Variance] = ()
) -> Figure:
    """Return the mean gain from `before` to `after`, with its interval; rows are fractions of correct answers.

    The interval is over the rows and has the variances in `others` added.
    """
    interval = intervals.paired_shares_interval(before, after, others)
    return Figure(value=float(after.mean() - before.mean()), interval=interval, rows=len(after))


def accuracy_scores(answers: Sequence[Sequence[str]], right: Sequence[str]) -> dict[str, Figure]:
    """Return accuracy and macro-F1, each the mean over several trainings with an interval over them.

    For one training the interval is over the test texts: exact for accuracy, by a jackknife for macro-F1.

    Args:
        answers: For each training, the predicted labels of the test texts.
        right: The labels of the test texts.
    """
    given, true, rows = [np.array(predicted) for predicted in answers], np.array(right), len(right)
    exact = intervals.share_interval(int((given[0] == true).sum()), rows)

    def mean(score: Callable[..., float], exact: intervals.Interval | None = None) -> Figure:
        scores = (lambda at, of=predicted: score(of[at], true[at]) for predicted in given)
        return figure_over_texts(*scores, rows=rows, exact=exact)

    return {"accuracy": mean(accuracy.accuracy, exact), "macro_f1": mean(accuracy.macro_f1)}


def language_modelling(measured: Measured, train: Sequence[str]) -> Group:
    """Measure the perplexity and next-token accuracy on the test texts of a language model trained on `train`."""
    settings, seeds = measured.evaluation.language_model, measured.evaluation.seeds
    test = [record.text for record in measured.drawn(measured.test, "tested")]
    start = settings.start or "a transformer trained from scratch"
    about = f"{language_model.DEFINITION} From {start}; trained on {len(train)} texts, {seeds} times."
    try:
        models = (
            # The tokenizer is of the test texts, so that perplexities of different training texts can be compared.
            LanguageModel.train(train, settings, seed=measured.experiment_seed + seed, tokens_of=test)
            for seed in range(seeds)
        )
        totals = [np.stack(model.totals(test)) for model in models]
    except CaucusError as error:
        return {"definition": about} | missing(("perplexity", "next_token_accuracy"), error, rows=len(test))

    def mean(score: Callable[[NDArray[np.float64]], float], most: float) -> Figure:
        scores = (lambda at, of=sums: score(of[:, at].sum(axis=1)) for sums in totals)
        return figure_over_texts(*scores, rows=len(test), within=(0.0, most))

    return {
        "definition": about,
        "perplexity": mean(lambda sums: float(np.exp(sums[0] / sums[1])), math.inf),
        "next_token_accuracy": mean(lambda sums: float(sums[2] / sums[1]), 1.0),
    }


def real_against_real(
    measured: Measured, records: Sequence[Record], real: Sequence[Record], about: str, *, sets: str
) -> Group:
    """Measure the fidelity of real texts to other real texts, as the level that synthetic texts could reach.

    Args:
        measured: Settings and encoder.
        records: Real texts that are evaluated in place of the synthetic texts.
        real: The real texts with which `records` are compared.
        about: Description of both sets, for the definition.
        sets: Names of both sets, for the log.
    """
    candidates = [Candidate(text=record.text, label=record.label, model="", round=0) for record in records]
    in_place = replace(measured, candidates=candidates)
    vectors = partial(measured.embedded, [record.text for record in real])
    definition = f"{about} The figures of sets of other sizes differ a little for that alone, FID most."
    return fidelity_group(in_place, real, vectors, sets=sets) | {"definition": definition}


def fidelity_group(
    measured: Measured, real: Sequence[Record], vectors: Callable[[], NDArray[np.float32]], *, sets: str
) -> Group:
    """Measure the distances of the synthetic texts from real ones; `sets` names both, for the log."""
    seed = measured.experiment_seed
    ours, theirs, rows = measured.vectors, vectors(), len(real)
    texts, labels = [record.text for record in real], [record.label for record in real]

    def distances(names: Sequence[str], measure: Callable[..., Mapping[str, float]]) -> dict[str, Figure]:
        try:
            values = measure(ours, theirs, seed=seed)
        except (CaucusError, ValueError, ArithmeticError) as error:
            return missing(names, error, rows=rows, of=sets)
        return {name: figure(partial(values.__getitem__, name), rows=rows) for name in names}

    def agreement() -> float:
        if measured.language != "english":
            raise DataError("sentiments", expected="English texts, as the rules are of English", got=measured.language)
        ours = [candidate.label for candidate in measured.candidates]
        return surface.sentiment_agreement(measured.texts, ours, texts, labels)

    return {
        "definition": f"{fidelity.DEFINITION} {surface.DEFINITION}",
        "fid": figure(lambda: fidelity.fid(ours, theirs), rows=rows),
        **distances(fidelity.DIVERGENCES, fidelity.divergences),
        **distances(fidelity.OVERLAP, fidelity.overlap),
        "wasserstein": figure(lambda: fidelity.wasserstein(ours, theirs, seed=seed), rows=rows),
        "sinkhorn": figure(lambda: fidelity.sinkhorn(ours, theirs, seed=seed), rows=rows),
        "length_distance": figure(lambda: surface.length_distance(measured.texts, texts), rows=rows),
        "sentiment_agreement": figure(agreement, rows=rows),
    }

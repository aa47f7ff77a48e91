"""Figures on spans: what a token classifier learns from the synthetic texts, and which marks were kept or dropped.

The held-out texts with spans are split at random. A token classifier is trained three times: on one half, on the
synthetic texts, and on texts that the same models wrote before any answer. All three are tested on the other half.
Since a classifier learns more from more texts, these three trainings use the same number of texts; a fourth training
uses all synthetic texts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.errors import CaucusError
from server.documents.metrics import Figure, Group
from server.domain import Candidate, Example, Task
from server.evaluation.figures import figure_over_texts, reason_for
from server.metrics import tagger
from server.spans import REASONS, Marked

LEARNED, MARKS = "spans", "marks"
"""Names of the groups."""

_DRAWS = 3
"""Number of random subsets of a training set that is larger than the smallest; figures are averages over them."""
_LEARNED = (
    "{model} Trained on all {synthetic} synthetic texts, tested on {tested} held-out ones. as_many: trained on {texts} "
    "of the synthetic texts; zero_shot: on as many texts that the same models wrote before any answer; real: on as "
    "many other held-out texts; of a larger set {draws} random parts in turn. difference: F1 of as_many minus that of "
    "zero_shot. F1, precision and recall are over all spans of the test texts. Intervals are over the test texts alone "
    "(jackknife): other texts to learn from would give other figures."
)
_MARKS = "Spans that the language models marked in the synthetic texts."
_NO_TEST = "no held-out text has spans, or only one: they are in task.test, as JSON Lines"
_DROPPED = "no spans: "

Cleaned = Iterable[Mapping[str, Mapping[str, int]]]
"""For each round, the numbers of repaired and dropped texts, keyed by model and by the cleaner's rule."""


def span_groups(
    candidates: Sequence[Candidate],
    zero_shot: Sequence[Candidate],
    held_out: Callable[[], Sequence[Example]],
    task: Task,
    cleaned: Cleaned,
    *,
    experiment_seed: int,
) -> dict[str, Group]:
    """Return both groups for a run; empty if the task has no types of spans.

    Args:
        candidates: The synthetic texts.
        zero_shot: Texts that the same models wrote before any answer; may be empty.
        held_out: Reads the real texts with spans that do not belong to any party; there may be none.
        task: The task, with the types.
        cleaned: Numbers of repaired and dropped texts.
        experiment_seed: Seed for all sampling.
    """
    if not task.spans:
        return {}
    return tagger_group(candidates, zero_shot, held_out(), task, experiment_seed=experiment_seed) | {
        MARKS: _marks(candidates, task, cleaned)
    }


def tagger_group(
    candidates: Sequence[Candidate],
    zero_shot: Sequence[Candidate],
    held_out: Sequence[Example],
    task: Task,
    *,
    experiment_seed: int,
) -> dict[str, Group]:
    """Return the group on what the token classifier learned; see `span_groups`."""
    if not task.spans:
        return {}
    if len(held_out) < 2:
        return {LEARNED: {"definition": tagger.DEFINITION, "f1": Figure(reason=_NO_TEST, rows=0)}}

    def drawn(texts: Sequence[Marked], most: int, number: int = 0) -> list[Marked]:
        order = rng.experiment(experiment_seed, "spans", number).permutation(len(texts))
        return [texts[at] for at in order[:most]]

    real = drawn([Marked(text.text, text.spans or ()) for text in held_out], len(held_out))
    test, other = real[len(real) // 2 :], real[: len(real) // 2]
    ours = _marked(candidates)
    sets = {"as_many": ours, "zero_shot": _marked(zero_shot), "real": other}
    sets = {name: texts for name, texts in sets.items() if texts}
    texts = min(map(len, sets.values()))
    counts = {
        name: _counts([drawn(members, texts, nth) for nth in range(_DRAWS if len(members) > texts else 1)], test)
        for name, members in sets.items()
    }
    everything = _counts([ours], test)
    group: Group = {
        "definition": _LEARNED.format(
            model=tagger.DEFINITION, synthetic=len(ours), tested=len(test), texts=texts, draws=_DRAWS
        ),
        "trained_on": len(ours),
        **{name: _score(everything, len(test), name) for name in ("f1", "precision", "recall")},
        **{name: _score(of_set, len(test), "f1") for name, of_set in counts.items()},
    }
    before, after = counts.get("zero_shot"), counts.get("as_many")
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):

        def gain(at: NDArray[np.intp]) -> float:
            return tagger.span_scores(after[at])["f1"] - tagger.span_scores(before[at])["f1"]

        group["difference"] = figure_over_texts(gain, rows=len(test), within=(-1.0, 1.0))
    return {LEARNED: group}


def _counts(trainings: Sequence[Sequence[Marked]], test: Sequence[Marked]) -> NDArray[np.int64] | CaucusError:
    """Return the sums of the counts of `tagger.matches` over several trainings, or the error if one fails."""
    texts, right = [text.text for text in test], [text.spans for text in test]
    try:
        counts = [tagger.matches(tagger.train_and_tag(train, texts), right) for train in trainings]
    except CaucusError as error:
        return error
    return np.asarray(np.sum(counts, axis=0))


def _score(counts: NDArray[np.int64] | CaucusError, rows: int, name: str) -> Figure:
    if isinstance(counts, CaucusError):
        return reason_for(name, counts, rows=rows)
    return figure_over_texts(lambda at: tagger.span_scores(counts[at])[name], rows=rows)


def _marks(candidates: Sequence[Candidate], task: Task, cleaned: Cleaned) -> Group:
    texts, rows = _marked(candidates), len(candidates)
    kinds = [span.type for text in texts for span in text.spans]
    by_type = {f"{name} in a text": Figure(value=kinds.count(name) / max(1, rows), rows=rows) for name in task.spans}
    return {
        "definition": _MARKS,
        "texts without spans": Figure(value=rows - sum(bool(text.spans) for text in texts), rows=rows),
        **by_type,
        "note": f"Of what the models wrote, {_dropped(cleaned)}. Reasons to drop a text: {', '.join(REASONS)}.",
    }


def _dropped(cleaned: Cleaned) -> str:
    """Return how many texts of all rounds were dropped for their marks, by reason."""
    counts: Counter[str] = Counter()
    for rules in (rules for by_model in cleaned for rules in by_model.values()):
        of_marks = {rule: count for rule, count in rules.items() if rule.startswith(_DROPPED)}
        counts.update({rule.removeprefix(_DROPPED): count for rule, count in of_marks.items()})
    listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items()))
    return f"dropped: {listed}" if listed else "no text was dropped for its marks"


def _marked(candidates: Sequence[Candidate]) -> list[Marked]:
    return [Marked(text.text, text.spans) for text in candidates if text.spans is not None]

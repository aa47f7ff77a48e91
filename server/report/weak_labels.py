"""Weaknesses of a run's labels: those recognised badly, and those with too few, too many or too similar texts."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from common.phrases import series
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary
from server.documents.weaknesses import Weakness
from server.domain import Candidate
from server.evaluation.subgroups import FEWEST
from server.metrics.intervals import level_of_each, of_share
from server.report.advice import MOST_NAMED, listed, more_signal
from server.report.labels import record_shares, weights_of

APART = 0.25
"""Total variation from which labels of texts and records differ widely: one text in four would need another label."""
CROWDED = 1.25
"""Ratio of a label's number of texts to the number that its share supports, from which the label is crowded."""
POOR = 0.5
"""Ratio of a label's recall to the mean of all labels, below which a label is served badly."""


def poor_labels(metrics: Metrics) -> Iterator[Weakness]:
    """Yield a weakness for labels whose recall is below `POOR` times the mean, by intervals for all labels at once."""
    recalled = metrics.synthetic.recalled if metrics.synthetic else {}
    tested = {label: (hits, rows) for label, (hits, rows) in recalled.items() if rows >= FEWEST}
    if not tested:
        return
    recalls = {label: hits / rows for label, (hits, rows) in tested.items()}
    mean, level = sum(recalls.values()) / len(recalls), level_of_each(len(tested))
    poor = [label for label, of in tested.items() if of_share(*of, level=level)[1] < POOR * mean]
    if poor:
        named = [f"{label} {recalls[label]:.0%}" for label in sorted(poor, key=recalls.__getitem__)]
        yield Weakness(
            what=f"a classifier of the texts recognises these labels far less often than labels are in the mean, "
            f"{mean:.0%}: {listed(named)}",
            do="describe these labels more closely (task.labels), and do not use the texts where they matter",
        )


def unbalanced_labels(
    run: RunSummary,
    privacy: Privacy | None,
    rounds: Sequence[RoundReport],
    metrics: Metrics,
    texts: Sequence[Candidate],
    *,
    more: Sequence[str],
) -> Iterator[Weakness]:
    """Yield weaknesses for labels without a text, and for proportions of labels that differ from the records'."""
    weights = weights_of(texts)
    total = sum(weights.values())
    if total <= 0:
        return
    labels = run.labels or {}
    if without := [label for label in labels if label not in weights]:
        yield Weakness(
            what=f"{len(without)} of {len(labels)} labels have no text: {listed(without)}",
            do=", or ".join([*more, "describe these labels (task.labels)"]),
        )
    shares, exact = record_shares(privacy, rounds, metrics)
    if not shares:
        return
    gaps = {label: weights[label] / total - shares.get(label, 0.0) for label in sorted({*shares, *weights})}
    apart = sum(map(abs, gaps.values())) / 2
    if apart <= APART:
        return
    ours, theirs = _counted_in(texts)
    widest = sorted(gaps, key=lambda label: -abs(gaps[label]))[:MOST_NAMED]
    named = ", ".join(
        f"{label} {weights[label] / total:.0%} of the {ours} and {shares.get(label, 0.0):.0%} of the {theirs}"
        for label in widest
    )
    by = "" if exact else ", by the released, noised counts"
    steps = ["weigh or draw the texts by the labels' shares before training"]
    if run.method not in {"census", "dpga"}:
        steps.append(f"try method=census or dpga (now {run.method}), which ask how many records have each label")
    yield Weakness(
        what=f"labels of texts and records differ by {apart:.0%}{by}: {named}",
        do=series(steps, "or"),
        simulation_only=exact,
    )


def unlike_pairs(run: RunSummary, privacy: Privacy | None, metrics: Metrics) -> Iterator[Weakness]:
    """Yield a weakness if the pairs of labels in texts are less like real ones than chance makes them."""
    sets = metrics.label_sets
    if sets is None or sets.pairs_apart is None or sets.independent_apart is None:
        return
    if sets.pairs_apart > sets.independent_apart:
        steps = [*more_signal(run, privacy), "fewer labels a text (task.labels_per_text)"]
        yield Weakness(
            what=f"pairs of labels in the texts are further from those of the test texts, {sets.pairs_apart:.2f}, "
            f"than pairs of independent labels are, {sets.independent_apart:.2f}",
            do=f"it takes {series(steps, 'or')}",
        )


def crowded_labels(
    run: RunSummary, texts: Sequence[Candidate], shares: tuple[Mapping[str, float], bool], share_noise: float
) -> Iterator[Weakness]:
    """Yield a weakness for each label that attracts texts of other labels or of none, such as one that fits everything.

    A method may request equally many texts of each label, so an equal proportion is always supported. Released
    proportions may be wrong by twice their noise. Numbers of texts may deviate by twice the standard deviation that
    they would have if the labels were drawn at random.
    """
    records, exact = shares
    if not records or not texts:
        return
    counts = Counter(label for text in texts for label in text.labels)
    total = counts.total()
    crowded, (ours, theirs) = {}, _counted_in(texts)
    for label, count in counts.items():
        share = records.get(label, 0.0) + (0.0 if exact else 2 * share_noise)
        supported = min(1.0, max(share, 1 / max(len(records), len(run.labels or {}))))
        if count > max(CROWDED * supported * total, supported * total + 2 * math.sqrt(total * supported)):
            crowded[label] = count
    for label in sorted(crowded, key=lambda label: -crowded[label])[:MOST_NAMED]:
        by = "" if exact else " by the released, noised counts"
        yield Weakness(
            what=f"{label} has {crowded[label]} of {total} {ours} ({crowded[label] / total:.0%}) for "
            f"{records.get(label, 0.0):.0%} of the {theirs}{by}",
            do="read some of them, as they may belong to no label, and describe all labels more closely (task.labels)",
            simulation_only=exact,
        )


def _counted_in(texts: Sequence[Candidate]) -> tuple[str, str]:
    """Return what labels are counted in, of texts and of records: themselves, unless they have several labels."""
    if not any(len(text.labels) > 1 for text in texts):
        return "texts", "records"
    several = "sections" if any(text.sections for text in texts) else "labels"
    return f"{several} of texts", f"{several} of records"

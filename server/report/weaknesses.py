"""Weaknesses of a run's results, each with advice in a sentence, for the log, the page and `status`.

The weaknesses follow from the content of a run folder, which is public or released: texts, figures on test texts,
noised answers. Only a simulation has the records' own labels (`simulations/private_evaluation`), and weaknesses that
follow from these labels are marked as such. No two pieces of a run's advice move a setting in opposite directions: the
causes come first, and decide (`server.report.advice.more_texts`).

    repeated     fewer than half of the texts are different
    accuracy     95 % interval not above the fraction of the most frequent label, or all below it
    poor labels  recognised less than half as often as labels are in the mean, beyond chance
    gain         the 95 % interval of the difference from the same models without the hospitals is not above 0; of
                 accuracies or, without labels, of distances from real texts
    gap          more than three points of accuracy lost from the released numbers' own classifier to the texts
    FID          higher in the last round than in an earlier one, by more than two standard errors of the difference
    votes        spread over the candidates, without their noise, by less than half of the noise (`signal.HOPELESS`)
    labels       fractions of texts and records that differ by more than a quarter; labels without any text
    pairs        pairs of labels further from those of the test texts than pairs of independent labels are
    crowded      a label with far more of the texts than its proportion of the records supports, allowing for noise
    lost texts   more than a tenth of the requested texts
    files        of a simulation (`simulations/federation/inputs.py`), which its log has from the start
    disclosures  records are disclosed more often than test texts, by a test of the hypothesis that nothing was learned

Before the first answer a run warns about queries whose answers noise is expected to drown
(`server/planning/signal.py`). Such a warning is also a weakness, until the votes are available: then the measurement
replaces the expectation.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.phrases import series
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary
from server.documents.weaknesses import InputWeaknesses, Weakness
from server.domain import Candidate
from server.guarantee.case import Kind, guarantee_kind
from server.llm.base import advice_on
from server.llm.use import counts_of_losses
from server.planning.signal import FEWER_CANDIDATES, HOPELESS
from server.report import weak_labels
from server.report.advice import FEWER_TEXTS, MOST_NAMED, listed, more_signal, more_texts
from server.report.labels import record_shares
from server.report.utility import ACCURACY, BETTER, UNCLEAR, WITHOUT, accuracies
from server.report.verdict import gained, nearer, points
from server.report.vote_distributions import Votes

RISE = 2.0
"""Number of standard errors from which a rise of FID counts: one rise in 40 is larger by chance. For few texts the
error is itself estimated too large rather than too small (`server.metrics.fidelity.fid_error`)."""
GAP = 0.03
"""Loss of accuracy, from the released numbers' classifier to the texts, above which a weakness is reported."""
MANY_LOST = 0.1
"""Share of the requested texts above which their loss is a weakness."""

_FEWEST = 20
"""Smallest number of texts of which duplicates are a weakness."""


def weaknesses(
    run: RunSummary,
    *,
    privacy: Privacy | None,
    rounds: Sequence[RoundReport],
    metrics: Metrics,
    texts: Sequence[Candidate],
    votes: Sequence[Votes],
    share_noise: float = 0.0,
) -> tuple[Weakness, ...]:
    """Return all weaknesses of a run folder; `share_noise` is the standard deviation of a label's noised proportion."""
    repeated, noise = tuple(_repeated(texts)), tuple(_votes(run, privacy, votes))
    more = more_texts(texts, causes=(*repeated, *noise))
    return (
        *repeated,
        *_accuracy(run, rounds, metrics, texts, more),
        *weak_labels.poor_labels(metrics),
        *_gain(run, privacy, metrics, more),
        *_generation_gap(metrics, more),
        *_fid(run, privacy, rounds),
        *noise,
        *weak_labels.unbalanced_labels(run, privacy, rounds, metrics, texts, more=more),
        *weak_labels.unlike_pairs(run, privacy, metrics),
        *weak_labels.crowded_labels(run, texts, record_shares(privacy, rounds, metrics), share_noise),
        *_lost(rounds),
        *_disclosures(metrics),
    )


def read_weaknesses(run: Path, *, of_inputs: bool = True) -> list[Weakness]:
    """Return the weaknesses in the report of a run folder; none if the report is missing or damaged.

    Args:
        run: The run folder.
        of_inputs: Whether to include those of a simulation's files, which its log has from the start.
    """
    path = run / "report.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        logged = None if of_inputs else InputWeaknesses.load_if_there(run)
        every = [Weakness(**weakness) for weakness in facts.get("weaknesses", ())]
        return [weakness for weakness in every if logged is None or weakness not in logged.weaknesses]
    except (AttributeError, TypeError, ValueError):  # one such folder must not keep `status` from showing the others
        return []


def _accuracy(
    run: RunSummary,
    rounds: Sequence[RoundReport],
    metrics: Metrics,
    texts: Sequence[Candidate],
    more: Sequence[str],
) -> Iterator[Weakness]:
    measured = accuracies(metrics)
    accuracy, majority, tested = measured.synthetic, measured.majority, measured.tested
    if not texts or accuracy is None or majority is None or majority == 1 or not tested:
        return
    if measured.against_guessing == BETTER:
        return
    unclear = measured.against_guessing == UNCLEAR
    what, teach = ("not clearly above", "may teach no more") if unclear else ("below", "teach less")
    guess = "the share of the most frequent label"
    if measured.measure != ACCURACY:
        guess = "that of the best constant answer"
    labels = run.labels or {}
    bare = sum(not description for description in labels.values())
    models = sorted(rounds[0].requested) if rounds else []
    steps = [
        *(["test on more texts (task.test)"] if unclear else []),
        *([f"describe the labels (task.labels: {bare} of {len(labels)} have no description)"] if bare else []),
        *([f"try method=census (now {run.method})"] if run.method != "census" else []),
        *more,
        f"take larger language models (now {listed(models)})" if models else "take larger language models",
    ]
    yield Weakness(
        what=f"{measured.measure} {accuracy:.2f} on {tested} test {measured.unit} is {what} {guess}, {majority:.2f}: "
        f"the texts {teach} than guessing",
        do=series(steps, "or"),
    )


def _gain(run: RunSummary, privacy: Privacy | None, metrics: Metrics, more: Sequence[str]) -> Iterator[Weakness]:
    """Yield a weakness if the test texts show no benefit of the hospitals' answers."""
    measured, near = accuracies(metrics), metrics.nearness
    gain = near.gain if near else measured.gain
    if gain is None or gain.clear:
        return
    steps = []
    if gain.value > 0:
        steps.append(f"more test texts (task.test, now {metrics.test_records})")
        steps += ["more texts (method.samples)"] * bool(more)
    if privacy and guarantee_kind(privacy) is Kind.BOUNDED:
        steps += more_signal(run, privacy)
    elif run.method != "census":
        steps.append("method=census")
    yield Weakness(
        what=(nearer(gain) if near else gained(gain, measured.trained_on, measured.unit))
        + (f" {'than' if near else 'against'} {WITHOUT}" if gain.loss else ""),
        do=f"it takes {series(steps or ['other language models (llm)'], 'or')}",
    )


def _generation_gap(metrics: Metrics, more: Sequence[str]) -> Iterator[Weakness]:
    """Yield a weakness if the released numbers tell more about the labels than the texts teach."""
    gap, public, small = metrics.generation_gap, metrics.utility_with_transfer, accuracies(metrics).synthetic
    if gap is None or gap.value <= GAP or not gap.clear:
        return
    steps = ["use the classifier itself (caucus-coordinator classifier)"]
    if public and public.accuracy.value is not None and small is not None and public.accuracy.value > small:
        steps.append(f"train with transfer.jsonl too ({points(public.accuracy.value)} %)")
    low, high = gap.interval
    yield Weakness(
        what=f"a linear classifier of the texts' vectors is {points(gap.value)} points (95 % interval {points(low)} to "
        f"{points(high)}) below the released numbers' own",
        do=series([*steps, *more], "or"),
    )


def _fid(run: RunSummary, privacy: Privacy | None, rounds: Sequence[RoundReport]) -> Iterator[Weakness]:
    """Yield a weakness if FID rises; rounds with more texts than the last are ignored, as their bias is lower."""
    measured = [
        (report.fid, report.fid_error, report)
        for report in rounds
        if report.fid is not None and report.fid_error is not None
    ]
    earlier = [point for point in measured[:-1] if point[2].candidates <= measured[-1][2].candidates]
    if not earlier:
        return
    (best_fid, best_error, best), (fid, error, last) = min(earlier, key=lambda point: point[0]), measured[-1]
    if fid - best_fid <= RISE * math.hypot(error, best_error):
        return
    steps = [f"stop there (method.rounds={best.round}, now {len(rounds)})"] if best.round > 1 else []
    if privacy and guarantee_kind(privacy) is Kind.BOUNDED:
        steps += more_signal(run, privacy)
    yield Weakness(
        what=f"FID rises: {fid:.3g} after round {last.round}, {best_fid:.3g} after round {best.round}, and lower is "
        "nearer to real texts",
        do=series(steps or ["take another encoder (embedding)", "other language models (llm)"], "or"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """Votes of one query over all rounds: how many numbers, and the variance of these and of the noise in them."""

    numbers: int
    spread: float
    noise: float

    @property
    def is_noise(self) -> bool:
        return self.spread - self.noise < HOPELESS**2 * self.noise


def votes_were_noise(votes: Sequence[Votes]) -> bool:
    """Return whether all votes of a run were noise; False if it has no noised votes."""
    spreads = _spreads(votes)
    return bool(spreads) and all(spread.is_noise for spread in spreads.values())


def votes_above_forecast(run: RunSummary, votes: Sequence[Votes]) -> list[str]:
    """Return names of the queries whose votes rose above their noise although the run's warnings forecast noise.

    The forecast is for a candidate with the average number of votes; records may agree on a few candidates.
    """
    warnings = run.warnings or {}
    return [name for name, spread in _spreads(votes).items() if name in warnings and not spread.is_noise]


def _spreads(votes: Sequence[Votes]) -> dict[str, _Spread]:
    """Return the spread of the noised votes of each query over all rounds."""
    answers: dict[str, list[tuple[int, float, float]]] = {}
    for vote in votes:
        if vote.noise:
            answers.setdefault(vote.query, []).append((vote.candidates, vote.spread, vote.noise))
    spreads = {}
    for name, measured in answers.items():
        numbers = sum(count for count, _, _ in measured)
        spread = sum(count * deviation**2 for count, deviation, _ in measured) / numbers
        noise = sum(count * deviation**2 for count, _, deviation in measured) / numbers
        spreads[name] = _Spread(numbers=numbers, spread=spread, noise=noise)
    return spreads


def _votes(run: RunSummary, privacy: Privacy | None, votes: Sequence[Votes]) -> Iterator[Weakness]:
    """Yield weaknesses of the votes of each query over all rounds, and warnings about queries without votes."""
    warnings, spreads = run.warnings or {}, _spreads(votes)
    for name, measured in spreads.items():
        if not measured.is_noise:
            continue
        advice = warnings.get(name, "").partition("; ")[2]
        yield Weakness(
            what=f"{name} were noise: {measured.numbers:,} noised numbers spread by {math.sqrt(measured.spread):.2g} "
            f"votes, and noise alone by {math.sqrt(measured.noise):.2g}",
            do=advice or f"it takes {series([*more_signal(run, privacy), FEWER_CANDIDATES], 'or')}",
        )
    for name, warning in warnings.items():
        if name not in spreads:
            what, _, do = warning.partition("; ")
            yield Weakness(what=what, do=do)


def _lost(rounds: Sequence[RoundReport]) -> Iterator[Weakness]:
    requested = sum(sum(report.requested.values()) for report in rounds)
    lost = sum(sum(report.lost.values()) for report in rounds)
    if lost <= MANY_LOST * requested:
        return
    kinds = counts_of_losses(*(counted for report in rounds for counted in (report.losses, report.cleaned)))
    frequent = sorted(kinds.items(), key=lambda item: -item[1].total())[:MOST_NAMED]
    reasons = f" ({', '.join(f'{kind}: {models.total():,}' for kind, models in frequent)})" if frequent else ""
    steps = [advice_on(kind, models.most_common(1)[0][0]) for kind, models in frequent[:1]]
    yield Weakness(
        what=f"{lost:,} of {requested:,} requested texts were lost{reasons}",
        do="; ".join([*steps, "or take other language models (llm)"]) if steps else "take other language models (llm)",
    )


def _repeated(texts: Sequence[Candidate]) -> Iterator[Weakness]:
    """Yield a weakness if fewer than half of the texts would be left without exact duplicates."""
    different = len({text.text for text in texts})
    if len(texts) >= _FEWEST and 2 * different < len(texts):
        yield Weakness(
            what=f"only {different:,} of {len(texts):,} texts are different",
            do="give the models more public texts (task.public_text), take other language models (llm) or "
            f"{FEWER_TEXTS}",
        )


def _disclosures(metrics: Metrics) -> Iterator[Weakness]:
    if metrics.disclosed:
        yield Weakness(
            what=f"the texts disclose records, by {metrics.disclosed}",
            do="pass them to nobody before these texts have been read next to the records",
            simulation_only=True,
        )

"""Weaknesses of a run's results, each with advice in a sentence, for the log, the page and `status`.

The weaknesses follow from the content of a run folder, which is public or released: texts, figures on test texts,
noised answers. Only a simulation has the records' own labels (`simulations/private_evaluation`), and weaknesses that
follow from these labels are marked as such. No two pieces of a run's advice move a setting in opposite directions: the
causes come first, and decide (`_more_texts`).

    repeated     fewer than half of the texts are different
    lost         more than a tenth of the requested texts
    quality      not clearly better than guessing, or no clear gain over the same models without the hospitals
    votes        spread over the candidates, without their noise, by less than half of the noise (`signal.HOPELESS`)
    labels       fractions of texts and records that differ by more than a quarter; labels without any text
    files        of a simulation (`simulations/federation/inputs.py`), which its log has from the start
    disclosures  records are disclosed more often than test texts, by a test of the hypothesis that nothing was learned

Before the first answer a run warns about queries whose answers noise is expected to drown
(`server/planning/signal.py`). Such a warning is also a weakness, until the votes are available: then the measurement
replaces the expectation.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.phrases import series
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import InputWeaknesses, RunSummary, Weakness
from server.domain import Candidate
from server.guarantee.case import Kind, guarantee_kind
from server.guarantee.figures import show_epsilon
from server.llm.base import advice_on
from server.llm.use import counts_of_losses
from server.planning.signal import FEWER_CANDIDATES, HOPELESS
from server.report.labels import record_shares, weights_of
from server.report.quality import ACCURACY, BETTER, UNCLEAR, WITHOUT, Quality, read_quality
from server.report.verdict import compare_gain, describe_difference
from server.report.votes import VoteHistogram

MANY_LOST = 0.1
"""Share of the requested texts above which their loss is a weakness."""
APART = 0.25
"""Total variation from which labels of texts and records differ widely: one text in four would need another label."""
MOST_NAMED = 3
"""Maximum number of labels that a sentence names."""
FEWER_TEXTS = "ask for fewer texts (method.samples)"
"""Step that helps where texts repeat others."""

_FEWEST = 20
"""Smallest number of texts of which duplicates are a weakness."""


def find_weaknesses(
    run: RunSummary,
    *,
    privacy: Privacy | None,
    rounds: Sequence[RoundReport],
    metrics: Metrics,
    texts: Sequence[Candidate],
    votes: Sequence[VoteHistogram],
) -> tuple[Weakness, ...]:
    """Return all weaknesses of a run folder."""
    repeated, lost, noise = tuple(_repeated(texts)), tuple(_lost(rounds)), tuple(_votes(run, privacy, votes))
    more, quality = _more_texts(texts, causes=(*repeated, *lost, *noise)), read_quality(metrics)
    return (
        *repeated,
        *lost,
        *(_no_better_than_guessing(run, rounds, quality, more) if texts else ()),
        *_gain(run, privacy, quality, more),
        *noise,
        *_labels(run, texts, record_shares(privacy, rounds, metrics), more),
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


def _more_signal(run: RunSummary, privacy: Privacy | None) -> list[str]:
    """Return the steps that make answers stand out from their noise."""
    now = f" (now {show_epsilon(privacy.planned_epsilon)})" if privacy else ""
    return ["more records", f"a larger epsilon{now}", *(["method=census"] if run.method != "census" else [])]


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _more_texts(texts: Sequence[Candidate], causes: Sequence[Weakness]) -> list[str]:
    """Return the step of writing more than these texts; empty if one of the `causes` is mended by fewer texts.

    Repeated texts, lost duplicates, and votes that are noise are causes of what more texts could mend, and more texts
    make them worse.
    """
    if any(step in cause.do for cause in causes for step in (FEWER_TEXTS, FEWER_CANDIDATES)):
        return []
    return [f"write more than these {len(texts):,} texts (method.samples)"]


def _repeated(texts: Sequence[Candidate]) -> Iterator[Weakness]:
    """Yield a weakness if fewer than half of the texts would be left without exact duplicates."""
    different = len({text.text for text in texts})
    if len(texts) >= _FEWEST and 2 * different < len(texts):
        yield Weakness(
            what=f"only {different:,} of {len(texts):,} texts are different",
            do="give the models more public texts (task.public_text), take other language models (llm) or "
            f"{FEWER_TEXTS}",
        )


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


def _no_better_than_guessing(
    run: RunSummary, rounds: Sequence[RoundReport], quality: Quality, more: Sequence[str]
) -> Iterator[Weakness]:
    accuracy, majority = quality.synthetic, quality.majority
    if accuracy is None or majority is None or majority == 1 or not quality.tested:
        return
    if quality.against_guessing == BETTER:
        return
    unclear = quality.against_guessing == UNCLEAR
    what, teach = ("not clearly above", "may teach no more") if unclear else ("below", "teach less")
    guess = (
        "the share of the most frequent label" if quality.measure == ACCURACY else "that of the best constant answer"
    )
    labels = run.labels or {}
    bare = sum(not description for description in labels.values())
    models = sorted(rounds[0].requested) if rounds else []
    steps = [
        *(["test on more texts (task.test)"] if unclear else []),
        *([f"describe the labels (task.labels: {bare} of {len(labels)} have no description)"] if bare else []),
        *([f"try method=census (now {run.method})"] if run.method != "census" else []),
        *more,
        f"take larger language models (now {_listed(models)})" if models else "take larger language models",
    ]
    yield Weakness(
        what=f"{quality.measure} {accuracy:.2f} on {quality.tested} test {quality.unit} is {what} {guess}, "
        f"{majority:.2f}: the texts {teach} than guessing",
        do=series(steps, "or"),
    )


def _gain(run: RunSummary, privacy: Privacy | None, quality: Quality, more: Sequence[str]) -> Iterator[Weakness]:
    """Yield a weakness if the test texts show no benefit of the hospitals' answers."""
    gain = quality.gain
    if gain is None or gain.clear:
        return
    steps = []
    if gain.value > 0:
        steps.append(f"more test texts (task.test, now {quality.tested})")
        steps += ["more texts (method.samples)"] * bool(more)
    if privacy and guarantee_kind(privacy) is Kind.BOUNDED:
        steps += _more_signal(run, privacy)
    elif run.method != "census":
        steps.append("method=census")
    against = "against" if gain.loss else "over"
    yield Weakness(
        what=f"{compare_gain(gain).lower()} {against} {WITHOUT}: {describe_difference(quality, gain)}",
        do=f"it takes {series(steps or ['other language models (llm)'], 'or')}",
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


def votes_were_noise(votes: Sequence[VoteHistogram]) -> bool:
    """Return whether all votes of a run were noise; False if it has no noised votes."""
    spreads = _spreads(votes)
    return bool(spreads) and all(spread.is_noise for spread in spreads.values())


def votes_above_forecast(run: RunSummary, votes: Sequence[VoteHistogram]) -> list[str]:
    """Return names of the queries whose votes rose above their noise although the run's warnings forecast noise.

    The forecast is for a candidate with the average number of votes; records may agree on a few candidates.
    """
    warnings = run.warnings or {}
    return [name for name, spread in _spreads(votes).items() if name in warnings and not spread.is_noise]


def _spreads(votes: Sequence[VoteHistogram]) -> dict[str, _Spread]:
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


def _votes(run: RunSummary, privacy: Privacy | None, votes: Sequence[VoteHistogram]) -> Iterator[Weakness]:
    """Yield weaknesses of the votes of each query over all rounds, and warnings about queries without votes."""
    warnings, spreads = run.warnings or {}, _spreads(votes)
    for name, measured in spreads.items():
        if not measured.is_noise:
            continue
        advice = warnings.get(name, "").partition("; ")[2]
        yield Weakness(
            what=f"{name} were noise: {measured.numbers:,} noised numbers spread by {math.sqrt(measured.spread):.2g} "
            f"votes, and noise alone by {math.sqrt(measured.noise):.2g}",
            do=advice or f"it takes {series([*_more_signal(run, privacy), FEWER_CANDIDATES], 'or')}",
        )
    for name, warning in warnings.items():
        if name not in spreads:
            what, _, do = warning.partition("; ")
            yield Weakness(what=what, do=do)


def _labels(
    run: RunSummary, texts: Sequence[Candidate], known: tuple[Mapping[str, float], bool], more: Sequence[str]
) -> Iterator[Weakness]:
    """Yield weaknesses for labels without a text, and for proportions of labels that differ from the records'."""
    weights = weights_of(texts)
    total = sum(weights.values())
    if total <= 0:
        return
    labels = run.labels or {}
    if without := [label for label in labels if label not in weights]:
        yield Weakness(
            what=f"{len(without)} of {len(labels)} labels have no text: {_listed(without)}",
            do=", or ".join([*more, "describe these labels (task.labels)"]),
        )
    shares, exact = known
    gaps = {label: weights[label] / total - shares.get(label, 0.0) for label in sorted({*shares, *weights})}
    apart = sum(map(abs, gaps.values())) / 2
    if not shares or apart <= APART:
        return
    several = any(len(text.labels) > 1 for text in texts)
    unit = ("sections of " if any(text.sections for text in texts) else "labels of ") if several else ""
    named = ", ".join(
        f"{label} {weights[label] / total:.0%} of the {unit}texts and {shares.get(label, 0.0):.0%} of the {unit}records"
        for label in sorted(gaps, key=lambda label: -abs(gaps[label]))[:MOST_NAMED]
    )
    steps = ["weigh or draw the texts by the labels' shares before training"]
    if run.method not in {"census", "dpga"}:
        steps.append(f"try method=census or dpga (now {run.method}), which ask how many records have each label")
    yield Weakness(
        what=f"labels of texts and records differ by {apart:.0%}"
        f"{'' if exact else ', by the released, noised counts'}: {named}",
        do=series(steps, "or"),
        simulation_only=exact,
    )


def _disclosures(metrics: Metrics) -> Iterator[Weakness]:
    if metrics.disclosed:
        yield Weakness(
            what=f"the texts disclose records, by {metrics.disclosed}",
            do="pass them to nobody before these texts have been read next to the records",
            simulation_only=True,
        )

"""Weaknesses of a run's results, each with advice in a sentence, for the log, the page and `status`.

The weaknesses follow from the content of a run folder, which is public or released: texts, figures on test texts,
noised answers. Only a simulation has the records' own labels (`simulations/private_evaluation`), and weaknesses that
follow from these labels are marked as such. No two pieces of a run's advice move a setting in opposite directions: the
causes decide (`fewer`). `english.yaml` has the sentences, by the codes (`server.documents.run.WeaknessCode`).

Before the first answer a run warns about queries whose answers noise is expected to drown
(`server/planning/signal.py`). Such a warning is also a weakness, until the votes are available: then the measurement
replaces the expectation. The files of a simulation have weaknesses of their own (`simulations/federation/inputs.py`).
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.page.words import catalogue
from common.phrases import capital, percent, series
from common.system.files import text_of
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import InputWeaknesses, RunSummary, Weakness, WeaknessCode
from server.domain import Candidate
from server.guarantee.case import Kind, guarantee_kind
from server.guarantee.messages import fill_in
from server.llm.base import advice_on, shown_loss
from server.llm.use import counts_of_losses
from server.planning.signal import FEWER_CANDIDATES, HOPELESS
from server.report.labels import record_shares, weights_of
from server.report.quality import DISTANCE, WITHOUT, Quality, read_quality
from server.report.verdict import Judgement, compare_gain, judge
from server.report.votes import VoteHistogram

MANY_LOST = 0.1
"""Share of the requested texts above which their loss is a weakness."""
FEWEST_TESTED = 100
"""Smallest number of test texts of which an accuracy of 50% has a standard error of 5 points or less."""
APART = 0.25
"""Total variation from which labels of texts and records differ widely: one text in four would need another label."""
MOST_NAMED = 3
"""Maximum number of labels that a sentence names."""
MOST_SHOWN = 5
"""Maximum number of weaknesses in the last lines of a command."""
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
    # Repeated texts, lost duplicates, and votes that are noise are causes of what more texts could mend, and more texts
    # make them worse.
    causes = (*_repeated(texts), *_lost(rounds), *_votes(run, privacy, votes))
    fewer = any(step in cause.do.lower() for cause in causes for step in (FEWER_TEXTS, FEWER_CANDIDATES))
    more = 0 if fewer else len(texts)
    return (
        *causes,
        *(_quality(run, privacy, rounds, read_quality(metrics), more) if texts else ()),
        *_labels(run, texts, record_shares(privacy, rounds, metrics), more),
        *_disclosures(metrics),
    )


def read_weaknesses(run: Path) -> list[Weakness]:
    """Return the weaknesses in the report of a run folder, the gravest first; none if it is missing or damaged."""
    try:
        facts = json.loads(text_of(run / "report.json") or "{}")
        return [Weakness.from_json(weakness) for weakness in facts.get("weaknesses", ())]
    except (AttributeError, TypeError, ValueError):  # one such folder must not keep `status` from showing the others
        return []


def gravest_weaknesses(run: Path, *, of_inputs: bool = True) -> list[str]:
    """Return a line on each of a run's gravest weaknesses, and one on the number of the others, if any.

    Args:
        run: The run folder.
        of_inputs: Whether those of a simulation's files count, which a log has from the start.
    """
    inputs = None if of_inputs else InputWeaknesses.load_if_there(run)
    every = [weakness for weakness in read_weaknesses(run) if not inputs or weakness not in inputs.weaknesses]
    more = len(every) - MOST_SHOWN
    return [*map(str, every[:MOST_SHOWN]), *[f"and {more} more: see report.html"] * (more > 0)]


def _weakness(code: WeaknessCode, *, simulation_only: bool = False, **facts: object) -> Weakness:
    """Return a weakness in the words of the catalogue: what it is, and the steps of which any may help."""
    say = getattr(catalogue(__package__).weaknesses, code)
    facts |= {"without": WITHOUT, "fewer_texts": FEWER_TEXTS, "fewer_candidates": FEWER_CANDIDATES}
    steps = filter(None, (fill_in(step, **facts) for step in say.steps))
    do = capital(f"{say.before + ' ' if hasattr(say, 'before') else ''}{series(list(steps), 'or')}")
    return Weakness(code=code, what=fill_in(say.what, **facts), do=do, simulation_only=simulation_only)


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _repeated(texts: Sequence[Candidate]) -> Iterator[Weakness]:
    """Yield a weakness if fewer than half of the texts would be left without exact duplicates."""
    different = len({text.text for text in texts})
    if len(texts) >= _FEWEST and 2 * different < len(texts):
        yield _weakness(WeaknessCode.TEXTS_REPEATED, different=different, texts=len(texts))


def _lost(rounds: Sequence[RoundReport]) -> Iterator[Weakness]:
    requested = sum(sum(report.requested.values()) for report in rounds)
    lost = sum(sum(report.lost.values()) for report in rounds)
    if lost <= MANY_LOST * requested:
        return
    kinds = counts_of_losses(*(counted for report in rounds for counted in (report.losses, report.cleaned)))
    frequent = sorted(kinds.items(), key=lambda item: -item[1].total())[:MOST_NAMED]
    yield _weakness(
        WeaknessCode.TEXTS_LOST,
        lost=lost,
        requested=requested,
        reasons=", ".join(f"{shown_loss(kind)}: {models.total():,}" for kind, models in frequent),
        advice=next((advice_on(kind, models.most_common(1)[0][0]) for kind, models in frequent), ""),
    )


def _quality(
    run: RunSummary, privacy: Privacy | None, rounds: Sequence[RoundReport], quality: Quality, more: int
) -> Iterator[Weakness]:
    """Yield weaknesses of the verdict: too few test texts, and texts no better than guessing or the same models' alone.

    `more` is the number of the texts, of which more may help; it is 0 if more texts make a cause worse.
    """
    gain, labels = quality.gain, run.labels or {}
    shown: dict[str, Any] = {
        "q": quality,
        "judgement": gain and compare_gain(gain),
        "labels": len(labels),
        "bare": sum(not description for description in labels.values()),
        "models": _listed(sorted(rounds[0].requested)) if rounds else "",
        "more": more,
        "method": run.method,
        "privacy": privacy,
        "noised": privacy is not None and guarantee_kind(privacy) is Kind.BOUNDED,
    }
    scored = quality.synthetic is not None and quality.measure != DISTANCE
    if scored and quality.tested and quality.tested < FEWEST_TESTED:
        error = 50 / math.sqrt(quality.tested)
        yield _weakness(WeaknessCode.FEW_TEST_TEXTS, error=error, fewest=FEWEST_TESTED, **shown)
    if judge(quality) in {Judgement.BELOW_GUESSING, Judgement.UNCLEAR} and quality.tested:
        yield _weakness(WeaknessCode.NO_BETTER_THAN_GUESSING, **shown)
    if gain and not gain.clear:
        yield _weakness(WeaknessCode.NO_CLEAR_GAIN, **shown)


def votes_were_noise(votes: Sequence[VoteHistogram]) -> bool:
    """Return whether all votes of a run were noise; False if it has no noised votes."""
    spreads = _spreads(votes)
    return bool(spreads) and all(map(_is_noise, spreads.values()))


def votes_above_forecast(run: RunSummary, votes: Sequence[VoteHistogram]) -> list[str]:
    """Return names of the queries whose votes rose above their noise although the run's warnings forecast noise.

    The forecast is for a candidate with the average number of votes; records may agree on a few candidates.
    """
    warnings = run.warnings or {}
    return [name for name, spread in _spreads(votes).items() if name in warnings and not _is_noise(spread)]


def _spreads(votes: Sequence[VoteHistogram]) -> dict[str, NDArray[np.float64]]:
    """Return sums over all rounds, by query: noised numbers, and their squared deviations with and of the noise."""
    sums: dict[str, NDArray[np.float64]] = {}
    for vote in votes:
        if vote.noise:
            measured = vote.candidates * np.array([1.0, vote.spread**2, vote.noise**2])
            sums[vote.query] = sums.get(vote.query, 0.0) + measured
    return sums


def _is_noise(sums: NDArray[np.float64]) -> bool:
    _, spread, noise = sums
    return bool(spread - noise < HOPELESS**2 * noise)


def _votes(run: RunSummary, privacy: Privacy | None, votes: Sequence[VoteHistogram]) -> Iterator[Weakness]:
    """Yield weaknesses of the votes of each query over all rounds, and warnings about queries without votes."""
    forecasts, spreads = run.forecasts, _spreads(votes)
    for name, sums in spreads.items():
        if _is_noise(sums):
            numbers, spread, noise = sums
            weakness = _weakness(
                WeaknessCode.ANSWERS_ARE_NOISE,
                query=name,
                numbers=int(numbers),
                spread=math.sqrt(spread / numbers),
                noise=math.sqrt(noise / numbers),
                method=run.method,
                privacy=privacy,
            )
            yield replace(weakness, do=forecasts.get(name, weakness).do)
    yield from (forecast for name, forecast in forecasts.items() if name not in spreads)


def _labels(
    run: RunSummary, texts: Sequence[Candidate], known: tuple[Mapping[str, float], bool], more: int
) -> Iterator[Weakness]:
    """Yield weaknesses for labels without a text, and for proportions of labels that differ from the records'."""
    weights = weights_of(texts)
    total = sum(weights.values())
    if total <= 0:
        return
    labels = run.labels or {}
    if without := [label for label in labels if label not in weights]:
        code = WeaknessCode.LABELS_WITHOUT_TEXT
        yield _weakness(code, number=len(without), labels=len(labels), names=_listed(without), more=more)
    shares, exact = known
    gaps = {label: weights[label] / total - shares.get(label, 0.0) for label in sorted({*shares, *weights})}
    apart = sum(map(abs, gaps.values())) / 2
    if not shares or apart <= APART:
        return
    several = any(len(text.labels) > 1 for text in texts)
    unit = ("sections of " if any(text.sections for text in texts) else "labels of ") if several else ""
    named = ", ".join(
        f"{label} {percent(weights[label] / total, 0)} of the {unit}texts and "
        f"{percent(shares.get(label, 0.0), 0)} of the {unit}records"
        for label in sorted(gaps, key=lambda label: -abs(gaps[label]))[:MOST_NAMED]
    )
    code = WeaknessCode.LABEL_SHARES_DIFFER
    yield _weakness(code, apart=apart, exact=exact, named=named, method=run.method, simulation_only=exact)


def _disclosures(metrics: Metrics) -> Iterator[Weakness]:
    if metrics.disclosed:
        yield _weakness(WeaknessCode.RECORDS_DISCLOSED, features=metrics.disclosed, simulation_only=True)

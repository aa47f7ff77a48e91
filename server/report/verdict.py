"""The verdict on a run in two or three short sentences, and its figures as bars.

The texts are compared with those of the same models without the hospitals, and with references. The first sentence says
what the hospitals' answers add: the accuracy with and without them, from equally many texts. The second states the 95%
interval of their difference (`server/evaluation/zero_shot.py`). The third compares the accuracy from all texts with the
accuracies from real records and from guessing, because even texts half-way between these may be no better than texts
that the same models wrote before any answer. Without labels no classifier is trained, and the sentences state the
distance of the texts from real ones.

Each figure of the sentences is a bar with a name and its 95% interval. Accuracies (micro F1 for texts with several
labels) are drawn on a scale from 0 to 1, distances on a scale that ends at the largest one.

If a run has no guarantee, the sentences are preceded by the advice to treat its texts as private data.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from common.page.words import catalogue
from common.phrases import capital, percent, series
from server.documents.files import Document
from server.documents.metrics import Gain, Interval, Metrics
from server.guarantee.case import Kind
from server.guarantee.messages import fill_in
from server.guarantee.words import Guarantee
from server.metrics.intervals import OVER_TRAININGS
from server.report.quality import (
    DISTANCE,
    NO_TEST_TEXTS,
    UNCLEAR,
    WITHOUT,
    WORSE,
    Quality,
    Role,
    UtilityRow,
    read_quality,
    read_utility,
)

NEARLY = 0.9
"""Fraction of the gap in accuracy between guessing and real records from which texts count as nearly as good as real
records."""
_COLOURS = {Role.AS_MANY: 0, Role.WITHOUT: 3, Role.ALL: 0, Role.REAL: 1, Role.RELEASED: 2, Role.GUESSING: 4}


class Judgement(StrEnum):
    """Whether the hospitals' answers help."""

    HELPS = "The hospitals' answers help"
    NOISE = "A gain, but it may be the models' own, because the hospitals' votes were noise"
    NO_GAIN = "No clear gain"
    LOSS = "A clear loss"
    BELOW_GUESSING = "Not usable for training a classifier"
    UNCLEAR = "Not clearly better than guessing, so test on more texts before they are used"
    ONE_LABEL = "All test texts have one label, so this says nothing about the texts"
    GUESSING_UNKNOWN = "What guessing would reach is not known"
    NOT_COMPARED = "Better than guessing"
    NOT_MEASURED = "Not measured"


DOUBTS = {Judgement.BELOW_GUESSING, Judgement.UNCLEAR, Judgement.ONE_LABEL, Judgement.GUESSING_UNKNOWN}
"""Judgements on the test or the texts alone, whatever the same models reach without the hospitals."""
WITHOUT_GAIN = {Judgement.NOISE, Judgement.NO_GAIN, Judgement.LOSS}
"""Judgements on answers that are not shown to help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Document):
    """The verdict on a run in a few sentences, and its reasons.

    Attributes:
        judgement: Whether the hospitals' answers help.
        sentence: The verdict: sentences, the first of which says whether the hospitals' answers help.
        short: The verdict without the advice on a missing guarantee and without the sentence on all texts and the
            references, for a page that shows both elsewhere.
        guarantee: Title of the guarantee.
        accuracy: The figures behind the verdict.
        simulation_only: Whether the verdict has a figure that was computed from private records.
        short_simulation_only: Whether `short` has such a figure.
    """

    judgement: Judgement
    sentence: str
    short: str
    guarantee: str
    accuracy: Quality
    simulation_only: bool
    short_simulation_only: bool


def reach_verdict(
    guarantee: Guarantee,
    quality: Quality,
    *,
    texts: int,
    weaknesses: int,
    missing: str = NO_TEST_TEXTS,
    noise: bool = False,
) -> Verdict:
    """Return the verdict on a run with these numbers of texts and of weaknesses.

    `missing` says why a figure is not there. If all votes were `noise`, a gain is not said to come from the hospitals'
    answers.
    """
    judgement = judge(quality, noise=noise)
    real = quality.measure != DISTANCE and quality.real is not None
    name = _chosen_message(quality, judgement, texts)
    facts = {
        "judgement": judgement,
        "missing": missing,
        "asked": guarantee.kind is not Kind.NOT_ASKED,
        "nearly": NEARLY,
        "references": _listed(quality),
        "accuracies": _listed(quality, ("with all texts", quality.synthetic)),
        "difference": quality.gain and capital(describe_difference(quality, quality.gain, alone=False)),
    }
    said = _say(name, quality, **facts)
    references = _say("accuracies", quality, **facts) if name == "gain" else ""
    see = _say("see", quality, weaknesses=weaknesses) if texts and weaknesses else ""
    unsafe = guarantee.kind in {Kind.NONE, Kind.UNKNOWN}
    first = _say("private", quality, guarantee=guarantee, texts=texts) if unsafe else ""
    return Verdict(
        judgement=judgement,
        sentence=" ".join(filter(None, (first, said, references, see))),
        short=" ".join(filter(None, (said, see))),
        guarantee=guarantee.title,
        accuracy=quality,
        simulation_only=real,
        short_simulation_only=real and name != "not_measured" and not references,
    )


def _chosen_message(quality: Quality, judgement: Judgement, texts: int) -> str:
    """Return the name of the message of a verdict."""
    if not texts:
        return "no_texts"
    if judgement is Judgement.NOT_MEASURED:
        return "not_measured"
    if quality.measure == DISTANCE:
        return "distance"
    if judgement in DOUBTS:
        return "doubtful"
    return "accuracies" if quality.gain is None or quality.zero_shot is None else "gain"


def judge(quality: Quality, *, noise: bool = False) -> Judgement:
    """Return whether the hospitals' answers help; if all votes were `noise`, a gain may be the models' own."""
    if quality.synthetic is None:
        return Judgement.NOT_MEASURED
    doubts = {
        Judgement.GUESSING_UNKNOWN: quality.majority is None,
        Judgement.ONE_LABEL: quality.majority == 1,
        Judgement.BELOW_GUESSING: quality.against_guessing == WORSE,
        Judgement.UNCLEAR: quality.against_guessing == UNCLEAR,
    }
    if quality.measure != DISTANCE and any(doubts.values()):
        return next(judgement for judgement, holds in doubts.items() if holds)
    if quality.gain is None or quality.zero_shot is None:
        return Judgement.NOT_COMPARED
    return compare_gain(quality.gain, noise=noise)


def compare_gain(gain: Gain, *, noise: bool = False) -> Judgement:
    """Return whether a gain is clear, and if so, whether it may be the models' own because all votes were `noise`."""
    if gain.clear:
        return Judgement.NOISE if noise else Judgement.HELPS
    return Judgement.LOSS if gain.loss else Judgement.NO_GAIN


def describe_difference(quality: Quality, gain: Gain, *, alone: bool = True) -> str:
    """Return a clause on a gain over the same models without the hospitals, with its interval.

    Args:
        quality: The figures.
        gain: The gain.
        alone: Whether no sentence before it states the number of texts on each side (here stated if it is not that of
            all texts), and that the same models without the hospitals are no better than guessing.
    """
    return _say("difference", quality, gain=gain, alone=alone, of_each=alone and gain.texts != quality.trained_on)


def _listed(quality: Quality, *first: tuple[str, float | None]) -> str:
    """Return a list of accuracies in words: those in `first`, then those with real records and by guessing."""
    shown = (*first, ("with real records", quality.real), ("by guessing", quality.majority))
    return series([f"{percent(value)} {what}" for what, value in shown if value is not None], "and")


def _say(name: str, quality: Quality, **facts: object) -> str:
    shown = {"number": _number, "points": points, "baseline": _compare_baseline(quality)}
    message = getattr(catalogue(__package__).verdict, name)
    return fill_in(message, q=quality, without=WITHOUT, **shown, **facts)


def _compare_baseline(quality: Quality) -> str:
    """Return that the same models without the hospitals are no better than guessing; empty if they are, or unknown."""
    if quality.zero_shot is None or quality.majority is None or quality.zero_shot > quality.majority:
        return ""
    return "below guessing" if quality.zero_shot < quality.majority else "no better than guessing"


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def points(share: float) -> str:
    """Return a fraction as text, in percentage points, with one decimal unless that decimal is 0."""
    shown = f"{100 * share:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown.replace("-", "−")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar(Document):
    """One figure of the verdict.

    Attributes:
        name: What the figure describes, in words.
        value: The figure.
        interval: Its 95% interval; None if the figure has no interval.
        colour: Index of the bar's colour, from 0 to 7.
        simulation_only: Whether it was computed from private records.
    """

    name: str
    value: float
    interval: Interval | None = None
    colour: int
    simulation_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Document):
    """The bars beside a verdict.

    Attributes:
        title: Kind of the figures.
        caption: How the figures were obtained.
        over: What the bars' intervals are over, in words.
        missing: Why there are no bars; empty if there are any.
        shares: Whether the figures are fractions, to be written as percentages.
        top: The value at which a bar has its full length.
        rows: The bars; empty if nothing was measured.
    """

    title: str
    caption: str
    over: str
    missing: str = ""
    shares: bool
    top: float
    rows: tuple[Bar, ...]


def draw_bars(metrics: Metrics, missing: str = NO_TEST_TEXTS) -> Bars:
    """Return the bars of all figures that a verdict names; `missing` says why if there are none."""
    shown, quality = compared_figures(metrics), read_quality(metrics)
    counted = [] if shown else _measured_bars(metrics, {Role.COUNTED})
    bars = shown or counted
    shares, say = quality.measure != DISTANCE, catalogue(__package__).bars
    facts = {
        "q": quality,
        "counted": bool(counted),
        "test": metrics.test,
        # For the intervals of whole sets alone.
        "trainings": OVER_TRAININGS in (metrics.text("utility", "definition") or ""),
    }
    highest = max((end for bar in bars for end in (bar.value, *(bar.interval or ()))), default=0.0)
    return Bars(
        title=fill_in(say.title, **facts),
        caption=fill_in(say.caption, **facts),
        over=fill_in(say.over, **facts),
        missing="" if bars else missing,
        shares=shares,
        top=1.0 if shares else highest or 1.0,
        rows=tuple(bars),
    )


def compared_figures(metrics: Metrics) -> list[Bar]:
    """Return the figures on test texts that a verdict names, those of equally many texts first."""
    return _measured_bars(metrics, _COLOURS)


def _measured_bars(metrics: Metrics, roles: Collection[Role]) -> list[Bar]:
    rows = (row for row in read_utility(metrics).rows if row.accuracy.value is not None)
    return [_bar(row) for row in rows if row.role in roles]


def _bar(row: UtilityRow) -> Bar:
    assert row.role is not None
    assert row.accuracy.value is not None
    name = f"texts of {WITHOUT}" if row.trained_on == WITHOUT else row.trained_on.removeprefix("all ")
    return Bar(
        name=f"{row.texts:,} {name}" if row.texts else name,
        value=row.accuracy.value,
        interval=row.accuracy.interval,
        colour=_COLOURS.get(Role(row.role), 0),
        simulation_only=row.simulation_only,
    )

"""Two or three short sentences on a run: its texts compared with the same models without the hospitals, and references.

The first says what the hospitals' answers add: the accuracy with and without them, from equally many texts. The second
states the 95 % interval of the difference between these two accuracies, whose definition says what it covers
(`server/evaluation/zero_shot.py`). The third compares the accuracy from all texts
with the accuracies from real records and from guessing, because even texts half-way between real records and guessing
may be no better than texts that the same models wrote before any answer. Without labels no classifier is trained, and
the sentences state the distance of the texts from real ones.

If a run has no guarantee, the sentences are preceded by the advice to treat its texts as private data.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from common.phrases import capital, series
from server.documents.files import Document
from server.documents.metrics import Gain
from server.guarantee.case import Kind
from server.guarantee.words import Guarantee
from server.report.quality import DISTANCE, NO_TEST_TEXTS, UNCLEAR, WITHOUT, WORSE, Quality

NEARLY = 0.9
"""Fraction of the gap in accuracy between guessing and real records from which texts count as nearly as good as real
records."""


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
    """Return the verdict on a run.

    Args:
        guarantee: The run's guarantee.
        quality: The figures.
        texts: Number of texts.
        weaknesses: Number of weaknesses that the report names.
        missing: Why a figure is not there.
        noise: Whether all votes were noise. A gain is then not said to come from the hospitals' answers.
    """
    judgement, asked = judge(quality, noise=noise), guarantee.kind is not Kind.NOT_ASKED
    real = quality.measure != DISTANCE and quality.real is not None
    first, see, references = "", "", ""
    if not texts:
        said = "There are no texts."
        if quality.measure != DISTANCE and (listed := _listed(quality)):
            said = f"There are no texts; a classifier's {quality.measure} is {listed}."
    elif judgement is Judgement.NOT_MEASURED:
        said = _not_measured(quality, missing)
    elif quality.measure == DISTANCE:
        said = _distances(quality, judgement, asked=asked)
    else:
        said, references = _accuracies(quality, judgement, asked=asked)
    if texts and weaknesses:
        see = f"See the {'weakness' if weaknesses == 1 else f'{weaknesses} weaknesses'} below."
    if guarantee.kind in {Kind.NONE, Kind.UNKNOWN}:
        first = f"{guarantee.title}, so treat the {'texts' if texts else 'run'} as private data."
    return Verdict(
        judgement=judgement,
        sentence=" ".join(filter(None, (first, said, references, see))),
        short=" ".join(filter(None, (said, see))),
        guarantee=guarantee.title,
        accuracy=quality,
        simulation_only=real,
        short_simulation_only=real and not (texts and (references or judgement is Judgement.NOT_MEASURED)),
    )


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


def describe_difference(quality: Quality, gain: Gain) -> str:
    """Return a clause on a gain over the same models without the hospitals, with its interval and number of texts."""
    show, unit = (points, " points") if quality.measure != DISTANCE else (_number, " in distance")
    low, high = map(show, gain.interval)
    of = "" if gain.texts == quality.trained_on else f", with {gain.texts:,} {quality.unit} of each"
    return f"the difference is {show(gain.value)}{unit} (95 % interval {low} to {high}{of})"


def _not_measured(quality: Quality, missing: str) -> str:
    if quality.measure == DISTANCE:
        return f"How near the texts are to real ones was not measured: {missing}."
    if quality.counted is None:
        return f"The usefulness of the texts was not measured: {missing}."
    return (
        f"A classifier of the texts is right on {_percent(quality.counted)} of the hospitals' own records, by a noised "
        f"count; what {WITHOUT}, guessing or real records would reach is not known here."
    )


def _accuracies(quality: Quality, judgement: Judgement, *, asked: bool) -> tuple[str, str]:
    """Return sentences on what the texts teach a classifier, and on all texts and the references."""
    synthetic, gain, without, measure = quality.synthetic or 0.0, quality.gain, quality.zero_shot, quality.measure
    whole, said = [("with all texts", synthetic)], ""
    if judgement in {Judgement.BELOW_GUESSING, Judgement.UNCLEAR, Judgement.ONE_LABEL, Judgement.GUESSING_UNKNOWN}:
        return f"{judgement}: a classifier's {measure} is {_listed(quality, *whole)}.", ""
    if gain is None or without is None:
        compared = f"{judgement}: a classifier's {measure} is {_listed(quality, *whole)}"
        if without is not None:
            compared += f", and {_percent(without)} with {WITHOUT}: too few to tell whether this is chance"
    else:
        below = ", which is below guessing" if quality.majority is not None and without < quality.majority else ""
        difference = describe_difference(replace(quality, trained_on=gain.texts), gain)
        said = (
            f"{judgement}: trained on {gain.texts:,} {quality.unit}, a classifier's {measure} "
            f"is {_percent(without + gain.value)}; trained on as many of {WITHOUT}, {_percent(without)}{below}. "
            f"{capital(difference)}."
        )
        compared = f"The {measure} is {_listed(quality, *(whole if gain.texts != quality.trained_on else []))}"
    if (remark := _against_real(quality, synthetic)) is not None:
        compared += f": {remark}"
    references = ((WITHOUT, asked and without is None), ("real records", quality.real is None))
    if unknown := [name for name, missing in references if missing]:
        compared += f". What {' or '.join(unknown)} would teach is not known here"
    return (said, f"{compared}.") if said else (f"{compared}.", "")


def _listed(quality: Quality, *first: tuple[str, float]) -> str:
    """Return a list of accuracies in words: those in `first`, then those with real records and by guessing."""
    shown = (*first, ("with real records", quality.real), ("by guessing", quality.majority))
    return series([f"{_percent(value)} {what}" for what, value in shown if value is not None], "and")


def _distances(quality: Quality, judgement: Judgement, *, asked: bool) -> str:
    """Return the sentences on the distance of the texts from real ones."""
    said = f"{judgement}: the" if quality.gain else "The"
    said += f" distance of the texts from real ones (FID) is {quality.synthetic or 0.0:.3g}"
    references = ((f"of {WITHOUT}", quality.zero_shot), ("of other real texts", quality.real))
    compared = " and ".join(f"that {whose} is {value:.3g}" for whose, value in references if value is not None)
    said += f" where {compared}." if compared else "."
    if quality.gain:
        low, high = map(_number, quality.gain.interval)
        return (
            f"{said} They are nearer by {_number(quality.gain.value)} (95 % interval {low} to {high}, with "
            f"{quality.gain.texts:,} texts of each)."
        )
    return f"{said} What {WITHOUT} reach is not known here." if asked else said


def _against_real(quality: Quality, synthetic: float) -> str | None:
    """Return a remark on real records; None if their accuracy needs no remark."""
    real, majority = quality.real, quality.majority
    if real is None or majority is None:
        return None
    if real <= majority:
        return "real records teach no more than guessing, so this test says little about the texts"
    nearly = (synthetic - majority) / (real - majority) >= NEARLY
    return "nearly as good as real records for training a classifier" if nearly else None


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{points(share)} %"


def points(share: float) -> str:
    """Return a fraction as text, in percentage points, with one decimal unless that decimal is 0."""
    shown = f"{100 * share:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown.replace("-", "−")

"""Two or three short sentences on a run: its texts compared with the same models without the hospitals, and references.

The first says what the hospitals' answers add: the accuracy with and without them, from equally many texts. The second
states the 95 % interval of the difference between these two accuracies, whose definition says what it covers
(`server/evaluation/zero_shot.py`). The third compares the accuracy from all texts
with the accuracies from real records and from guessing, because even texts half-way between real records and guessing
may be no better than texts that the same models wrote before any answer. Without labels no classifier is trained, and
the sentences state the distance of the texts from real ones.

If a run has no guarantee, the sentences are preceded by the advice to treat its texts as private data.
"""

from dataclasses import dataclass

from common.phrases import series
from server.documents.files import Document
from server.documents.metrics import Gain, Metrics, Nearness
from server.guarantee.case import Kind
from server.guarantee.sides import Guarantee
from server.report.utility import NO_TEST_TEXTS, UNCLEAR, WITHOUT, WORSE, Accuracies, accuracies, counted

NEARLY = 0.9
"""Fraction of the gap in accuracy between guessing and real records from which texts count as nearly as good as real
records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Document):
    """The verdict on a run in a few sentences, and its reasons.

    Attributes:
        sentence: The verdict: sentences, the first of which says whether the hospitals' answers help.
        short: The verdict without the advice on a missing guarantee and without the sentence on all texts and the
            references, for a page that shows both elsewhere.
        guarantee: Title of the guarantee.
        accuracy: The accuracies behind the verdict.
        simulation_only: Whether the verdict has a figure that was computed from private records.
        short_simulation_only: Whether `short` has such a figure.
    """

    sentence: str
    short: str
    guarantee: str
    accuracy: Accuracies
    simulation_only: bool
    short_simulation_only: bool


def verdict(
    guarantee: Guarantee,
    metrics: Metrics,
    *,
    texts: int,
    weaknesses: int,
    missing: str = NO_TEST_TEXTS,
    noise: bool = False,
) -> Verdict:
    """Return the verdict on a run.

    Args:
        guarantee: The run's guarantee.
        metrics: The figures.
        texts: Number of texts.
        weaknesses: Number of weaknesses that the report names.
        missing: Why a figure is not there.
        noise: Whether all votes were noise. A gain is then not said to come from the hospitals' answers.
    """
    measured = accuracies(metrics)
    asked = guarantee.kind is not Kind.NOT_ASKED
    first, see = "", ""
    if texts and metrics.nearness:
        answer, references, real = _near(metrics.nearness, missing, asked=asked, noise=noise), "", False
    else:
        share = counted(metrics).value
        unmeasured = f"The usefulness of the texts was not measured: {missing}." if share is None else _counted(share)
        answer, references, real = _taught(measured, unmeasured, texts, asked=asked, noise=noise)
    if texts and weaknesses:
        see = f"See the {'weakness' if weaknesses == 1 else f'{weaknesses} weaknesses'} below."
    if guarantee.kind in {Kind.NONE, Kind.UNKNOWN}:
        first = f"{guarantee.title}, so treat the {'texts' if texts else 'run'} as private data."
    return Verdict(
        sentence=" ".join(filter(None, (first, answer, references, see))),
        short=" ".join(filter(None, (answer, see))),
        guarantee=guarantee.title,
        accuracy=measured,
        simulation_only=measured.real is not None,
        short_simulation_only=real,
    )


def _taught(measured: Accuracies, unmeasured: str, texts: int, *, asked: bool, noise: bool) -> tuple[str, str, bool]:
    """Return sentences on what the texts teach a classifier, and on all texts and the references.

    The third value is whether the first sentences have the accuracy with real records.
    """
    synthetic, gain, real = measured.synthetic, measured.gain, measured.real is not None
    if not texts:
        compared = (listed := _listed(measured)) and f"; a classifier's {measured.measure} is {listed}"
        return f"There are no texts{compared}.", "", real
    if synthetic is None:
        return unmeasured, "", False
    whole = ("with all texts", synthetic)
    if (doubt := _doubt(measured)) is not None:
        return f"{doubt}: a classifier's {measured.measure} is {_listed(measured, whole)}.", "", real
    if gain is None or measured.zero_shot is None:
        answer, compared = "", f"Better than guessing: a classifier's {measured.measure} is {_listed(measured, whole)}"
        if measured.zero_shot is not None:
            compared += f", and {_percent(measured.zero_shot)} with {WITHOUT}: too few to tell whether this is chance"
    else:
        answer = f"{_compared(gain, measured.zero_shot, measured, noise=noise)}. {_difference(gain)}."
        more = [whole] if gain.texts != measured.trained_on else []
        compared = f"The {measured.measure} is {_listed(measured, *more)}"
    if (remark := _against_real(measured, synthetic)) is not None:
        compared += f": {remark}"
    references = ((WITHOUT, asked and measured.zero_shot is None), ("real records", not real))
    if unknown := [name for name, missing in references if missing]:
        compared += f". What {' or '.join(unknown)} would teach is not known here"
    return (answer, f"{compared}.", False) if answer else (f"{compared}.", "", real)


def _listed(measured: Accuracies, *first: tuple[str, float]) -> str:
    """Return a list of accuracies in words: those in `first`, then those with real records and by guessing."""
    shown = (*first, ("with real records", measured.real), ("by guessing", measured.majority))
    parts = [f"{_percent(value)} {what}" for what, value in shown if value is not None]
    return series(parts, "and")


def _doubt(measured: Accuracies) -> str | None:
    """Return why the texts cannot be said to teach more than guessing; None if they do."""
    if measured.majority is None:
        return "What guessing would reach is not known"
    if measured.majority == 1:
        return "All test texts have one label, so this says nothing about the texts"
    if measured.against_guessing == WORSE:
        return "Not usable for training a classifier"
    if measured.against_guessing == UNCLEAR:
        return "Not clearly better than guessing, so test on more texts before they are used"
    return None


def _compared(gain: Gain, without: float, measured: Accuracies, *, noise: bool) -> str:
    """Return a sentence that states the answer first, and then the two figures that the gain compares."""
    guessing = measured.majority is not None and without < measured.majority
    below = ", which is below guessing" if guessing else ""
    return (
        f"{_answer(gain, noise=noise)}: trained on {gain.texts:,} {measured.unit}, a classifier's {measured.measure} "
        f"is {_percent(without + gain.value)}; trained on as many of {WITHOUT}, {_percent(without)}{below}"
    )


def _answer(gain: Gain, *, noise: bool) -> str:
    if gain.clear and noise:
        return "A gain, but it may be the models' own, because the hospitals' votes were noise"
    return "The hospitals' answers help" if gain.clear else "A clear loss" if gain.loss else "No clear gain"


def _difference(gain: Gain) -> str:
    low, high = gain.interval
    return f"The difference is {points(gain.value)} points (95 % interval {points(low)} to {points(high)})"


def _near(near: Nearness, missing: str, *, asked: bool, noise: bool) -> str:
    """Return the sentences on the distance of the texts from real ones."""
    if near.synthetic.value is None:
        return f"How near the texts are to real ones was not measured: {missing}."
    said = f"{_answer(near.gain, noise=noise)}: the" if near.gain else "The"
    said += f" distance of the texts from real ones (FID) is {near.synthetic.value:.3g}"
    references = ((f"of {WITHOUT}", near.without.value), ("of other real texts", near.real.value))
    compared = " and ".join(f"that {whose} is {value:.3g}" for whose, value in references if value is not None)
    said += f" where {compared}." if compared else "."
    if near.gain:
        low, high = (f"{end:.3g}".replace("-", "−") for end in near.gain.interval)
        value = f"{near.gain.value:.3g}".replace("-", "−")
        return (
            f"{said} They are nearer by {value} (95 % interval {low} to {high}, with {near.gain.texts:,} texts "
            "of each)."
        )
    return f"{said} What {WITHOUT} reach is not known here." if asked else said


def nearer(gain: Gain) -> str:
    """Return a clause that says how much nearer to real texts the hospitals' answers bring the texts."""
    low, high = (f"{end:.3g}".replace("-", "−") for end in gain.interval)
    interval = f"(95 % interval {low} to {high}, with {gain.texts:,} texts of each)"
    if gain.clear:
        return f"clearly nearer by {gain.value:.3g} {interval}"
    if gain.loss:
        return f"clearly further off by {-gain.value:.3g} {interval}"
    return f"not clearly nearer than {WITHOUT} {interval}"


def gained(gain: Gain, trained_on: int | None, unit: str = "texts") -> str:
    """Return a clause that says what the hospitals' answers add, with its interval.

    Args:
        gain: The difference from the same models without the hospitals.
        trained_on: Number of all synthetic texts; if not all were compared, the clause says how many were.
        unit: What these numbers count.
    """
    low, high = gain.interval
    of = "" if gain.texts == trained_on else f", with {gain.texts:,} {unit} of each"
    if gain.clear:
        return f"a clear gain of {points(gain.value)} points (95 % interval {points(low)} to {points(high)}{of})"
    if gain.loss:
        return f"a clear loss of {points(-gain.value)} points (95 % interval {points(-high)} to {points(-low)}{of})"
    interval = f"difference {points(gain.value)} points, 95 % interval {points(low)} to {points(high)}{of}"
    return f"no clear gain over {WITHOUT} ({interval})"


def _against_real(measured: Accuracies, synthetic: float) -> str | None:
    """Return a remark on real records; None if their accuracy needs no remark."""
    real, majority = measured.real, measured.majority
    if real is None or majority is None:
        return None
    if real <= majority:
        return "real records teach no more than guessing, so this test says little about the texts"
    nearly = (synthetic - majority) / (real - majority) >= NEARLY
    return "nearly as good as real records for training a classifier" if nearly else None


def _counted(share: float) -> str:
    """Return the sentence for a run without test texts: what the parties' noised counts show."""
    return (
        f"A classifier of the texts is right on {_percent(share)} of the hospitals' own records, by a noised count; "
        f"what {WITHOUT}, guessing or real records would reach is not known here."
    )


def _percent(share: float) -> str:
    return f"{points(share)} %"


def points(share: float) -> str:
    """Return a fraction as text, in percentage points, with one decimal unless that decimal is 0."""
    shown = f"{100 * share:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown.replace("-", "−")

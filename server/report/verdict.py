"""One sentence on a run: its texts against the same models without the hospitals, real records and guessing.

Without labels nothing is learned: then the sentence says how near the texts are to real ones, and what the answers add.

The sentence says what the hospitals' answers add: how much better these texts are than those that the same models wrote
before any answer, with the 95 % interval of the difference. Even texts that are half-way from guessing to real records
may be no better than those. If a run has no guarantee, the sentence is preceded by the advice to treat its texts as
private data.
"""

from dataclasses import dataclass

from server.documents.files import Document
from server.documents.metrics import Gain, Metrics, Nearness
from server.guarantee.case import Kind
from server.guarantee.sides import Guarantee
from server.report.utility import ACCURACY, WITHOUT, Accuracies, accuracies, counted

NEARLY = 0.9
"""Share of the way from guessing to real records from which texts count as nearly as good as real records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Document):
    """The verdict on a run in one sentence, and its reasons.

    Attributes:
        sentence: The verdict.
        guarantee: Title of the guarantee.
        accuracy: The accuracies behind the sentence.
        simulation_only: Whether the sentence has a figure of private records.
    """

    sentence: str
    guarantee: str
    accuracy: Accuracies
    simulation_only: bool


def verdict(guarantee: Guarantee, metrics: Metrics, *, texts: int, weaknesses: int) -> Verdict:
    """Return the verdict on a run with these numbers of texts and weaknesses."""
    measured = accuracies(metrics)
    asked = guarantee.kind is not Kind.NOT_ASKED
    if texts and metrics.nearness:
        sentence = _near(metrics.nearness, asked=asked)
    else:
        sentence = _taught(measured, counted(metrics), texts, asked=asked)
    if texts and weaknesses:
        sentence += f"; see the {'weakness' if weaknesses == 1 else f'{weaknesses} weaknesses'} below"
    if guarantee.kind in {Kind.NONE, Kind.UNKNOWN}:
        what = "texts" if texts else "run"
        sentence = f"{guarantee.title}, so treat the {what} as private data. {sentence}"
    return Verdict(
        sentence=f"{sentence}.",
        guarantee=guarantee.title,
        accuracy=measured,
        simulation_only=measured.real is not None,
    )


def _taught(measured: Accuracies, share: float | None, texts: int, *, asked: bool) -> str:
    synthetic, real, majority = measured.synthetic, measured.real, measured.majority
    references = [
        f"{what} {_percent(value)}"
        for what, value in (
            (f"{WITHOUT} teach", measured.zero_shot if texts else None),
            ("real records teach", real),
            ("guessing", majority),
        )
        if value is not None
    ]
    compared = " and ".join(filter(None, [", ".join(references[:-1]), *references[-1:]]))
    if not texts:
        return "There are no texts" + (f": {compared}" if compared else "")
    if synthetic is None:
        return _counted(share)
    said = f"{'The' if measured.measure == ACCURACY else 'By micro F1, the'} texts teach {_percent(synthetic)}"
    said += f" where {compared}" if compared else ""
    return f"{said}: {_judged(measured, synthetic, asked=asked)}"


def _judged(measured: Accuracies, synthetic: float, *, asked: bool) -> str:
    """Return a comparison with guessing and, if that is clearly surpassed, with zero-shot texts and real records."""
    if measured.majority is None:
        return "what guessing would reach is not known"
    if measured.majority == 1:
        return "all test texts have one label, so this says nothing about the texts"
    if synthetic <= measured.majority:
        return "not usable for training a classifier"
    if not measured.clearly_above_guessing:
        return "not clearly better than guessing, so test on more texts before they are used"
    clauses = ["better than guessing" if measured.gain is None else gained(measured.gain, measured.trained_on)]
    if measured.real is not None:
        clauses.append(_against_real(synthetic, measured.majority, measured.real))
    references = ((WITHOUT, asked and measured.gain is None), ("real records", measured.real is None))
    if unknown := [name for name, missing in references if missing]:
        clauses.append(f"what {' or '.join(unknown)} would teach is not known here")
    return "; ".join(clauses)


def _near(near: Nearness, *, asked: bool) -> str:
    if near.synthetic.value is None:
        return "How near the texts are to real ones was not measured: that takes more of both (task.test)"
    said = f"The distance of the texts from real ones (FID) is {near.synthetic.value:.3g}"
    references = ((f"of {WITHOUT}", near.without.value), ("of other real texts", near.real.value))
    compared = " and ".join(f"that {whose} is {value:.3g}" for whose, value in references if value is not None)
    said += f" where {compared}" if compared else ""
    if near.gain:
        return f"{said}: {nearer(near.gain)}"
    return f"{said}; what {WITHOUT} reach is not known here" if asked else said


def nearer(gain: Gain) -> str:
    """Return a clause that says how much nearer to real texts the hospitals' answers bring the texts."""
    low, high = (f"{end:.3g}".replace("-", "−") for end in gain.interval)
    interval = f"(95 % interval {low} to {high}, with {gain.texts:,} texts of each)"
    if gain.clear:
        return f"clearly nearer by {gain.value:.3g} {interval}"
    if gain.loss:
        return f"clearly further off by {-gain.value:.3g} {interval}"
    return f"not clearly nearer than {WITHOUT} {interval}"


def gained(gain: Gain, trained_on: int | None) -> str:
    """Return a clause that says what the hospitals' answers add, with its interval.

    Args:
        gain: The difference from the same models without the hospitals.
        trained_on: Number of all synthetic texts; if not all were compared, the clause says how many were.
    """
    low, high = gain.interval
    of = "" if gain.texts == trained_on else f", with {gain.texts:,} texts of each"
    if gain.clear:
        return f"a clear gain of {points(gain.value)} points (95 % interval {points(low)} to {points(high)}{of})"
    if gain.loss:
        return f"a clear loss of {points(-gain.value)} points (95 % interval {points(-high)} to {points(-low)}{of})"
    interval = f"difference {points(gain.value)} points, 95 % interval {points(low)} to {points(high)}{of}"
    return f"no clear gain over {WITHOUT} ({interval})"


def _against_real(synthetic: float, majority: float, real: float) -> str:
    if real <= majority:
        return "real records teach no more than guessing, so this test says little about the texts"
    share = (synthetic - majority) / (real - majority)
    if share >= NEARLY:
        return "nearly as good as real records for training a classifier"
    return f"{points(real - synthetic)} points below real records"


def _counted(share: float | None) -> str:
    """Return the sentence for a run without test texts: what the parties' noised counts show, if there are any."""
    if share is None:
        return "The usefulness of the texts was not measured: that takes test texts (task.test)"
    return (
        f"A classifier of the texts is right on {_percent(share)} of the parties' own records, by a noised count; "
        f"what {WITHOUT}, guessing or real records would reach is not known here"
    )


def _percent(share: float) -> str:
    return f"{points(share)} %"


def points(share: float) -> str:
    """Return a share as text, in percentage points, with one decimal unless that is 0."""
    shown = f"{100 * share:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown.replace("-", "−")

"""One sentence on a run: how its texts compare with real records and guessing, and whether they have a guarantee."""

from dataclasses import dataclass

from server.documents.files import Document
from server.documents.metrics import Metrics
from server.guarantee.case import Kind
from server.guarantee.sides import Guarantee
from server.report.utility import Accuracies, accuracies, counted

NEARLY = 0.9
"""Share of the way from guessing to real records from which texts are nearly as good as these."""
USABLE = 0.5
"""Share of that way from which texts can stand in for real records, with a loss that the verdict states."""


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
    """The verdict on a run with these numbers of texts and weaknesses."""
    measured = accuracies(metrics)
    sentence = _taught(measured, counted(metrics), texts)
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


def _taught(measured: Accuracies, share: float | None, texts: int) -> str:
    synthetic, real, majority = measured.synthetic, measured.real, measured.majority
    beside = " and ".join(
        f"{what} {_percent(value)}"
        for what, value in (("real records teach", real), ("guessing", majority))
        if value is not None
    )
    if not texts:
        return "There are no texts" + (f": {beside}" if beside else "")
    if synthetic is None:
        return _counted(share)
    said = f"The texts teach {_percent(synthetic)}"
    said += f" where {beside}" if beside else ""
    return f"{said}: {_judged(measured, synthetic)}"


def _judged(measured: Accuracies, synthetic: float) -> str:
    """Against guessing, and if that is clearly surpassed, against real records."""
    if measured.majority is None:
        return "what guessing would reach is not known"
    if measured.majority == 1:
        return "all test texts have one label, so this says nothing about the texts"
    if synthetic <= measured.majority:
        return "not usable for training a classifier"
    if not measured.clearly_above_guessing:
        return "not clearly better than guessing, so test on more texts before they are used"
    return _against_real(synthetic, measured.majority, measured.real)


def _against_real(synthetic: float, majority: float, real: float | None) -> str:
    if real is None:
        return "better than guessing; what real records would teach is not known here"
    if real <= majority:
        return "real records teach no more than guessing, so this test says little about the texts"
    share = (synthetic - majority) / (real - majority)
    if share >= NEARLY:
        return "nearly as good as real records for training a classifier"
    if share >= USABLE:
        return f"usable for training a classifier, at a loss of {_points(real - synthetic)} points"
    return "better than guessing, and far from what real records teach"


def _counted(share: float | None) -> str:
    """Sentence on the parties' noised counts, where there are no test texts."""
    if share is None:
        return "The usefulness of the texts was not measured: that takes test texts (task.test)"
    return (
        f"A classifier of the texts is right on {_percent(share)} of the parties' own records, by a noised count; "
        "what guessing or real records would reach is not known here"
    )


def _percent(share: float) -> str:
    return f"{_points(share)} %"


def _points(share: float) -> str:
    """A share in points of a hundred, with one decimal where it has one."""
    return f"{100 * share:.1f}".removesuffix(".0")

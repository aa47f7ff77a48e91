"""The groups of figures that a run, and a later evaluation of its texts, measure in the same way."""

from collections.abc import Sequence

from server.documents.metrics import Group
from server.domain import Candidate
from server.evaluation import label_sets, nearness, of_texts, released_classifier, zero_shot
from server.evaluation.figures import Measured
from server.metrics.linear import LinearClassifier


def run_groups(
    measured: Measured,
    *,
    without: Sequence[Candidate],
    classifier: LinearClassifier | None,
    transfer: Sequence[Candidate],
) -> Group:
    """Return the groups of the synthetic texts, of their gain over the models alone, and of the released classifier.

    Args:
        measured: Input for the figures.
        without: Texts that the same models wrote without the hospitals, as a classifier reads them; empty if there are
            none.
        classifier: The classifier that the released numbers define, if any.
        transfer: Public texts with that classifier's labels, as a classifier reads them.
    """
    return (
        of_texts.text_groups(measured)
        | zero_shot.compare_with_zero_shot(measured, without)
        | label_sets.compare_label_sets(measured, without)
        | nearness.nearness(measured, without)
        | released_classifier.measured_with(measured, classifier, transfer)
    )

"""Site inference: whether the released texts reveal the hospital from which a record or a style came.

The released texts name no hospital, so an attacker needs other knowledge. Here this knowledge is the strongest of its
kind: a random half of each hospital's records, with the hospital's name. There are two attacks.

Attack on a record: from which hospital does a held-back record come? The attacker fits a classifier of hospitals to the
known records, labels the released texts with it, and fits another classifier to the known records and the released
texts. What the texts reveal is the gain: the number of records that the second classifier attributes correctly, minus
the number for the first. The halves are then exchanged, so that each record is held back once. Texts that do not depend
on records can also lead to a gain or a loss, as any unlabelled text can, so a gain should be compared with that of a
run without votes.

Attack on a change: the private answers move the texts of later rounds towards the records. Hospitals are ranked by the
cosine between a label's change and the hospital's direction, the mean difference of its known records from their
label's mean. The figure is the proportion of labels for which the correct hospital comes first: the one with the most
records of the label, or the one with a planted style. With L labels, changes that are unrelated to the hospitals put
the correct hospital first for about 1 label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.errors import DataError
from server.documents.metrics import Figure
from server.evaluation.figures import difference, share
from server.metrics.accuracy import fit_in_one_thread
from simulations.private_evaluation.change import LabelledVectors

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

STYLE = "Dictated over the telephone: {}"
"""Form of all records of the hospital `federation.style_site`, with {} for the text. No other hospital's records have
it."""

DEFINITION = (
    "An attacker knows a random half of each hospital's records and names the hospitals of the others, by logistic "
    "regression on vectors and labels: from the known records alone (known_records), or from these and the released "
    "texts, which the former has given hospitals (with_texts). gain: the difference of the two shares that are right, "
    "of the same records, halves changing places (Bonett and Price); a leak as far as it is above that of texts "
    "written without votes. constant: the largest hospital's share of the records. largest, planted: share of labels "
    "whose change points to the hospital with most records of the label, or to the one with a planted style, first of "
    "all by the cosine with the mean difference of a hospital's known records from their labels' means; by chance "
    "about 1 / L. Intervals of shares by Clopper and Pearson."
)
"""Definition of the figures, shown in reports."""

FEWEST = 20
"""Minimum number of records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteOfRecord:
    """Whether each record was attributed to its own hospital while it was held back.

    Attributes:
        known_records: (records,) bool, for an attacker with the known records alone.
        with_texts: (records,) bool, for an attacker with the known records and the released texts.
    """

    known_records: NDArray[np.bool_]
    with_texts: NDArray[np.bool_]


def attribute_records(
    private: LabelledVectors, sites: NDArray[np.int64], released: LabelledVectors, *, experiment_seed: int
) -> SiteOfRecord:
    """Return whether each record is attributed to its hospital, with and without the released texts.

    Args:
        private: The records of all hospitals.
        sites: (records,) index of each record's hospital.
        released: The released texts.
        experiment_seed: Seed from which the halves are drawn.

    Raises:
        DataError: There are too few records, or fewer than two hospitals have more than one record.
    """
    half = halves(sites, experiment_seed)
    names = np.unique(np.concatenate([private.labels, released.labels]))
    records, texts = _features(private, names), _features(released, names)
    right = np.zeros((2, len(sites)), dtype=np.bool_)
    for held_back in (half, ~half):
        known = records[~held_back], sites[~held_back]
        alone = _classifier(*known)
        # Together the texts weigh as much as the records, of which there may be far fewer.
        weights = np.concatenate([np.ones(len(known[1])), np.full(len(texts), len(known[1]) / len(texts))])
        attributed = np.concatenate([known[1], alone.predict(texts)])
        together = _classifier(np.concatenate([known[0], texts]), attributed, weights)
        for row, model in enumerate((alone, together)):
            right[row, held_back] = model.predict(records[held_back]) == sites[held_back]
    return SiteOfRecord(known_records=right[0], with_texts=right[1])


def attribute_changes(
    private: LabelledVectors,
    sites: NDArray[np.int64],
    before: LabelledVectors,
    after: LabelledVectors,
    *,
    experiment_seed: int,
) -> dict[str, int]:
    """Return, for each label with texts before and after, the index of the hospital to which its change points.

    Args:
        private: The records of all hospitals.
        sites: (records,) index of each record's hospital.
        before: Reference texts.
        after: Texts that the private answers may have influenced.
        experiment_seed: Seed from which the half of the records that the attacker knows is drawn.

    Raises:
        DataError: As in `attribute_records`; or no label has texts both before and after.
    """
    from sklearn.preprocessing import normalize

    known = ~halves(sites, experiment_seed)
    vectors, labels, of = private.vectors[known].astype(np.float64), private.labels[known], sites[known]
    for label in np.unique(labels):
        vectors[labels == label] -= vectors[labels == label].mean(axis=0)
    present = np.unique(of)
    directions = normalize(np.stack([vectors[of == site].mean(axis=0) for site in present]))
    site_of_label = {}
    for label in np.unique(after.labels).tolist():
        if len(before.of(label)):
            change = after.of(label).mean(axis=0, dtype=np.float64) - before.of(label).mean(axis=0, dtype=np.float64)
            site_of_label[label] = int(present[np.argmax(directions @ change)])
    if not site_of_label:
        raise DataError("change of the texts", expected="a label with texts before and after", got="none")
    return site_of_label


def site_figures(
    attribution: SiteOfRecord,
    pointed: Mapping[str, int],
    private: LabelledVectors,
    sites: NDArray[np.int64],
    *,
    style_site: int | None,
) -> dict[str, Figure]:
    """Return the figures of `DEFINITION`; include "planted" only if there is a planted style.

    Args:
        attribution: Whether records were attributed to their hospitals.
        pointed: Index of the hospital to which the change of each label points, keyed by label.
        private: The records of all hospitals.
        sites: (records,) index of each record's hospital.
        style_site: Index of the hospital with a planted style; None if there is no such hospital.
    """
    rows, labels = len(sites), len(pointed)
    alone, together = attribution.known_records, attribution.with_texts
    most = _largest(private, sites, list(pointed))
    counts = {"known_records": (int(alone.sum()), rows), "with_texts": (int(together.sum()), rows)}
    counts["constant"] = (int(np.bincount(sites).max()), rows)
    counts["largest"] = (sum(site == right for site, right in zip(pointed.values(), most, strict=True)), labels)
    if style_site is not None:
        counts["planted"] = (sum(site == style_site for site in pointed.values()), labels)
    gain = difference(alone.astype(np.float64), together.astype(np.float64))
    return {"gain": gain} | {name: share(right, of) for name, (right, of) in counts.items()}


def _largest(private: LabelledVectors, sites: NDArray[np.int64], labels: Sequence[str]) -> list[int]:
    """Return, for each label, the hospital with the most records, the first in a tie; -1 if no record has the label."""
    counts = [np.bincount(sites[private.labels == label], minlength=1) for label in labels]
    return [int(count.argmax()) if count.any() else -1 for count in counts]


def halves(sites: NDArray[np.int64], experiment_seed: int) -> NDArray[np.bool_]:
    """Return whether each record is held back, (records,): a random half of each hospital's records.

    Raises:
        DataError: There are too few records, or fewer than two hospitals have more than one record.
    """
    if len(sites) < FEWEST or (np.bincount(sites) > 1).sum() < 2:
        expected = f"{FEWEST} records, and two hospitals with more than one"
        raise DataError("site inference", expected=expected, got="fewer")
    held_back = np.zeros(len(sites), dtype=np.bool_)
    generator = rng.experiment(experiment_seed, "held-back records")
    for site in np.unique(sites):
        held_back[generator.permutation(np.flatnonzero(sites == site))[::2]] = True
    return held_back


def _features(texts: LabelledVectors, names: NDArray[np.str_]) -> NDArray[np.float64]:
    """Return the features of texts, (texts, d + labels): vectors and labels, as the attacker also knows the labels."""
    return np.concatenate([texts.vectors, texts.labels[:, None] == names], axis=1).astype(np.float64)


def _classifier(
    features: NDArray[np.float64], sites: NDArray[np.int64], weights: NDArray[np.float64] | None = None
) -> "LogisticRegression":
    from sklearn.linear_model import LogisticRegression

    made: LogisticRegression = fit_in_one_thread(LogisticRegression(C=10.0, max_iter=1000), features, sites, weights)
    return made

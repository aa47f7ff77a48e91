"""Groups of figures that compare the synthetic texts with private records; they are marked as for simulations only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from common.domain import Record
from common.errors import CaucusError, DataError
from server.documents.metrics import Figure, Group
from server.evaluation import subgroups
from server.evaluation.figures import (
    Measured,
    classification,
    fidelity_group,
    language_modelling,
    missing,
    predicted_by,
    real_against_real,
    share,
)
from server.metrics import intervals
from server.metrics.language_model import LanguageModel
from simulations.private_evaluation import attacks, canaries, change, sites
from simulations.private_evaluation.canaries import Canary
from simulations.private_evaluation.change import LabelledVectors, before_and_after

FEWEST = 20
"""Minimum number of members, of others, and of reference texts for a membership attack."""
EXPOSED = 20
"""Maximum number of canaries for which the exposure is measured, since each canary needs the likelihoods of all its
alternatives."""
_SUBGROUPS = (
    "Accuracy on the private records of the small model trained on the synthetic texts; worst_label, "
    "worst_length, worst_hospital: of the group with the lowest."
)


@dataclass(frozen=True, kw_only=True)
class MeasuredWithRecords(Measured):
    """Input for the figures, including private records.

    Attributes:
        private: The records of all parties.
        sites: Index of the party of each record.
        canaries: All canaries; the inserted canaries are among the records.
        canary_times: Number of times that an inserted canary is among the records.
        style_site: Index of the party whose records have a planted style; None if there is no such party.
        epsilon: Epsilon of the run's guarantee; infinite if there is no guarantee.
        delta: Delta of the guarantee.
    """

    private: Sequence[Record] = field(repr=False)
    sites: Sequence[int] = field(default=(), repr=False)
    canaries: Sequence[Canary] = field(default=(), repr=False)
    canary_times: int = 1
    style_site: int | None = None
    epsilon: float = math.inf
    delta: float = 0.0

    @cached_property
    def private_vectors(self) -> NDArray[np.float32]:
        """Vectors of the private records, (private, dim)."""
        return self.embedded([record.text for record in self.private])

    @cached_property
    def unplanted(self) -> list[int]:
        """Indices of the private records that are no canaries, which are like no hospital's records."""
        planted = {canary.record.text for canary in self.canaries}
        return [place for place, record in enumerate(self.private) if record.text not in planted]

    def groups(self, places: Sequence[int]) -> dict[str, list[str]]:
        """Return the groups of these private records, by length, hospital, and label if each has one."""
        records = [self.private[place] for place in places]
        groups = {"length": subgroups.lengths([record.text for record in records])}
        if self.one_label:
            groups |= {"label": [record.label for record in records]}
        return groups | ({"hospital": [f"hospital {self.sites[place] + 1}" for place in places]} if self.sites else {})

    @cached_property
    def change(self) -> tuple[LabelledVectors, LabelledVectors]:
        """The reference texts, and the texts that the private answers may have influenced (`before_and_after`)."""
        return before_and_after(self.candidates, self.vectors, self.test, self.test_vectors)


def record_groups(measured: MeasuredWithRecords) -> Group:
    """Return the groups of figures from private records that are named in `evaluation.metrics`, keyed by group name."""
    groups = {
        "utility": ("utility_real", _utility_real),
        "language": ("language_real", _language_real),
        "fidelity": ("fidelity_real", _fidelity_real),
        "fidelity_private": ("fidelity_private", _fidelity_private),
        "membership": ("membership", _membership),
        "canaries": ("canaries", _canaries),
        "sites": ("sites", _sites),
        "disclosures": ("disclosures", _disclosures),
        "subgroups": ("subgroups", _subgroups),
    }
    chosen = [groups[name] for name in groups if name in measured.evaluation.metrics]
    made = {name: make(measured) for name, make in chosen}
    return {
        name: replace(group, simulation_only=True) if isinstance(group, Figure) else group | {"simulation_only": True}
        for name, group in made.items()
    }


def _utility_real(measured: MeasuredWithRecords) -> Group | Figure:
    """Return metrics for the small model, trained on as many private records as there are texts.

    If there are fewer records than texts, the model is trained on all records.
    """
    if measured.evaluation.uses_endpoint:
        return Figure(reason="evaluation.embedding is an endpoint, and private text is never sent anywhere")
    train: Sequence[Record] = measured.private
    if len(train) > len(measured.candidates):
        train = measured.drawn(train, "real", len(measured.candidates))
    plain = replace(measured.evaluation, domain_adaptation="none", target=None)
    return classification(measured, train, plain)


def _language_real(measured: MeasuredWithRecords) -> Group:
    most = min(len(measured.candidates), measured.evaluation.texts)
    return language_modelling(measured, [record.text for record in measured.drawn(measured.private, "real", most)])


def _fidelity_real(measured: MeasuredWithRecords) -> Group:
    """Return the fidelity of a sample of private records that is as large as the set of texts.

    The sizes are equal because the figures' bias depends on the sample size.
    """
    records = measured.drawn(measured.private, "real", len(measured.candidates))
    about = f"{len(records)} private records in place of the synthetic texts, against the test texts."
    return real_against_real(measured, records, measured.test, about, sets="private records and the test texts")


def _fidelity_private(measured: MeasuredWithRecords) -> Group:
    sets = "the synthetic texts and the private records"
    return fidelity_group(measured, measured.private, lambda: measured.private_vectors, sets=sets)


def _membership(measured: MeasuredWithRecords) -> Group:
    held_out = [record.text for record in measured.drawn(measured.test, "others", 2 * measured.evaluation.texts)]
    half = len(held_out) // 2
    others, reference = held_out[:half], held_out[half:]
    members = [record.text for record in measured.drawn(measured.private, "members")]
    about = f"{attacks.MEMBERSHIP} {len(members)} members, {len(others)} others, {len(reference)} for reference."
    rows = len(members) + len(others)
    try:
        if min(len(members), half) < FEWEST:
            raise DataError("membership attack", expected=f"{FEWEST} records and {2 * FEWEST} held out", got="fewer")
        results = attacks.attacks(
            measured.drawn(measured.texts, "language"),
            members,
            others,
            reference,
            shadows=measured.evaluation.shadows,
            seed=measured.experiment_seed,
            training=measured.evaluation.language_model,
        )
    except (CaucusError, ValueError, ArithmeticError) as error:
        return {"definition": about} | missing(("PPL", "REFER", "LIRA"), error, rows=rows)
    return {"definition": about} | results


def _canaries(measured: MeasuredWithRecords) -> Group:
    """Return figures on canaries: whether codes are in texts, whether a model of the texts prefers them, membership."""
    seed, inserted = measured.experiment_seed, [canary for canary in measured.canaries if canary.inside]
    about = (
        f"{len(inserted)} records with codes drawn at random. extracted: share whose code is in a "
        "synthetic text. exposure: mean of the bits by which a language model of the synthetic texts prefers a canary "
        f"to {canaries.ALTERNATIVES} others of its form, about 1.44 where nothing was learned, 8 at most, of "
        f"{EXPOSED} canaries at most (Carlini et al. 2019). {canaries.DEFINITION} {change.DEFINITION}"
    )
    rows = len(inserted)
    try:
        if not inserted:
            raise DataError("canaries", expected="some among the records", got="none", do="Set federation.canaries=100")
        model = LanguageModel.train(
            measured.drawn(measured.texts, "language"), measured.evaluation.language_model, seed=seed
        )
        exposed = measured.drawn(inserted, "exposed", EXPOSED)
        bits = [attacks.exposure(model, canary.record.text, canary.alternatives(seed)) for canary in exposed]
    except CaucusError as error:
        return {"definition": about} | missing(("extracted", "exposure"), error, rows=rows)
    extracted = sum(any(canary.code in text for text in measured.whole_texts) for canary in inserted)
    return {
        "definition": about,
        "extracted": share(extracted, rows),
        "exposure": Figure(value=float(np.mean(bits)), interval=intervals.interval_over_seeds(bits), rows=len(bits)),
    } | _canary_membership(measured)


def _canary_membership(measured: MeasuredWithRecords) -> dict[str, Figure]:
    vectors = measured.embedded([canary.record.text for canary in measured.canaries])
    inside = np.array([canary.inside for canary in measured.canaries])
    scored = canaries.canary_scores(measured.canaries, vectors, measured.texts, *measured.change)
    try:
        return canaries.canary_figures(
            scored, inside, epsilon=measured.epsilon, delta=measured.delta, times=measured.canary_times
        )
    except CaucusError as error:
        return missing(("auc", "above_all", "tpr", "epsilon", "stated_epsilon"), error, rows=len(inside))


def _disclosures(measured: MeasuredWithRecords) -> Group:
    places = measured.drawn(measured.unplanted, "disclosed")
    control = measured.drawn([record.text for record in measured.test], "phantoms")
    records = [measured.private[place].text for place in places]
    try:
        made = attacks.phantom_figures(
            records, control, measured.texts, measured.embedded, groups=measured.groups(places)
        )
    except CaucusError as error:
        made = missing(attacks.FEATURES, error, rows=len(records))
    return {"definition": attacks.DISCLOSURES} | made


def _subgroups(measured: MeasuredWithRecords) -> Group | Figure:
    """Return the accuracy on the private records of the small model trained on the synthetic texts, by group."""
    if not measured.one_label or measured.evaluation.uses_endpoint:
        return Figure(reason="the classifier must run here and learn one label a text")
    records = [measured.private[place] for place in measured.unplanted]
    labels = [record.label for record in records]
    try:
        predicted, _ = predicted_by(replace(measured, test=records), measured.candidates, measured.evaluation, 0)
    except (CaucusError, ValueError) as error:
        return {"definition": _SUBGROUPS} | missing(("accuracy",), error, rows=len(labels))
    hits = np.array(predicted) == np.array(labels)
    worst = subgroups.worst(hits.astype(float), measured.groups(measured.unplanted))
    return {"definition": _SUBGROUPS, "accuracy": share(int(hits.sum()), len(hits))} | worst


def _sites(measured: MeasuredWithRecords) -> Group:
    rows = measured.unplanted
    record_sites = np.array(measured.sites, dtype=np.int64)[rows]
    labels = np.array([measured.private[at].label for at in rows])
    private = LabelledVectors(vectors=measured.private_vectors[rows], labels=labels)
    released = LabelledVectors(vectors=measured.vectors, labels=np.array([text.label for text in measured.candidates]))
    about = {"definition": f"{sites.DEFINITION} {change.DEFINITION}"}
    try:
        attribution = sites.attribute_records(private, record_sites, released, experiment_seed=measured.experiment_seed)
        pointed = sites.attribute_changes(
            private, record_sites, *measured.change, experiment_seed=measured.experiment_seed
        )
    except CaucusError as error:
        return about | missing(("known_records", "with_texts", "gain", "largest"), error, rows=len(rows))
    return about | sites.site_figures(attribution, pointed, private, record_sites, style_site=measured.style_site)

"""Groups of figures that compare the synthetic texts with private records: only in simulations, and marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from common.domain import Record
from common.errors import CaucusError, DataError
from server.evaluation.figures import Group, Measured, classification, fidelity, language_modelling, missing, together
from server.metrics import intervals
from simulations.private_evaluation import attacks, canaries

FEWEST = 20
"""Minimum number of records of each kind for an attack."""


@dataclass(frozen=True, kw_only=True)
class MeasuredWithRecords(Measured):
    """Input of the figures, with private records.

    Attributes:
        private: The records of all parties.
        canaries: Codes of the canaries among them.
    """

    private: Sequence[Record] = field(repr=False)
    canaries: Sequence[str] = field(default=(), repr=False)

    @cached_property
    def private_vectors(self) -> NDArray[np.float32]:
        """(private, dim)."""
        return self.embedded([record.text for record in self.private])


def of_records(measured: MeasuredWithRecords) -> dict[str, Group]:
    """The configured groups that use private records."""
    groups = {
        "utility": ("utility_real", _utility_real),
        "language": ("language_real", _language_real),
        "privacy": ("nearest", _nearest),
        "fidelity_private": ("fidelity_private", _fidelity_private),
        "membership": ("membership", _membership),
        "canaries": ("canaries", _canaries),
    }
    chosen = [groups[name] for name in groups if name in measured.evaluation.metrics]
    return {name: make(measured) | {"simulation_only": True} for name, make in chosen}


def _utility_real(measured: MeasuredWithRecords) -> Group:
    """The same model trained on as many private records as there are synthetic texts, or on all if there are fewer."""
    if measured.evaluation.uses_endpoint:
        reason = "evaluation.embedding is an endpoint, and private text is never sent anywhere"
        return {"value": None, "reason": reason}
    train = measured.drawn(measured.private, "real", len(measured.candidates))
    plain = replace(measured.evaluation, domain_adaptation="none", target=None)
    return classification(measured, train, None, plain)


def _language_real(measured: MeasuredWithRecords) -> Group:
    count = min(len(measured.candidates), measured.evaluation.texts)
    return language_modelling(measured, [record.text for record in measured.drawn(measured.private, "real", count)])


def _fidelity_private(measured: MeasuredWithRecords) -> Group:
    return fidelity(measured, measured.private, lambda: measured.private_vectors)


def _nearest(measured: MeasuredWithRecords) -> Group:
    def distances() -> Mapping[str, float]:
        near = attacks.nearest(measured.vectors, measured.private_vectors, measured.test_vectors)
        return {"records": near.members, "held_out": near.others, "ratio": near.ratio, "closer": near.closer}

    names = ("records", "held_out", "ratio", "closer")
    return {"definition": attacks.NEAREST} | together(distances, names, rows=len(measured.private))


def _membership(measured: MeasuredWithRecords) -> Group:
    held_out = [record.text for record in measured.drawn(measured.test, "others", 2 * measured.evaluation.texts)]
    half = len(held_out) // 2
    others, reference = held_out[:half], held_out[half:]
    members = [record.text for record in measured.drawn(measured.private, "members")]
    about = f"{attacks.DEFINITION} {len(members)} members, {len(others)} others, {len(reference)} for reference."
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
    return {"definition": about} | {
        name: {"value": attack.auc, "interval": attack.interval, "rows": rows} for name, attack in results.items()
    }


def _canaries(measured: MeasuredWithRecords) -> Group:
    """Whether canaries are extracted verbatim, or preferred by a language model of the texts."""
    from server.metrics.language_model import LanguageModel  # noqa: PLC0415 — as torch

    about = (
        f"{len(measured.canaries)} records with codes drawn at random. extracted: share whose code is in a "
        "synthetic text. exposure: mean of the bits by which a language model of the synthetic texts prefers a canary "
        f"to {canaries.ALTERNATIVES} others of its form, about 1.44 where nothing was learned, 8 at most (Carlini et "
        "al. 2019)."
    )
    rows = len(measured.canaries)
    try:
        if not measured.canaries:
            raise DataError("canaries", expected="some among the records", got="none", do="Set federation.canaries=20")
        model = LanguageModel.train(
            measured.drawn(measured.texts, "language"),
            seed=measured.experiment_seed,
            **measured.evaluation.language_model,
        )
        others = canaries.alternatives(measured.experiment_seed)
        bits = [attacks.exposure(model, canaries.FORM.format(code), others) for code in measured.canaries]
    except CaucusError as error:
        return {"definition": about} | missing(("extracted", "exposure"), error, rows=rows)
    extracted = [any(code in text for text in measured.texts) for code in measured.canaries]
    between = binomtest(sum(extracted), rows).proportion_ci(method="wilson")
    return {
        "definition": about,
        "extracted": {"value": float(np.mean(extracted)), "interval": (between.low, between.high), "rows": rows},
        "exposure": {"value": float(np.mean(bits)), "interval": intervals.over_seeds(bits), "rows": rows},
    }

"""Figures on the private records, and a map of them, which a simulation adds to a finished run folder.

Figures and map contain no noise, are marked "simulation_only" and must not leave the machine. Added to `metrics.json`
are the scores of the same small model trained on the private records, the proportions of the records' labels, and the
groups from `record_groups`. The coordinates of the records are written to `map_private.json`.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.domain import Record
from common.errors import ConfigError
from common.models.encoder import Encoder
from server.documents.maps import Point, PrivateMap, TextMap
from server.documents.metrics import Group, Metrics
from server.evaluation import label_sets, projection, small_model
from server.evaluation.small_model import Evaluation
from server.metrics import multilabel
from server.report.write import write_report
from simulations.private_evaluation.of_records import MeasuredWithRecords, record_groups

log = logging.getLogger("caucus.simulation")

MOST_MAPPED = 2000
"""Maximum number of records on the map; if there are more, a regular sample is shown."""


def compare(folder: Path, measured: MeasuredWithRecords) -> None:
    """Add the comparison to `metrics.json`, write `map_private.json`, and rewrite the report."""
    log.info("[4/4] comparing with the private records, for this simulation only")
    scores = None
    if measured.one_label and not measured.evaluation.uses_endpoint:
        scores = real_private(measured.private, measured.test, measured.evaluation, measured.encoder)
    shares: dict[str, Any] = {"label_shares": _label_shares(measured.private)} if measured.labelled else {}
    shares |= {"real_private": scores} if measured.one_label else _several_labels(measured)
    Metrics.load(folder).adding(shares | record_groups(measured)).save(folder)
    _map(folder, measured)
    write_report(folder)


def real_private(
    private: Sequence[Record], test: Sequence[Record], evaluation: Evaluation, encoder: Encoder | None
) -> dict[str, Any]:
    """Return the accuracy and macro-F1 of the run's small model trained on the private records, without adaptation.

    Raises:
        ConfigError: The model would send the records to an endpoint.
    """
    if evaluation.uses_endpoint or not (encoder is None or encoder.runs_here):
        raise ConfigError(
            "evaluation.embedding" if evaluation.uses_endpoint else "embedding",
            expected="an encoder that runs here: private text is never sent anywhere",
            got="an endpoint",
            do="Leave it out, or choose an encoder that is computed locally",
        )
    plain = replace(evaluation, domain_adaptation="none", target=None)
    return small_model.score(private, test, evaluation=plain, encoder=encoder) | {"simulation_only": True}


def _several_labels(measured: MeasuredWithRecords) -> Group:
    """Return the metrics for a model trained on records with several labels each; empty if there are no test texts."""
    if not measured.several or not measured.test or measured.evaluation.uses_endpoint:
        return {}
    about = {"definition": multilabel.DEFINITION, "trained_on": len(measured.private), "simulation_only": True}
    return {label_sets.REAL: about | label_sets.taught(measured, measured.private)}


def _label_shares(private: Sequence[Record]) -> dict[str, Any]:
    counts = Counter(label for record in private for label in record.labels)
    return {
        "definition": "Share of each label among the private records.",
        "simulation_only": True,
        "count": counts.total(),
        "records": {label: count / counts.total() for label, count in sorted(counts.items())},
    }


def _map(folder: Path, measured: MeasuredWithRecords) -> None:
    """Write the private records' coordinates on the axes of the synthetic texts' map, if there is such a map.

    For texts in sections nothing is written, because the map is of whole texts and `measured` has the records'
    sections.
    """
    plane = TextMap.load(folder)
    if plane.axes is None or measured.in_sections:
        return
    sample = projection.evenly(measured.private, MOST_MAPPED)
    places = projection.place_on_map(plane, measured.embedded([record.text for record in sample]))
    points: dict[str, list[Point]] = {}
    for record, place in zip(sample, places, strict=True):
        points.setdefault(record.label, []).append(place)
    PrivateMap(points={label: tuple(coordinates) for label, coordinates in points.items()}).save(folder)

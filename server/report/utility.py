"""What the texts teach a classifier, beside what real records and guessing do: one table from `metrics.json`.

The same small model is trained on one set of texts after another and tested on the same held-out texts. How many texts
it was trained on is said with each, since more texts teach more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from server.metrics.intervals import of_share
from server.report.reading import JsonObject, finite

SHOWN = {
    *("synthetic", "majority_class", "real_private"),
    *("utility", "utility_real", "utility_encoder", "federated"),
}
"""Groups of `metrics.json` that the table contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracies:
    """Accuracy, 0 to 1, on the held-out texts; None where it was not measured.

    Attributes:
        synthetic: Of the small model trained on the synthetic texts.
        interval: 95 % interval of `synthetic`.
        real: Of the same model trained on all private records: in a simulation alone.
        majority: Share of the test texts' most frequent label.
        tested: Number of test texts.
    """

    synthetic: float | None = None
    interval: tuple[float, float] | None = None
    real: float | None = None
    majority: float | None = None
    tested: int | None = None

    @property
    def clearly_above_guessing(self) -> bool:
        """Whether the lower end of the 95 % interval over test texts is above the most frequent label's share."""
        if self.synthetic is None or self.majority is None or not self.tested:
            return False
        low, _ = of_share(round(self.synthetic * self.tested), self.tested)
        return low > self.majority


def accuracies(metrics: JsonObject) -> Accuracies:
    """The accuracies in the content of a `metrics.json`; figures that are missing or no numbers are None."""
    # Several trainings have a mean, of which the plain figure is the first.
    synthetic = _figure("accuracy", _group(metrics, "utility"), _group(metrics, "synthetic"))
    tested = metrics.get("test_records")
    return Accuracies(
        synthetic=synthetic["value"],
        interval=synthetic["interval"],
        real=_figure("accuracy", _group(metrics, "real_private"))["value"],
        majority=_figure("accuracy", _group(metrics, "majority_class"))["value"],
        tested=tested if isinstance(tested, int) else None,
    )


def counted(metrics: JsonObject) -> float | None:
    """Share of the parties' own records on which a classifier of the texts is right, by a count with noise."""
    share: float | None = _figure("accuracy", _group(metrics, "federated"))["value"]
    return share


def utility(metrics: JsonObject) -> dict[str, Any]:
    """The table, as `report.json` has it.

    Returns:
        "rows", each with "trained_on" and "tested_on" in words, "texts" (trained on) and "tested" (numbers, None if
        unknown), "accuracy" and "macro_f1" (each with "value" and "interval"), "reason" if there is no figure and
        "simulation_only"; "notes", sentences on what was measured. Without figures there is no row.
    """
    rows = list(_rows(metrics))
    notes = dict.fromkeys(
        f"{title}: {text}"
        for title, group in (
            ("The classifier", metrics),
            ("The second classifier", _group(metrics, "utility_encoder")),
            ("The parties' own records", _group(metrics, "federated")),
        )
        if (text := group.get("definition")) and rows
    )
    remarks = (_group(metrics, name).get("note") for name in ("utility", "utility_encoder"))
    return {"rows": rows, "notes": [*notes, *(f"Note: {remark}." for remark in dict.fromkeys(remarks) if remark)]}


def _rows(metrics: JsonObject) -> Iterator[dict[str, Any]]:
    synthetic, real, detailed = (_group(metrics, name) for name in ("synthetic", "real_private", "utility"))
    tested, trained, number = metrics.get("test_records"), synthetic.get("records"), real.get("records")
    if synthetic or "utility" in metrics:
        yield _row("synthetic texts", trained, tested, detailed, synthetic)
    as_many = _group(metrics, "utility_real")
    # Other test texts, of a later evaluation, are no reference.
    if as_many.get("test") != detailed.get("test"):
        as_many = {}
    drawn = as_many.get("trained_on", None if number is None or trained is None else min(number, trained))
    if as_many and (not real or drawn != number):
        yield _row("private records, as many as texts", drawn, tested, as_many, simulation_only=True)
        as_many = {}
    if real or as_many:
        yield _row("all private records", number, tested, as_many, real, simulation_only=True)
    if majority := _group(metrics, "majority_class"):
        yield _row("nothing: always the most frequent label", 0, tested, majority)
    if encoder := _group(metrics, "utility_encoder"):
        private = bool(encoder.get("simulation_only"))
        name = "all private records" if private else "synthetic texts"
        texts = encoder.get("records", trained)
        yield _row(f"{name}, second classifier", texts, tested, encoder, simulation_only=private)
    if federated := _group(metrics, "federated"):
        rows = _group(federated, "accuracy").get("rows")
        yield _row("synthetic texts", trained, rows, federated) | {
            "tested_on": "the parties' records, counted with noise"
        }


def _row(
    trained_on: str, texts: object, tested: object, *groups: JsonObject, simulation_only: bool = False
) -> dict[str, Any]:
    """A row of the table: each figure is of the first group that has it, the reason for none of the first of all."""
    figures = {name: _figure(name, *groups) for name in ("accuracy", "macro_f1")}
    about = _group(groups[0], "accuracy") or groups[0]
    return {
        "trained_on": trained_on,
        "texts": texts,
        "tested_on": "test texts",
        "tested": tested,
        **figures,
        "reason": about.get("reason") if figures["accuracy"]["value"] is None else None,
        "simulation_only": simulation_only,
    }


def _figure(name: str, *groups: JsonObject) -> dict[str, Any]:
    """The first number of this name in these groups, which have it plain or with an interval."""
    for group in groups:
        figure = _group(group, name) or {"value": group.get(name)}
        if (value := finite(figure.get("value"))) is not None:
            return {"value": value, "interval": _pair(figure.get("interval"))}
    return {"value": None, "interval": None}


def _group(metrics: JsonObject, name: str) -> JsonObject:
    group = metrics.get(name)
    return group if isinstance(group, Mapping) else {}


def _pair(interval: object) -> tuple[float, float] | None:
    low, high = (finite(end) for end in interval) if isinstance(interval, list | tuple) else (None, None)
    return None if low is None or high is None else (low, high)

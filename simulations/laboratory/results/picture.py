"""The picture on the page of results: accuracy against epsilon, by number of records, from `findings.json`.

An error bar extends one standard deviation over the seeds on either side of the mean. If epsilon has no effect, the
line is horizontal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from server.report.plots import Lines
from simulations.laboratory.pictures import Span, by_epsilon, picture
from simulations.laboratory.results.claims import RECORDS

FILE = "accuracy.svg"
_Measured = Mapping[str, Sequence[Mapping[str, Any]]]
"""Figures of each line, one per epsilon, keyed by the line's name."""


def draw(findings: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the picture as SVG; None if no line with private records was measured.

    Args:
        findings: The list `picture` in `findings.json`, with the measurements of each line of `picture.yaml`.
    """
    measured = [
        (*finding["claim"]["name"].partition(RECORDS)[::2], finding["figures"])
        for finding in findings
        if any(figure["mean"] is not None for figure in finding["figures"])
    ]
    names = list(dict.fromkeys(name for name, _, _ in measured))
    panels = {
        int(size): {name: figures for name, records, figures in measured if records in {"", size}}
        for size in dict.fromkeys(records for _, records, _ in measured if records)
    }
    if not panels:
        return None
    spans = [_spread(figure) for panel in panels.values() for line in panel.values() for figure in line]
    ends = [end for span in spans if span for end in span]
    seeds, data = findings[0]["figures"][0]["planned"], ", ".join(findings[0]["data"])
    return picture(
        "Accuracy against ε",
        [[_plot(records, names, panels[records], ends) for records in sorted(panels)]],
        note=f"{data}, means of {seeds} seeds; bars: one standard deviation. Level lines do not depend on ε.",
    )


def _plot(records: int, names: Sequence[str], panel: _Measured, ends: Sequence[float]) -> Lines:
    """Return the plot for this number of records; a method without measurements has no line, but keeps its colour."""
    epsilons = [figure["epsilon"] for figure in next(iter(panel.values()))]
    missing = [{"mean": None}] * len(epsilons)
    figures = {name: panel.get(name, missing) for name in names}
    return by_epsilon(
        f"records-{records}",
        f"Accuracy on real texts, %: {records} private records",
        epsilons=[epsilon if epsilon == "inf" else f"{epsilon:g}" for epsilon in epsilons],
        values={name: [_percent(figure["mean"]) for figure in line] for name, line in figures.items()},
        intervals={name: list(map(_spread, line)) for name, line in figures.items()},
        including=ends,
    )


def _spread(figure: Mapping[str, Any]) -> Span | None:
    """Return the ends, in percent, of an error bar that extends one standard deviation on either side of the mean.

    The result is None if there is no mean.
    """
    if figure["mean"] is None:
        return None
    deviation = figure["deviation"] or 0.0
    return 100 * (figure["mean"] - deviation), 100 * (figure["mean"] + deviation)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share

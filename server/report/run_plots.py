"""The plots of one run."""

from collections.abc import Mapping, Sequence

from common.page.words import catalogue
from server.documents.metrics import FigureGroup, finite
from server.documents.rounds import RoundReport
from server.evaluation.projection import evenly
from server.report import plots
from server.report.facts import Facts, Places
from server.report.votes import VoteHistogram

MOST_POINTS = 2000
"""Maximum number of points of one source on the map; more points would overlap."""

_BOOKKEEPING = {"population", "metadata"}
"""Figures from a method that are not plotted."""


def plot_rounds(rounds: Sequence[RoundReport], groups: Sequence[FigureGroup] = ()) -> list[plots.Lines]:
    """Return one plot for each figure of the rounds, known figures first, with a single line or a line for each model.

    Args:
        rounds: The rounds.
        groups: Groups of figures of the whole run. The distance between two sets of real texts is taken from them and
            drawn in the plot of the FID.
    """
    figures = [{**report.figures, "fid": report.fid, "epsilon": report.epsilon} for report in rounds]
    names = [name for name in dict.fromkeys(name for group in figures for name in group) if name not in _BOOKKEEPING]
    known = vars(catalogue(__package__).rounds)
    drawings, places = [], [report.round for report in rounds]
    for name in [*filter(names.__contains__, known), *(name for name in names if name not in known)]:
        title, note = known.get(name, (name.replace("_", " "), ""))
        values = _values([group.get(name) for group in figures], name)
        if name == "fid":
            values |= _reference(groups, len(rounds))
        drawings.append(plots.lines(f"round-{name}", title, note=note, x_name="round", places=places, values=values))
    return [plot for plot in drawings if plot is not None]


def _reference(groups: Sequence[FigureGroup], rounds: int) -> dict[str, list[float | None]]:
    """Return the FID between two sets of real texts, as a line; empty if it was not measured."""
    figures = [figure for group in groups if group.title == "fidelity real" for figure in group.figures]
    return {
        f"real against real{' (simulation only)' * figure.simulation_only}": [value] * rounds
        for figure in figures
        if figure.name == "fid" and (value := finite(figure.value)) is not None
    }


def _values(values: Sequence[object], name: str) -> dict[str, list[float | None]]:
    """Return each line's values by round. A mapping has a line for each key, any other figure one line."""
    inner = dict.fromkeys(key for value in values if isinstance(value, Mapping) for key in value)
    if not inner:
        return {name.replace("_", " "): [finite(value) for value in values]}
    return {
        str(key): [finite(value.get(key)) if isinstance(value, Mapping) else None for value in values] for key in inner
    }


def plot_texts(facts: Facts) -> list[plots.Dots | plots.HistogramPlot]:
    """Return the map of the texts and the histogram of their lengths."""
    words = facts.words
    lengths = words and plots.bars(
        "lengths",
        "Length of the texts",
        note="Texts by their number of words.",
        x_name="words",
        histogram=words,
    )
    return [plot for plot in (_map(facts), lengths) if plot]


def _map(facts: Facts) -> plots.Dots | None:
    sources = {"synthetic": facts.synthetic}
    note = (
        "Each text by the two directions in which the embeddings of the synthetic texts differ most (principal "
        "components). Near means similar."
    )
    if facts.simulated:
        sources["private (simulation only)"] = facts.simulated
        note += " Private records, drawn as lines, are on the same axes: simulation only, without noise."
    if any(_count(places) > MOST_POINTS for places in sources.values()):
        note += f" At most {MOST_POINTS:,} of each kind are drawn, at even distances in their order."
    thinned = {source: _thinned(places) for source, places in sources.items()}
    return plots.dots("map", "Map of the texts", note, thinned)


def _count(places: Places) -> int:
    return sum(map(len, places.values()))


def _thinned(places: Places) -> Places:
    share = min(1.0, MOST_POINTS / max(1, _count(places)))
    return {label: evenly(points, max(1, round(share * len(points)))) for label, points in places.items()}


def plot_votes(votes: Sequence[VoteHistogram]) -> list[plots.HistogramPlot]:
    """Return histograms of the votes of the last query, one for each direction."""
    return [
        plots.bars(
            f"votes-{number}",
            f"{answer.direction.capitalize()} votes, round {answer.round}",
            note="Candidates by their noised votes. Shaded: two scales of the noise to either side of 0, where most "
            "candidates without any vote fall.",
            x_name="noised votes",
            histogram=answer,
            shade=(-2 * answer.scale, 2 * answer.scale),
        )
        for number, answer in enumerate(answer for answer in votes if answer.round == votes[-1].round)
    ]

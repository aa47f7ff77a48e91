"""The plots of one run."""

from collections.abc import Mapping, Sequence

from server.documents.metrics import FigureGroup, finite
from server.documents.rounds import RoundReport
from server.evaluation.projection import evenly
from server.report import plots
from server.report.facts import Facts, Places
from server.report.votes import VoteHistogram

MOST_POINTS = 2000
"""Maximum number of points of one source on the map; more points would overlap."""

_FIGURES = {
    "weights": (
        "Weight of each model",
        "The share of a round's texts that each model was asked for. It follows the noised answers of earlier rounds.",
    ),
    "fid": (
        "Distance to real texts (FID)",
        "Fréchet distance between embeddings of synthetic texts and of test records, without noise. Lower is nearer.",
    ),
    "accuracy": (
        "Accuracy on real texts",
        "A small model, trained on the round's synthetic texts and tested on the test records, without noise.",
    ),
    "epsilon": ("ε spent so far", "Total cost of the answers up to this round, at the δ of the plan."),
    "self_similarity": (
        "Self-similarity",
        "Mean cosine between the embeddings of two synthetic texts. Lower is richer.",
    ),
    "signal_to_noise": (
        "Signal of the census",
        "Size of the sums without their noise, in units of the noise. Far below 1 the estimates say little.",
    ),
    "shares": ("Estimated share of each label", "From noised numbers of records, shrunk towards equal shares."),
    "shrinkage": (
        "Share of each measured offset that is kept",
        "How far a label's records lie from its texts is shrunk: 1 where noise is nothing, 0 where all is noise.",
    ),
    "reliability": (
        "Share of each model's texts with the requested label",
        "An estimate from the noised means of the labels' records: 1 where each text is as requested.",
    ),
    "likeness": (
        "Likeness to the records",
        "Mean probability of the texts to be records rather than first texts, by the noised mean of the records.",
    ),
    "relabelled": (
        "Texts to which another label is more probable",
        "By the label that was requested, and by the noised means of the labels' records.",
    ),
    "effective_sample": ("Effective sample", "Share of the texts that equal weights of the same precision would need."),
    "tau": ("Suppression threshold τ", "Texts more similar than this to a better one were dropped."),
}
"""Title and note of known figures of a round; any other number is plotted under its own name."""

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
    drawings, places = [], [report.round for report in rounds]
    for name in sorted(names, key=lambda name: list(_FIGURES).index(name) if name in _FIGURES else len(_FIGURES)):
        title, note = _FIGURES.get(name, (name.replace("_", " "), ""))
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

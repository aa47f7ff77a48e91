"""The plots of one run."""

from collections.abc import Mapping, Sequence
from typing import Any

from server.evaluation.projection import evenly
from server.report import plots
from server.report.facts import Gathered, Places
from server.report.reading import finite

MOST_POINTS = 2000
"""Most points of one source on the map; more points would overlap."""

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
    "relabelled": (
        "Texts to which another label is more probable",
        "By the label that was requested, and by the noised means of the labels' records.",
    ),
    "effective_sample": ("Effective sample", "Share of the texts that equal weights of the same precision would need."),
    "tau": ("Suppression threshold τ", "Texts more similar than this to a better one were dropped."),
}
"""Title and note of known figures of a round; any other number is plotted under its own name."""

_BOOKKEEPING = {"round", "candidates", "calls", "population", "seconds", "tokens", "paid", "queries", "notes"}
_BOOKKEEPING |= {"requested", "generated", "lost", "losses", "cleaned", "metadata", "fid_error"}


def of_rounds(rounds: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]] = ()) -> list[plots.Plot]:
    """One plot for each figure of the rounds, known ones first, with one line or one line for each model.

    Args:
        rounds: The lines of `rounds.jsonl`.
        groups: Groups of figures of the whole run; the distance of real texts from real ones is drawn beside FID.
    """
    names = [name for name in dict.fromkeys(name for entry in rounds for name in entry) if name not in _BOOKKEEPING]
    drawings, places = [], [entry["round"] for entry in rounds]
    for name in sorted(names, key=lambda name: list(_FIGURES).index(name) if name in _FIGURES else len(_FIGURES)):
        title, note = _FIGURES.get(name, (name.replace("_", " "), ""))
        values = _values(rounds, name) | (_reference(groups, len(rounds)) if name == "fid" else {})
        drawings.append(plots.lines(f"round-{name}", title, note=note, x_name="round", places=places, values=values))
    return [plot for plot in drawings if plot is not None]


def _reference(groups: Sequence[Mapping[str, Any]], rounds: int) -> dict[str, list[float | None]]:
    """FID of real texts from real ones, as a line; empty if it was not measured."""
    figures = [each for group in groups if group["title"] == "fidelity real" for each in group["figures"]]
    return {
        f"real against real{' (simulation only)' * each['private']}": [finite(each["value"])] * rounds
        for each in figures
        if each["name"] == "fid" and finite(each["value"]) is not None
    }


def _values(rounds: Sequence[Mapping[str, Any]], name: str) -> dict[str, list[float | None]]:
    """Values by round for each line; a figure that is never a mapping has one line."""
    values = [entry.get(name) for entry in rounds]
    inner = dict.fromkeys(key for value in values if isinstance(value, Mapping) for key in value)
    if not inner:
        return {name.replace("_", " "): [finite(value) for value in values]}
    return {
        str(key): [finite(value.get(key)) if isinstance(value, Mapping) else None for value in values] for key in inner
    }


def of_texts(gathered: Gathered) -> list[plots.Plot]:
    """The map of the texts and the histogram of their lengths."""
    words = gathered.facts["released"]["words"]
    lengths = words and plots.bars(
        "lengths",
        "Length of the texts",
        note="Texts by their number of words.",
        x_name="words",
        edges=words["edges"],
        counts=words["counts"],
        open_end=words["open_end"],
    )
    return [plot for plot in (_map(gathered), lengths) if plot]


def _map(gathered: Gathered) -> plots.Dots | None:
    sources = {"synthetic": gathered.synthetic}
    note = (
        "Each text by the two directions in which the embeddings of the synthetic texts differ most (principal "
        "components). Near means similar."
    )
    if gathered.simulated:
        sources["private (simulation only)"] = gathered.simulated
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


def of_votes(votes: Sequence[Mapping[str, Any]]) -> list[plots.Plot]:
    """Histograms of the votes of the last query, one for each direction."""
    last_query = [entry for entry in votes if entry["round"] == votes[-1]["round"]]
    return [
        plots.bars(
            f"votes-{number}",
            f"{entry['direction'].capitalize()} votes, round {entry['round']}",
            note="Candidates by their noised votes. Shaded: two scales of the noise to either side of 0, where most "
            "candidates without any vote fall.",
            x_name="noised votes",
            edges=entry["edges"],
            counts=entry["counts"],
            shade=(-2 * entry["scale"], 2 * entry["scale"]),
        )
        for number, entry in enumerate(last_query)
    ]

"""Distribution of the noised votes over the candidates, by query, from the answers in a run folder.

Only noised sums over parties are read. Nothing is shown for sums without noise, which are exact counts of private
records.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 24

_QUANTILES = (0.0, 0.1, 0.5, 0.9, 1.0)


def distributions(run: Path, privacy: Mapping[str, Any], rounds: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each answered query of votes, and each direction, its distribution over the candidates.

    Args:
        run: The run folder.
        privacy: The fields of `privacy.json`.
        rounds: The lines of `rounds.jsonl`.

    Returns:
        One mapping for each, with "query", "direction", "round", "candidates", "mechanism", "scale" (in votes),
        "spread" (standard deviation over the candidates), "noise" (that of the noise; None in a folder without it),
        "quantiles" (0, 0.1, 0.5, 0.9 and 1), "beyond_noise" (share of the candidates with more than two scales of
        votes), "edges" and "counts".
    """
    specs = {query["name"]: query for query in privacy["queries"] if query["kind"] == "votes" and query["summed"]}
    entries = []
    for entry in rounds:
        for query in entry["queries"]:
            spec, path = specs.get(query["name"]), run / "state" / f"answer-{query['index']:03}.npy"
            if spec is None or not query["scale"] > 0 or not path.is_file():
                continue
            values = np.load(path, allow_pickle=False) / spec["grid"]
            directions = ("nearest", "furthest") if spec.get("furthest") else ("nearest",)
            for direction, votes in zip(directions, np.split(values, len(directions)), strict=True):
                about = {"query": query["name"], "direction": direction, "round": entry["round"]}
                entries.append(about | _distribution(votes, query))
    return entries


def _distribution(votes: NDArray[np.float64], query: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "candidates": len(votes),
        "mechanism": query["mechanism"],
        "scale": query["scale"],
        "spread": float(votes.std()),
        "noise": query.get("noise"),
        "quantiles": np.quantile(votes, _QUANTILES).round(3).tolist(),
        "beyond_noise": round(float((votes > 2 * query["scale"]).mean()), 4),
        **histogram(votes.tolist()),
    }


def histogram(values: Sequence[float], *, whole: bool = False) -> dict[str, Any]:
    """Count at least one value in a few bins of equal width.

    Args:
        values: The values to count.
        whole: Whether the values are integers. The edges of the bins then are integers too and start at 0, and the last
            bin is open if up to a hundredth of the values lies far beyond the rest.

    Returns:
        "edges" (bins + 1), "counts" (bins) and "open_end".
    """
    sample = np.asarray(values, dtype=np.float64)
    low, high = sample.min(), sample.max()
    if whole:
        low, high = 0.0, min(high, 2 * np.quantile(sample, 0.99))
    width = _nice((high - low) / BINS, whole=whole)
    first, last = int(np.floor(low / width)), int(np.floor(high / width)) + 1
    edges = [float(f"{at * width:.9g}") for at in range(first, last + 1)]
    counts, _ = np.histogram(np.clip(sample, edges[0], edges[-1]), edges)
    return {"edges": edges, "counts": counts.tolist(), "open_end": bool(sample.max() > edges[-1])}


def _nice(width: float, *, whole: bool) -> float:
    """The first of 1, 2, 5, 10, 20, ... (or tenths of these) that is not below `width`."""
    if width <= 0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(width))
    nice = float(next(unit * part for part in (1, 2, 5, 10) if unit * part >= width * (1 - 1e-9)))
    return max(1.0, nice) if whole else nice

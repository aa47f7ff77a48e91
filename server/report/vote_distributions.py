"""Distribution of the noised votes over the candidates, for each query, from the answers in a run folder.

Only noised sums over parties are read. Nothing is shown for sums without noise, which are exact counts of private
records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from server.documents.files import Document
from server.documents.privacy import Privacy
from server.documents.rounds import AskedQuery, RoundReport

BINS = 24

_QUANTILES = (0.0, 0.1, 0.5, 0.9, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(Document):
    """Values in bins of equal width.

    Attributes:
        edges: (bins + 1,) ends of the bins, ascending.
        counts: (bins,) values in each bin.
        open_end: Whether the last bin contains all larger values.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    open_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes(Document):
    """Noised votes over the candidates of one answer, in one direction.

    Attributes:
        query: Name of the query.
        direction: Direction of the votes: "nearest" or "furthest".
        round: The round.
        candidates: Number of candidates.
        mechanism: The mechanism that adds noise to the votes.
        scale: Scale of the noise, in votes.
        spread: Standard deviation of the votes over the candidates.
        noise: Standard deviation of the noise; None in a folder that does not state it.
        quantiles: Minimum, 10 % quantile, median, 90 % quantile and maximum.
        beyond_noise: Fraction of the candidates with more votes than twice `scale`.
        edges: (bins + 1,) edges of the bins, as in `Histogram`.
        counts: (bins,) number of candidates in each bin.
        open_end: Always False: the last bin has an upper edge.
    """

    query: str
    direction: str
    round: int
    candidates: int
    mechanism: str
    scale: float
    spread: float
    noise: float | None
    quantiles: tuple[float, ...]
    beyond_noise: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    open_end: bool


def distributions(run: Path, privacy: Privacy, rounds: Sequence[RoundReport]) -> Iterator[Votes]:
    """Yield the distribution of votes over the candidates, for each answered query and each of its directions.

    Answers that are missing or cannot be read are left out.
    """
    planned = {query.name: query for query in privacy.queries if query.summed}
    for report in rounds:
        for asked in report.queries:
            query = planned.get(asked.name)
            if query is None or not query.directions or not asked.scale > 0:
                continue
            try:
                values = np.load(run / "state" / f"answer-{asked.index:03}.npy", allow_pickle=False) / query.grid
                parts = np.split(values, len(query.directions))
            except (OSError, ValueError):
                continue
            for direction, votes in zip(query.directions, parts, strict=True):
                yield _distribution(votes, asked, direction, report.round)


def _distribution(votes: NDArray[np.float64], asked: AskedQuery, direction: str, round_number: int) -> Votes:
    histogram = histogram_of(votes.tolist())
    return Votes(
        query=asked.name,
        direction=direction,
        round=round_number,
        candidates=len(votes),
        mechanism=asked.mechanism,
        scale=asked.scale,
        spread=float(votes.std()),
        noise=asked.noise,
        quantiles=tuple(np.quantile(votes, _QUANTILES).round(3).tolist()),
        beyond_noise=round(float((votes > 2 * asked.scale).mean()), 4),
        edges=histogram.edges,
        counts=histogram.counts,
        open_end=histogram.open_end,
    )


def histogram_of(values: Sequence[float], *, whole: bool = False) -> Histogram:
    """Count at least one value in a few bins of equal width.

    Args:
        values: The values to count.
        whole: Whether the values are integers. If so, the edges of the bins are integers too and start at 0, and the
            last bin is open if up to a hundredth of the values lies far beyond the rest.
    """
    sample = np.asarray(values, dtype=np.float64)
    low, high = sample.min(), sample.max()
    if whole:
        low, high = 0.0, min(high, 2 * np.quantile(sample, 0.99))
    width = _nice((high - low) / BINS, whole=whole)
    first, last = int(np.floor(low / width)), int(np.floor(high / width)) + 1
    edges = [float(f"{at * width:.9g}") for at in range(first, last + 1)]
    counts, _ = np.histogram(np.clip(sample, edges[0], edges[-1]), edges)
    return Histogram(edges=tuple(edges), counts=tuple(counts.tolist()), open_end=bool(sample.max() > edges[-1]))


def _nice(width: float, *, whole: bool) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not below `width`; at least 1 for `whole`."""
    if width <= 0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(width))
    nice = float(next(unit * part for part in (1, 2, 5, 10) if unit * part >= width * (1 - 1e-9)))
    return max(1.0, nice) if whole else nice

"""Distribution of the noised votes over the candidates, for each query, from the answers in a run folder.

Only noised sums over parties are read. Nothing is shown for sums without noise, which are exact counts of private
records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.report.plots import Histogram, count_bins

_QUANTILES = (0.0, 0.1, 0.5, 0.9, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteHistogram(Histogram):
    """Noised votes over the candidates of one answer, in one direction: a histogram of the candidates by their votes.

    Attributes:
        query: Name of the query.
        direction: Direction of the votes: "nearest" or "furthest".
        round: The round.
        candidates: Number of candidates.
        mechanism: The mechanism that adds noise to the votes.
        scale: Scale of the noise, in votes.
        spread: Standard deviation of the votes over the candidates.
        noise: Standard deviation of the noise; None in a folder that does not state it.
        quantiles: Minimum, 10% quantile, median, 90% quantile and maximum.
        beyond_noise: Fraction of the candidates with more votes than twice `scale`.
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


def read_votes(run: Path, privacy: Privacy, rounds: Sequence[RoundReport]) -> Iterator[VoteHistogram]:
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
                yield VoteHistogram(
                    query=asked.name,
                    direction=direction,
                    round=report.round,
                    candidates=len(votes),
                    mechanism=asked.mechanism,
                    scale=asked.scale,
                    spread=float(votes.std()),
                    noise=asked.noise,
                    quantiles=tuple(np.quantile(votes, _QUANTILES).round(3).tolist()),
                    beyond_noise=round(float((votes > 2 * asked.scale).mean()), 4),
                    **asdict(count_bins(votes.tolist())),
                )

"""A party's choices among public candidates by noisy max: the seeds of texts that are written to resemble records."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from client.contributions import exact_products
from client.records import EmbeddedRecords
from common.errors import ProtocolError
from common.privacy import mechanisms
from common.privacy.keystream import Keystream
from common.queries import seed_choice

_CHUNK_BYTES = 64 << 20


def choose(
    query: seed_choice.SeedChoice, records: EmbeddedRecords, scale: float, key: bytes, *, replacement: bool
) -> NDArray[np.int64]:
    """The candidates that were chosen, one for each of the plan's number of choices.

    Args:
        query: The candidates.
        records: This party's records, of each owner at most `max_records`.
        scale: b, for utilities in [0, 1]: one choice costs `query.spec.sensitivity.l1` / b.
        key: 32 secret bytes, of this call alone.
        replacement: The exponential mechanism; else permute-and-flip.

    Returns:
        (choices,) int64 positions, sorted.

    Raises:
        ProtocolError: If the candidates' vectors have another dimension than the records'.
    """
    stream = Keystream(key)
    chosen = [
        mechanisms.noisy_max(steps, scale * mechanisms.UNIT, stream.read(32), replacement=replacement)
        for steps in utilities(query, records, stream.read(32))
    ]
    return np.sort(np.array(chosen, dtype=np.int64))


def utilities(query: seed_choice.SeedChoice, records: EmbeddedRecords, key: bytes) -> Iterator[NDArray[np.int64]]:
    """Utilities of all candidates for each of exactly `query.spec.choices` choosers, as `mechanisms.noisy_max` takes.

    With more records than choices those with the lowest keyed digests choose: a uniform draw of which one record more
    replaces at most one. With fewer, choosers to whom all candidates are equal fill up the number.

    Yields:
        (candidates,) int64, in steps of 1 / mechanisms.UNIT, as the specification defines them.

    Raises:
        ProtocolError: If the candidates' vectors have another dimension than the records'.
    """
    candidates, dimensions = query.vectors.shape
    if dimensions != records.vectors.shape[1]:
        raise ProtocolError(
            "dimension of the candidates' vectors", expected=records.vectors.shape[1], got=dimensions,
            do="Coordinator and parties must use one encoder.",
        )  # fmt: skip
    drawn = np.argsort(records.digests(key), kind="stable")[: query.spec.choices]
    chunk = max(1, _CHUNK_BYTES // (8 * candidates))
    for start in range(0, len(drawn), chunk):
        cosines = exact_products.cosines(records.vectors[drawn[start : start + chunk]], query.vectors)
        for row, label in zip(cosines, records.labels[drawn[start : start + chunk]], strict=True):
            yield _of_record(row, query.labels == label, query.spec.nearest)
    for _ in range(query.spec.choices - len(drawn)):
        yield np.full(candidates, mechanisms.UNIT // 2, dtype=np.int64)


def _of_record(cosines: NDArray[np.floating], own: NDArray[np.bool_], nearest: int) -> NDArray[np.int64]:
    """One record's utilities; `own` are candidates of its label."""
    if not nearest:
        return np.where(own, mechanisms.on_grid((1 + cosines) / 2), 0)
    steps = np.zeros(len(cosines), dtype=np.int64)
    # Ties go to the lower index, so that exactly `nearest` have utility 1, whatever the cosines.
    steps[np.lexsort((-cosines, ~own))[:nearest]] = mechanisms.UNIT
    return steps

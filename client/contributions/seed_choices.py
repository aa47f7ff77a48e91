"""A party's choices by noisy max among public candidates, which become seeds of texts that are to resemble records."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from client.contributions import exact_products
from client.records import EmbeddedRecords
from common.privacy import mechanisms
from common.privacy.keystream import Keystream
from common.queries import seed_choice

_CHUNK_BYTES = 64 << 20


def choose_seeds(
    query: seed_choice.SeedChoice, records: EmbeddedRecords, scale: float, key: bytes, *, replacement: bool
) -> NDArray[np.int64]:
    """Return the indices of the planned number of candidates, chosen by noisy max.

    Args:
        query: The candidates.
        records: This party's records, at most `max_records` of each owner.
        scale: Scale of the noise, for utilities in [0, 1]: one choice costs `query.spec.sensitivity.l1` / scale.
        key: 32 secret bytes, for this call alone.
        replacement: Whether to use the exponential mechanism; if not, use permute-and-flip.

    Returns:
        (choices,) int64, the sorted indices of the chosen candidates.
    """
    stream = Keystream(key)
    choices = [
        mechanisms.noisy_max(steps, scale * mechanisms.UNIT, stream.read(32), replacement=replacement)
        for steps in utilities(query, records, stream.read(32))
    ]
    return np.sort(np.array(choices, dtype=np.int64))


def utilities(query: seed_choice.SeedChoice, records: EmbeddedRecords, key: bytes) -> Iterator[NDArray[np.int64]]:
    """Yield the utilities of all candidates for each of `query.spec.choices` choosers, for `mechanisms.noisy_max`.

    If there are more records than choices, the records with the lowest keyed digests are the choosers: a uniform
    sample, in which an additional record replaces at most one other record. If there are fewer, the remaining choosers
    have equal utilities for all candidates.

    Yields:
        (candidates,) int64, in steps of 1 / mechanisms.UNIT, as the specification defines them.
    """
    candidates = len(query.vectors)
    sample = records.drawn(query.spec.choices, key)
    chunk = max(1, _CHUNK_BYTES // (8 * candidates))
    for start in range(0, len(sample), chunk):
        cosines = exact_products.cosines(records.vectors[sample[start : start + chunk]], query.vectors)
        for row, label in zip(cosines, records.labels[sample[start : start + chunk]], strict=True):
            yield _of_record(row, query.labels == label, query.spec.nearest)
    for _ in range(query.spec.choices - len(sample)):
        yield np.full(candidates, mechanisms.UNIT // 2, dtype=np.int64)


def _of_record(cosines: NDArray[np.floating], same_label: NDArray[np.bool_], nearest: int) -> NDArray[np.int64]:
    """Return one record's utilities, (candidates,) int64; `same_label` marks the candidates with the record's label."""
    if not nearest:
        return np.where(same_label, mechanisms.round_to_grid((1 + cosines) / 2), 0)
    steps = np.zeros(len(cosines), dtype=np.int64)
    # Ties go to the lower index, so that for any cosines exactly `nearest` have utility 1.
    steps[np.lexsort((-cosines, ~same_label))[:nearest]] = mechanisms.UNIT
    return steps

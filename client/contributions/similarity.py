"""A party's contribution to the mean cosine of pairs of its records, before noise."""

import numpy as np
from numpy.typing import NDArray

from client.contributions import exact_products
from client.records import EmbeddedRecords
from common.queries import closed_set, self_similarity


def contribution(query: self_similarity.SelfSimilarity, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Sum of the pairs' cosines, each rounded toward zero to the grid, and the number of pairs, in grid units.

    The key that assigns records to buckets is the query's digest, which is public: a record changes only one bucket
    for any key, and a key known beforehand only allows somebody to write records that share a bucket.

    Returns:
        (2,) int64.
    """
    spec = query.spec
    buckets = (records.digests(closed_set.digest(query)) % np.uint64(spec.buckets)).astype(np.int64)
    in_pair = np.bincount(buckets, minlength=spec.buckets)[buckets] == 2
    members = np.flatnonzero(in_pair)
    pairs = members[np.argsort(buckets[members], kind="stable")].reshape(-1, 2)
    left, right = (exact_products.of_vectors(records.vectors[side]) for side in pairs.T)
    cosines = np.einsum("pd,pd->p", left, right) * exact_products.STEP**2
    rounded = np.trunc(spec.grid * cosines).clip(-spec.largest, spec.largest)
    return np.array([rounded.sum(), spec.grid * len(pairs)], dtype=np.int64)

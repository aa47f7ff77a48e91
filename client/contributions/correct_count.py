"""A party's contribution to the count of records that a released classifier is right on, before noise."""

import numpy as np
from numpy.typing import NDArray

from client.contributions import exact_products
from client.records import EmbeddedRecords
from common.errors import ProtocolError
from common.queries import correct_count


def contribution(query: correct_count.CorrectCount, records: EmbeddedRecords) -> NDArray[np.int64]:
    """The number of records that the classifier gets right, and the number of records."""
    if query.weights.shape[1] != records.vectors.shape[1]:
        raise ProtocolError(
            "dimension of the classifier", expected=records.vectors.shape[1], got=query.weights.shape[1],
            do="Coordinator and parties must use one encoder.",
        )  # fmt: skip
    rows, units = exact_products.of_rows(query.weights)
    scores = exact_products.of_vectors(records.vectors) @ rows.T * units + query.intercepts
    right = np.count_nonzero(scores.argmax(axis=1) == records.labels)
    return np.array([right, len(records.labels)], dtype=np.int64)

"""Personal information in texts, detected by patterns."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError
from common.redaction import entities

PERSONAL = (
    "Texts of 1,000 with at least one piece that looks like personal information, by patterns (presidio-analyzer's and "
    "our own); of at most 300 texts drawn with the experiment seed."
)
"""Text that defines the rate in reports."""


def personal_information(texts: Sequence[str], language: str = "english") -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Return which texts contain apparent personal information, and how many texts contain each type of it.

    Detection uses the patterns of `common/redaction.py`: a match does not prove a leak, and the absence of matches does
    not prove that there is no leak (RPSG, appendix F).

    Args:
        texts: The texts.
        language: Language of the texts.

    Returns:
        (texts,) bool, and the number of texts for each type found, ordered by the type's name.

    Raises:
        DataError: There are no texts.
    """
    if not texts:
        raise DataError("texts to search", expected="at least one", got="none")
    kinds = [set(entities(text, language)) for text in texts]
    counts = Counter(kind for text_kinds in kinds for kind in text_kinds)
    return np.array([bool(text_kinds) for text_kinds in kinds]), dict(sorted(counts.items()))

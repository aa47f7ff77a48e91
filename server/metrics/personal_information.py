"""Personal information that shows in texts, found by patterns."""

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
"""What their rate means, for reports."""


def personal_information(texts: Sequence[str]) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Which texts hold anything that looks like personal information, and how many hold each kind.

    By the patterns of `common/redaction.py`: what is found is no proof of a leak, and what is missed none of its
    absence (RPSG, appendix F).

    Returns:
        (texts,) bool, and the number of texts for each kind found, in the order of its name.

    Raises:
        DataError: There is no text.
    """
    if not texts:
        raise DataError("texts to search", expected="at least one", got="none")
    kinds = [set(entities(text)) for text in texts]
    return np.array([bool(each) for each in kinds]), dict(
        sorted(Counter(kind for each in kinds for kind in each).items())
    )

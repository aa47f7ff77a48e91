"""Arrays in documents: little-endian float32 as base64, in row-major order."""

import base64

import numpy as np
from numpy.typing import NDArray


def pack_floats(array: NDArray[np.floating]) -> str:
    """Return an array's entries as base64 of little-endian float32, without the shape."""
    return base64.b64encode(array.astype("<f4").tobytes()).decode()


def unpack_floats(text: str, rows: int) -> NDArray[np.float32]:
    """Return the array that `pack_floats` encoded, with `rows` rows.

    Raises:
        ValueError: `text` is not base64, or its length does not match `rows` rows.
    """
    flat = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)
    return flat.reshape(rows, -1)

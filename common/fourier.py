"""Random Fourier features (Rahimi and Recht 2007; Wagner et al. 2023), the same for parties and coordinator.

With frequencies drawn from a standard normal distribution, divided by the bandwidth h, and phases uniform on [0, 2 pi),
features of two points average to the Gaussian kernel of the two:

    single:  E f_i(x) f_i(y) = exp(-|x - y|^2 / h^2),     paired:  E 2 f_i(x) f_i(y), likewise.

So a sketch s, the sum of B times the features of n points, gives their mean kernel with y as the mean over i of
s_i f_i(y) / (n B), twice that for paired features.
"""

import math

import numpy as np
from numpy.typing import NDArray

_ROOT = math.sqrt(2)


def features(products: NDArray[np.float64], phases: NDArray[np.float32]) -> NDArray[np.float64]:
    """Features of points, given their inner products with the frequencies.

    Args:
        products: (n, rows) w_i . x.
        phases: (rows,) for single features; (0,) for paired ones.

    Returns:
        (n, rows) sqrt(2) cos(sqrt(2) w_i . x + b_i); or (n, 2 * rows), cosines, then sines, of all sqrt(2) w_i . x.
    """
    angles = _ROOT * products
    if len(phases):
        single: NDArray[np.float64] = _ROOT * np.cos(angles + phases)
        return single
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def noise_error(mechanism: str, scale: float, rows: float) -> float:
    """Root mean square error that noise gives to a density by a sketch, times the number of its points' records.

    The mean over the rows of noise times feature has the variance of the noise over the rows, as the squared features
    of a point average to 1 for each row: sqrt(2) cos, or a cosine and a sine.

    Args:
        mechanism: "laplace" or "gaussian".
        scale: b or sigma, in features.
        rows: Frequencies: I for single features, I / 2 for paired ones.
    """
    return scale * (_ROOT if mechanism == "laplace" else 1.0) / math.sqrt(rows)

"""Random Fourier features (Rahimi and Recht 2007; Wagner et al. 2023), the same for parties and coordinator.

With frequencies drawn from a standard normal distribution, divided by the bandwidth h, and phases uniform on [0, 2 pi),
features of two points average to the Gaussian kernel of the two:

    single:  E f_i(x) f_i(y) = exp(-|x - y|^2 / h^2),     paired:  E 2 f_i(x) f_i(y), likewise.

So a sketch s, the sum of B times the features of n points, gives their mean kernel with y as the mean over i of
s_i f_i(y) / (n B), twice that for paired features.
"""

import math


def noise_error(mechanism: str, scale: float, rows: float) -> float:
    """Root mean square error that noise gives to a density by a sketch, times the number of its points' records.

    The mean over the rows of noise times feature has the variance of the noise over the rows, as the squared features
    of a point average to 1 for each row: sqrt(2) cos, or a cosine and a sine.

    Args:
        mechanism: "laplace" or "gaussian".
        scale: b or sigma, in features.
        rows: Frequencies: I for single features, I / 2 for paired ones.
    """
    return scale * (math.sqrt(2) if mechanism == "laplace" else 1.0) / math.sqrt(rows)

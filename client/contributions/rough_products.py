"""Similarities of records and candidates, roughly, with a proved bound on their error: votes are screened by them.

All are for vectors of multiples of 2^-24 with norms up to 1.001, so that a processor which replaces the smallest
numbers ("denormals") by zero never meets one. Which one is taken moves no vote:

- Where nothing better is found: one float32 product, on the graphics processor if torch finds one (we had none to run
  that on). In any order of summation, with or without fused multiplication, its error is at most
  dim * 2^-24 / (1 - dim * 2^-24) times the product of the norms (Higham 2002, section 3.1). `check_precision` refuses
  products with fewer bits.
- Where the processor multiplies tiles of 8-bit integers (AMX), and a trial shows that it adds them in 32 bits: products
  of digits, in less than half of the time.

Digits: a record a times its scale s is h + l / 254 + r, with h the nearest integers, l the nearest integers to 254
times the rest, both within [-127, 127], and what then remains in r; a candidate b times the candidates' scale t is
h' + l' / 254 + r' likewise. What is calculated is 254 hh' + hl' + lh'. Divided by 254 s t, it differs from ab by
(ll' / 254^2 + (sa - r) r' + r (tb)) / (s t), hence by Cauchy and Schwarz by at most

    |l| / (254 s) * |l'| / (254 t) + |a - r/s| |r'| / t + |b| |r| / s.

The norms of l, l', r and r' are calculated. What is calculated of an entry of 254 r is off by less than 0.002, which
exceeds 254 times 127 * 2^-24, the rounding of the scaled entry, and 127 * 2^-24, that of 254 times its rest; the two
differences from the nearest integers are exact.

The integers hh', hl' and lh' are exact: 2^14 * 127^2 < 2^31, for up to 2^14 dimensions. They become float32, the first
is multiplied by 254, and they are added: at most four roundings of each, together less than 4.01 * 2^-24 of
254 |h| |h'| + |h| |l'| + |l| |h'|, hence after the division of

    (|h| / s + |l| / (254 s)) (|h'| / t + |l'| / (254 t)),

where |h| / s < 1.001 + |l| / (254 s) + |r| / s, and |r| / s < 0.003, since s > 126 and |r| < 0.00198 * 2^7.
"""

import os
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from client.session import RefusalError
from common.messages import Reason

_DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
_FULL = {
    **dict.fromkeys(("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"), ("", "STRICT")),
    "NVIDIA_TF32_OVERRIDE": ("", "0"),
}
"""Variables by which matrix libraries multiply float32 numbers with fewer bits, and the values by which they do not."""
_BASE, _DIGIT, _SMALLEST = 254, 127, 2.0**-24
_BYTES, _ROWS = 15 << 20, 1024
_DIGIT_BYTES, _DIGIT_ROWS, _PART = 7 << 20, 512, 64
_FEW = 2000
"""Up to so many records, or candidates, digits cost more than they save."""
_COARSE = 2.0**-10
"""With a larger error, as of vectors with a few large entries, digits would leave too many close calls."""
_MOST_DIMENSIONS = 2**14


@dataclass(frozen=True, kw_only=True)
class Rough:
    """Rough similarities of some records and all candidates: `values` times `unit`, each off by less than `error`."""

    values: torch.Tensor
    """(records, columns) float32; columns after the candidates' are free to be filled."""
    unit: NDArray[np.float64]
    """(records, 1)."""
    error: NDArray[np.float64]
    """(records, 1)."""


def check_precision() -> None:
    """Refuse reduced precision, such as TF32 or bfloat16, for which the error of float32 products is no bound.

    Raises:
        RefusalError: SETTINGS.
    """
    precisions = {torch.backends.mkldnn.matmul.fp32_precision, torch.backends.cuda.matmul.fp32_precision}  # type: ignore[attr-defined]
    modes = [name for name, full in _FULL.items() if os.environ.get(name, "").upper() not in full]
    if modes or precisions - {"none", "ieee"}:
        what = "products of float32 numbers: unset these variables, or torch's lower precision"
        got = ", ".join(modes or sorted(precisions - {"none", "ieee"}))
        raise RefusalError(Reason.SETTINGS, what, expected="full precision", got=got)


def rough_products(candidates: torch.Tensor, records: int, *, width: int) -> "FloatProducts | DigitProducts":
    """The fastest way here to multiply so many records by `candidates`, at most `rows` of them at a time.

    Args:
        candidates: (candidates, dim) float32 multiples of 2^-24, norms up to 1.001.
        records: How many records there are.
        width: Columns of the result, at least one for each candidate.
    """
    many = min(records, len(candidates)) > _FEW
    if _DEVICE.type == "cpu" and many and candidates.shape[1] <= _MOST_DIMENSIONS and multiplies_digits():
        # Whole parts, since the processor multiplies whole tiles: 5 % faster than a few rows more or less.
        parts = max(1, _DIGIT_BYTES // (4 * width * _PART))
        products = DigitProducts(candidates, min(records, _DIGIT_ROWS, parts * _PART), width)
        if products.error < _COARSE:
            return products
    return FloatProducts(candidates, min(records, _ROWS, max(1, _BYTES // (4 * width))), width)


@cache
def multiplies_digits() -> bool:
    """Whether this processor multiplies tiles of 8-bit integers, and the matrix library uses that here."""
    return bool(torch.cpu.get_capabilities().get("amx_int8", False)) and adds_exactly()


def adds_exactly() -> bool:
    """Whether products of digits are added in 32 bits.

    Kernels for older processors add pairs of them in 16 bits and saturate. The matrix library may be told to take these
    on any processor (ONEDNN_MAX_CPU_ISA), and torch may come without it.
    """
    digits = torch.full((2, 64, _MOST_DIMENSIONS), _DIGIT, dtype=torch.int8)
    expected = (_BASE + 2) * _MOST_DIMENSIONS * _DIGIT**2  # 127² · 2^22: exact in float32
    try:
        sums = {sign: PackedDigits(sign * digits, rows=64)(digits) for sign in (1, -1)}
    except (AttributeError, RuntimeError):
        return False
    return all(bool((found == sign * expected).all()) for sign, found in sums.items())


class PackedDigits:
    """Digits of candidates, in the order of the matrix library's own operators."""

    def __init__(self, digits: torch.Tensor, *, rows: int) -> None:
        """Of (2, candidates, dim) int8 `digits`, h' and l', to be multiplied by up to `rows` records at a time."""
        pack = torch.ops.onednn.qlinear_prepack
        self._high, self._low = (pack(each, [rows, digits.shape[2]]) for each in digits)
        self._scale = torch.ones(1), torch.zeros(1, dtype=torch.int32)

    def __call__(self, digits: torch.Tensor) -> torch.Tensor:
        """254 hh' + hl' + lh', (records, candidates) float32, of (2, records, dim) int8 `digits`, h and l."""
        (high, low), multiply = digits, torch.ops.onednn.qlinear_pointwise
        result = (1.0, 0, torch.float32)
        sums: torch.Tensor = multiply(high, float(_BASE), 0, self._high, *self._scale, None, *result, "none", [], "")
        for left, right in ((high, self._low), (low, self._high)):
            # Added to `sums` in place.
            middle = (*self._scale, sums, None, *result, 1.0, 0)
            multiply.binary(left, 1.0, 0, right, *middle, "sum", 1.0, "none", [], "")
        return sums


class FloatProducts:
    """Float32 products, on the graphics processor if there is one."""

    def __init__(self, candidates: torch.Tensor, rows: int, width: int) -> None:
        """For `candidates` and up to `rows` records at a time."""
        self.rows = rows
        self.error = 1.01 * candidates.shape[1] * 2.0**-24
        self._candidates = candidates.to(_DEVICE)
        self._values = torch.empty(rows, width, device=_DEVICE)

    def __call__(self, records: torch.Tensor) -> Rough:
        """Similarities of (n, dim) float32 records; they are overwritten by the next call."""
        values = self._values[: len(records)]
        torch.mm(records.to(_DEVICE), self._candidates.T, out=values[:, : len(self._candidates)])
        ones = np.ones((len(records), 1))
        return Rough(values=values, unit=ones, error=self.error * ones)


class DigitProducts:
    """Products of 8-bit digits, whose sums are exact in 32 bits and are then put together in float32."""

    def __init__(self, candidates: torch.Tensor, rows: int, width: int) -> None:
        """For `candidates` and up to `rows` records at a time."""
        self.rows = rows
        dim = candidates.shape[1]
        # Memory that is used again: to get it anew from the system takes longer than the calculations in it.
        self._parts = torch.empty(2, _PART, dim)
        self._records = torch.empty(2, rows, dim, dtype=torch.int8)
        self._scale = _scale(candidates).min()
        digits = torch.zeros(2, width, dim, dtype=torch.int8)
        coarse, fine = self._digits(candidates, self._scale.expand(len(candidates), 1), digits[:, : len(candidates)])
        self._coarse, self._fine = coarse.max(), fine.max()
        self._products = PackedDigits(digits, rows=rows)
        # The bound above without roundings of the sums; 1.01 covers the norms, and roundings in it.
        self.error = 1.01 * (self._coarse**2 + 2 * self._fine)

    def __call__(self, records: torch.Tensor) -> Rough:
        """Similarities of (n, dim) float32 records."""
        scale = _scale(records)
        digits = self._records[:, : len(records)]
        coarse, fine = self._digits(records, scale, digits)
        # 8 * 2^-24 exceeds 4.01 * 2^-24 times 1.004^2.
        rounded = 2.0**-21 * (1 + 2 * coarse) * (1 + 2 * self._coarse)
        unit = 1 / (_BASE * float(self._scale) * scale.numpy().astype(np.float64))
        error = 1.01 * (coarse * self._coarse + fine + self._fine) + rounded
        return Rough(values=self._products(digits), unit=unit, error=error)

    def _digits(
        self, vectors: torch.Tensor, scale: torch.Tensor, digits: torch.Tensor
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Fill in h and l; return (n, 1) |l| / (254 s), and the bounds on |r| / s."""
        norms = torch.empty(2, len(vectors), 1)
        for first in range(0, len(vectors), _PART):
            some = slice(first, first + _PART)
            rest, nearest = self._parts[:, : len(vectors[some])]
            torch.mul(vectors[some], scale[some], out=rest)
            torch.round(rest, out=nearest)
            digits[0, some].copy_(nearest)
            torch.round(rest.sub_(nearest).mul_(_BASE), out=nearest)
            digits[1, some].copy_(nearest)
            torch.linalg.vector_norm(nearest, dim=1, keepdim=True, out=norms[0, some])
            torch.linalg.vector_norm(rest.sub_(nearest), dim=1, keepdim=True, out=norms[1, some])
        units = 1 / (_BASE * scale.numpy().astype(np.float64))
        coarse, fine = norms.numpy()
        return coarse * units, (fine + 0.002 * vectors.shape[1] ** 0.5) * units


def _scale(vectors: torch.Tensor) -> torch.Tensor:
    """(n, 1) float32: by which each vector fills the first digit."""
    largest = torch.maximum(vectors.amax(dim=1), -vectors.amin(dim=1))
    return _DIGIT / largest.clamp_(min=_SMALLEST)[:, None]

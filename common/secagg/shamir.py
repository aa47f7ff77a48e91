"""Shamir's threshold sharing of 32-byte secrets, vectorised (Shamir 1979).

A secret and a checksum, 8 bytes of SHA-256 over the secret and a label that both sides know, are cut into 16 limbs of
20 bits; each limb is the constant term of a polynomial of degree threshold - 1 over the integers modulo p = 1048583,
the first prime above 2^20. Products of two residues are below 2^40.1, so a float64 matrix product of up to 8191 terms
is exact in any order of its sums, and BLAS can compute it.

The checksum is shared with the secret and so hidden with it: fewer shares than the threshold are uniformly distributed,
whatever the secret. Because of the checksum, combining shares returns the secret that was split under this label or
raises an error, except with probability 2^-64. Without the checksum, a wrong share of a self-mask seed could turn into
a wrong sum that nobody would notice.

Party i receives the polynomials' values at its own point, which is never 0; a share is 16 little-endian 32-bit words.
"""

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from common.errors import InternalError, ProtocolError, ShareError
from common.secagg.masks import keystream

PRIME = 1048583
SECRET_BYTES = 32
SHARE_BYTES = 64
PAIR_BYTES = 2 * SHARE_BYTES
"""Size, in bytes, of a share of the self-mask seed and a share of the mask key, for one round."""

_LIMBS = 16
_LIMB_BITS = 20
_CHECK_BYTES = 8
_MOST = (2**53 - 1) // (PRIME - 1) ** 2
"""Maximum number of terms of a product modulo p that float64 sums exactly."""

Name = TypeVar("Name", bound=Hashable)


def split_many(
    secrets: Sequence[bytes], threshold: int, points: Sequence[int], entropy: bytes, *, label: bytes
) -> list[dict[int, bytes]]:
    """Split several secrets among the same points.

    Args:
        secrets: The secrets, 32 bytes each.
        threshold: Number of shares needed to recover a secret.
        points: At least `threshold` distinct points in [1, p - 1].
        entropy: 32 fresh bytes that are used for nothing else.
        label: Context of the shares, such as the round; the same label is needed to combine them.

    Returns:
        The shares of each secret, keyed by point.

    Raises:
        ProtocolError: If threshold or points are out of range.
    """
    _check_points(points, threshold)
    if len(set(points)) != len(points):
        raise ProtocolError("points of shares", expected="distinct", got="a duplicate")
    # One column for each limb of each secret; row k holds the coefficients of x^k.
    constants = np.array([limb for secret in secrets for limb in _to_limbs(secret, label)], dtype=np.float64)
    random_rows = _uniform(entropy, (threshold - 1) * constants.size).reshape(threshold - 1, constants.size)
    coefficients = np.vstack((constants, random_rows))
    values = _product(_powers(points, threshold), coefficients).reshape(len(points), len(secrets), _LIMBS)
    return [
        {point: values[row, column].tobytes() for row, point in enumerate(points)} for column in range(len(secrets))
    ]


def combine_many(shares: Mapping[Name, Mapping[int, bytes]], threshold: int, *, label: bytes) -> dict[Name, bytes]:
    """Recover several secrets from shares at the same points, with one Lagrange basis.

    Args:
        shares: Shares of each secret, keyed by the secret's name and then by point. The `threshold` lowest points are
            used.
        threshold: Threshold with which the secrets were split.
        label: Label with which the secrets were split.

    Returns:
        The secrets, 32 bytes each, keyed by name.

    Raises:
        ProtocolError: If there are too few shares, a point is out of range, a share is malformed, the secrets' points
            differ, or the shares are inconsistent. The message names the secret.
    """
    if not shares:
        return {}
    points = sorted(next(iter(shares.values())))
    _check_points(points, threshold)
    for name, by_point in shares.items():
        if sorted(by_point) != points:
            raise ShareError("points of shares", expected="the same for every secret", got="others", where=name)
        check_shares(by_point.values(), where=name)
    used = points[:threshold]
    joined = b"".join(by_point[point] for point in used for by_point in shares.values())
    values = np.frombuffer(joined, dtype="<u4").reshape(threshold, -1).astype(np.float64)
    limbs = _product(_basis(used), values).reshape(len(shares), _LIMBS)
    return {name: _from_limbs(row, label, where=name) for name, row in zip(shares, limbs.tolist(), strict=True)}


def check_shares(shares: Iterable[bytes], *, where: object) -> None:
    """Check that shares are vectors of residues.

    Raises:
        ProtocolError: If a share has the wrong type or length, or a number that is not below p.
    """
    shares = list(shares)
    if not all(isinstance(share, bytes) and len(share) == SHARE_BYTES for share in shares):
        raise ShareError("share", expected=f"{SHARE_BYTES} bytes", got="something else", where=where)
    check_words(b"".join(shares), where=where)


def check_words(shares: bytes, *, where: object) -> None:
    """Check that concatenated shares are vectors of residues.

    Raises:
        ProtocolError: If a number is not below p.
    """
    if np.frombuffer(shares, dtype="<u4").max(initial=0) >= PRIME:
        raise ShareError("share", expected=f"numbers below {PRIME}", got="a larger one", where=where)


def _check_points(points: Sequence[int], threshold: int) -> None:
    if not 1 <= threshold <= _MOST:
        raise ProtocolError("threshold of shares", expected=f"a number in [1, {_MOST}]", got=threshold)
    if len(points) < threshold:
        raise ProtocolError("shares", expected=f"at least {threshold}", got=len(points))
    if not all(isinstance(point, int) and 1 <= point < PRIME for point in points):
        raise ProtocolError("points of shares", expected=f"whole numbers in [1, {PRIME - 1}]", got="another")


def _to_limbs(secret: bytes, label: bytes) -> list[int]:
    if len(secret) != SECRET_BYTES:
        raise InternalError("secret to share", expected=f"{SECRET_BYTES} bytes", got=f"{len(secret)} bytes")
    number = int.from_bytes(secret + _checksum(secret, label), "little")
    return [number >> (_LIMB_BITS * place) & (2**_LIMB_BITS - 1) for place in range(_LIMBS)]


def _from_limbs(limbs: list[int], label: bytes, *, where: object) -> bytes:
    number = sum(limb << (_LIMB_BITS * place) for place, limb in enumerate(limbs))
    # A limb of 2^20 or more, possible since p is larger, would carry into its neighbour or beyond the last byte.
    if max(limbs) < 2**_LIMB_BITS:
        whole = number.to_bytes(SECRET_BYTES + _CHECK_BYTES, "little")
        secret, check = whole[:SECRET_BYTES], whole[SECRET_BYTES:]
        if check == _checksum(secret, label):
            return secret
    raise ShareError("shares", expected="parts of one secret", got="shares that do not fit together", where=where)


def _checksum(secret: bytes, label: bytes) -> bytes:
    return hashlib.sha256(b"caucus share 1|" + label + secret).digest()[:_CHECK_BYTES]


def _uniform(entropy: bytes, count: int) -> NDArray[np.float64]:
    """Return `count` exactly uniform residues: 32-bit words at or above the largest multiple of p are rejected."""
    ceiling = 2**32 // PRIME * PRIME
    size = count + 8
    while True:
        words = np.frombuffer(keystream(entropy, 4 * size), dtype="<u4")
        accepted = words[words < ceiling]
        if accepted.size >= count:
            return (accepted[:count] % PRIME).astype(np.float64)
        size *= 2


def _powers(points: Sequence[int], threshold: int) -> NDArray[np.float64]:
    """Return the powers x^0, x^1, ... of each point modulo p, (points, threshold) float64."""
    base = np.array(points, dtype=np.int64)
    powers = np.ones((len(points), threshold), dtype=np.int64)
    for exponent in range(1, threshold):
        powers[:, exponent] = powers[:, exponent - 1] * base % PRIME
    return powers.astype(np.float64)


def _basis(points: Sequence[int]) -> NDArray[np.float64]:
    """Return Lagrange's weights at 0, (1, points) float64: the product over j ≠ i of x_j / (x_j - x_i) modulo p.

    This equals the product of all x_j, divided by x_i times the product over j ≠ i of x_j - x_i.
    """
    base = np.array(points, dtype=np.int64)
    below = base.copy()
    above = 1
    for place, point in enumerate(points):
        gaps = point - base
        gaps[place] = 1
        below *= gaps
        below %= PRIME
        above = above * point % PRIME
    weights = [above * pow(bottom, -1, PRIME) % PRIME for bottom in below.tolist()]
    return np.array([weights], dtype=np.float64)


def _product(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Return the matrix product modulo p, exact for up to `_MOST` terms."""
    return ((left @ right).astype(np.int64) % PRIME).astype("<u4")

"""Masks: the keystream of AES-256 in counter mode, read as little-endian 64-bit words, added modulo 2^64.

The stream starts at block counter 2 of the zero nonce, which makes it the keystream of AES-256-GCM: the library runs
that path faster than plain counter mode. One key makes one mask, so the nonce need not vary.
"""

from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.ciphers import AEADEncryptionContext, Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM
from numpy.typing import NDArray

from common.errors import InternalError

_WORD = 8
_CHUNK = 2**15
"""Words in one piece: 256 KiB of keystream stay in the cache until they are added."""

_ZEROS = memoryview(bytes(_WORD * _CHUNK))


def add_mask(vector: NDArray[np.uint64], key: bytes, sign: Literal[1, -1]) -> None:
    """Add `sign` times the mask of `key` to `vector` in place, in 256 KiB of extra memory.

    Args:
        vector: (length,) uint64, contiguous.
        key: 32 bytes that mask nothing else.
        sign: 1 to add, -1 to subtract.
    """
    if vector.dtype != np.uint64 or vector.ndim != 1 or not vector.flags.c_contiguous:
        raise InternalError("vector to mask", expected="contiguous (length,) uint64", got=(vector.dtype, vector.shape))
    stream = _stream(key)
    piece = bytearray(_WORD * min(_CHUNK, vector.size))
    words = np.frombuffer(piece, dtype="<u8")
    combine = np.add if sign == 1 else np.subtract
    for start in range(0, vector.size, _CHUNK):
        part = vector[start : start + _CHUNK]
        stream.update_into(_ZEROS[: part.nbytes], piece)
        combine(part, words[: part.size], out=part)


def keystream(key: bytes, count: int) -> bytes:
    """The first `count` bytes of the stream of `key`."""
    return _stream(key).update(bytes(count))


def _stream(key: bytes) -> AEADEncryptionContext:
    return Cipher(AES(key), GCM(bytes(12))).encryptor()

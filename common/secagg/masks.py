"""Masks: the keystream of AES-256 in counter mode, read as little-endian 64-bit words, added modulo 2^64.

The stream starts at block counter 2 of the zero nonce, which makes it the keystream of AES-256-GCM: the library runs
that path faster than plain counter mode. One key makes one mask, so the nonce need not vary.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.ciphers import AEADEncryptionContext, Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM
from numpy.typing import NDArray

from common.errors import InternalError

_WORD = 8
_CHUNK = 2**15
"""Number of words per chunk: 256 KiB of the vector and the same amount of keystream stay in the cache meanwhile."""

_TOGETHER = 64
"""Number of masks that are added to one chunk before the next chunk."""

_ZEROS = memoryview(bytes(_WORD * _CHUNK))

Sign = Literal[1, -1]


def add_masks(vector: NDArray[np.uint64], masks: Iterable[tuple[bytes, Sign]]) -> None:
    """Add masks to `vector` in place, using 256 KiB of extra memory.

    Args:
        vector: (length,) uint64, contiguous.
        masks: For each mask its key, 32 bytes that mask nothing else, and a sign: 1 to add the mask, -1 to subtract it.
            The iterable is read only as masks are needed.
    """
    if vector.dtype != np.uint64 or vector.ndim != 1 or not vector.flags.c_contiguous:
        raise InternalError("vector to mask", expected="contiguous (length,) uint64", got=(vector.dtype, vector.shape))
    piece = bytearray(_WORD * min(_CHUNK, vector.size))
    words = np.frombuffer(piece, dtype="<u8")
    streams = ((_stream(key), np.add if sign == 1 else np.subtract) for key, sign in masks)
    while batch := list(islice(streams, _TOGETHER)):
        for start in range(0, vector.size, _CHUNK):
            part = vector[start : start + _CHUNK]
            zeros, mask = _ZEROS[: part.nbytes], words[: part.size]
            for stream, combine in batch:
                stream.update_into(zeros, piece)
                combine(part, mask, out=part)


def keystream(key: bytes, count: int) -> bytes:
    """Return the first `count` bytes of the stream of `key`."""
    return _stream(key).update(bytes(count))


def _stream(key: bytes) -> AEADEncryptionContext:
    return Cipher(AES(key), GCM(bytes(12))).encryptor()

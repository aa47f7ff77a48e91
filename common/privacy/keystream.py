"""Random bits for noise: a secret 32-byte key, expanded by AES-256 in counter mode.

A key serves one call of one sampler or mechanism. The stream has no other input, so that an interrupted answer can be
repeated with the same noise.
"""

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from common.errors import InternalError

KEY_BYTES = 32


class Keystream:
    """The stream of random bits from one key, beginning at counter 0.

    Raises:
        InternalError: If the key has a length other than 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise InternalError("noise key", expected=f"{KEY_BYTES} bytes", got=f"{len(key)} bytes")
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes of the stream."""
        return self._encryptor.update(bytes(count))

    def below(self, bound: int) -> int:
        """Draw a uniform integer in [0, bound)."""
        bits = (bound - 1).bit_length()
        while True:
            draw = int.from_bytes(self.read((bits + 7) // 8), "little") & ((1 << bits) - 1)
            if draw < bound:
                return draw

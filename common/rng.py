"""Two sources of randomness, which must never be mixed.

`secure_bytes` comes from the operating system and is the only source of noise, keys and shares. `experiment` is
reproducible from the experiment seed and serves only what a study may repeat: partitions, prompts, sampling.
"""

import hashlib
import secrets

import numpy as np


def secure_bytes(count: int) -> bytes:
    """Return `count` bytes from the operating system's entropy."""
    return secrets.token_bytes(count)


def experiment(experiment_seed: int, *purpose: str | int) -> np.random.Generator:
    """Return a reproducible generator, independent for each purpose, such as `experiment(7, "prompts", round)`.

    Streams depend only on seed and purpose, so a resumed run draws what the killed run would have drawn.
    """
    return np.random.default_rng(stream(experiment_seed, *purpose))


def stream(experiment_seed: int, *purpose: str | int) -> int:
    """Return a 64-bit experiment seed derived from `experiment_seed` for one purpose."""
    name = "\x1f".join(str(part) for part in (experiment_seed, *purpose))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")

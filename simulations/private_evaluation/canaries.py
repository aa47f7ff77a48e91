"""Canaries: records that a simulation inserts to test for memorisation (Carlini et al. 2019).

All canaries have one form and a random code, so that a synthetic text can contain the code only because of the record.
"""

from common import rng

FORM = "The access code of this patient is {}."
ALTERNATIVES = 255
"""Number of codes that no record has, for the rank of a canary: the exposure is 8 bits at most."""


def codes(count: int, experiment_seed: int, purpose: str = "canaries") -> list[str]:
    """Random codes of nine digits, in groups of three."""
    numbers = rng.experiment(experiment_seed, purpose).integers(10**9, size=count)
    digits = [f"{number:09d}" for number in numbers.tolist()]
    return [f"{code[:3]} {code[3:6]} {code[6:]}" for code in digits]


def alternatives(experiment_seed: int) -> list[str]:
    """Texts of the same form with codes that no record has."""
    return [FORM.format(code) for code in codes(ALTERNATIVES, experiment_seed, "alternatives")]

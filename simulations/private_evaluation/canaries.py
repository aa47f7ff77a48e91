"""Records that a simulation puts among the private ones, to see whether they come out (Carlini et al. 2019).

All have one form and a code that is drawn at random, so that nothing but a record can tell a synthetic text the code.
"""

from common import rng

FORM = "The access code of this patient is {}."
ALTERNATIVES = 255
"""Codes that no record has, to rank a canary's among: an exposure of 8 bits at most."""


def codes(count: int, experiment_seed: int, purpose: str = "canaries") -> list[str]:
    """Nine digits each, in groups of three."""
    drawn = rng.experiment(experiment_seed, purpose).integers(10**9, size=count)
    digits = [f"{number:09d}" for number in drawn.tolist()]
    return [f"{code[:3]} {code[3:6]} {code[6:]}" for code in digits]


def alternatives(experiment_seed: int) -> list[str]:
    """Texts of the same form with other codes."""
    return [FORM.format(code) for code in codes(ALTERNATIVES, experiment_seed, "alternatives")]

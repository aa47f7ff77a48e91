"""One line of the audit, and how sure a statistical one is."""

from dataclasses import dataclass

from scipy import stats

Z = 5.0
"""Largest distance of a statistic from its planned value, in standard deviations."""
ALARM = 2 * float(stats.norm.sf(Z))
"""Probability of a false alarm for each statistic: 5.7e-7."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the audit.

    Attributes:
        check: Name of the check.
        figure: Measured value.
        limit: Expected value.
        passed: Whether the check passed.
        unseen: A fault, and the probability that it would pass.
    """

    check: str
    figure: str
    limit: str
    passed: bool
    unseen: str = ""

"""Findings of the audit, each printed as one line, and the false-alarm rate of a statistical check."""

from dataclasses import dataclass

from scipy import stats

from simulations.laboratory.output import show

Z = 5.0
"""Largest accepted deviation of a statistic from its planned value, in standard deviations."""
ALARM = 2 * float(stats.norm.sf(Z))
"""Probability of a false alarm for each statistic, 5.7e-7."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """One finding of the audit, printed as one line.

    Attributes:
        check: Name of the check.
        figure: Measured value.
        limit: Required value.
        passed: Whether the check passed.
        unseen: Possible faults, each with the probability that the check would not notice it; may be empty.
    """

    check: str
    figure: str
    limit: str
    passed: bool
    unseen: str = ""


def head() -> None:
    """Print the header row of a table of findings."""
    show(f"{'check':54}{'found':42}{'to be found':20}{'would pass':38}verdict\n")


def print_finding(finding: AuditFinding) -> bool:
    """Print a finding's line; return whether it passed."""
    verdict = "passed" if finding.passed else "FAILED"
    show(f"{finding.check:54}{finding.figure:42}{finding.limit:20}{finding.unseen:38}{verdict}\n")
    return finding.passed

"""Holm's correction for the number of claims in a paper.

A claim's p-value is two-sided and, like its interval, computed with Student's t over the pairs of its difference. For a
claim that holds at the largest finite epsilon, the p-value of the difference at that epsilon counts; for a claim that
holds without privacy only, that of the difference without noise, doubled because it is the second one looked at; for
any other claim, the smallest p-value of all private differences, multiplied by their number. For a claim "within a
margin", both sides must be rejected (two one-sided tests). Pairs that all differ by the same are no sample, such as two
rows that are one run without noise: there is no p-value. A verdict stands after the correction if Holm's procedure
rejects its claim's null hypothesis at 5% among all claims of the paper, or of the page, that have a p-value.
"""

import math
from collections.abc import Sequence

from scipy import stats

from simulations.laboratory.results.claims import HOLDS, NOT_RUN, REFUTED, WITHIN, WITHOUT_PRIVACY, Claim
from simulations.laboratory.results.findings import Difference, Finding

LEVEL = 0.05
_IDENTICAL = 1e-12
"""Largest width of an interval over pairs that all differ by the same."""


def standing_verdicts(findings: Sequence[Finding]) -> dict[str, bool]:
    """Return whether each verdict that a difference was found, for or against a claim, stands; keyed by claim name.

    Args:
        findings: All findings that are corrected together. Those that are computed without runs are left out.
    """
    values = {finding.claim.name: p for finding in findings if (p := p_value(finding)) is not None}
    rejected = set[str]()
    for rank, name in enumerate(sorted(values, key=values.__getitem__)):
        if values[name] > LEVEL / (len(values) - rank):
            break
        rejected.add(name)
    return {
        finding.claim.name: finding.claim.name in rejected
        for finding in findings
        if finding.verdict in {HOLDS, WITHOUT_PRIVACY, REFUTED} and finding.claim.name in values
    }


def p_value(finding: Finding) -> float | None:
    """Return the two-sided p-value that decides on a claim; None if there is no interval over pairs, or one of width 0.

    A claim with a failed run counts as one that shows nothing, and a claim of which not all runs have ended not at all.
    """
    if finding.verdict == NOT_RUN:
        return None
    if finding.failures:
        return 1.0
    known = [one for one in finding.differences if one.interval is not None and one.pairs > 1]
    private = [one for one in known if one.epsilon is None or math.isfinite(one.epsilon)]
    if not known:
        return None
    if finding.verdict == WITHOUT_PRIVACY:
        decisive, looks = [one for one in known if one not in private], 2
    elif finding.verdict == HOLDS:
        decisive, looks = [max(private or known, key=lambda one: one.epsilon or 0)], 1
    else:
        decisive, looks = private or known, len(private or known)
    values = [p for one in decisive if (p := _two_sided(one, finding.claim)) is not None]
    return min(1.0, looks * min(values)) if values else None


def _two_sided(difference: Difference, claim: Claim) -> float | None:
    """Return the p-value of one difference; None if all of its pairs differ by the same."""
    assert difference.interval is not None
    low, high = difference.interval
    if high - low <= _IDENTICAL:
        return None
    freedom = difference.pairs - 1
    error = (high - low) / 2 / stats.t.ppf(1 - LEVEL / 2, freedom)

    def above(bound: float) -> float:
        return float(stats.t.sf((difference.mean - bound) / error, freedom))

    if claim.expects == WITHIN:
        margin = claim.margin
        outside = 2 * min(above(margin), 1 - above(-margin))
        return min(1.0, outside, 2 * max(above(-margin), 1 - above(margin)))
    return 2 * min(above(0.0), 1 - above(0.0))

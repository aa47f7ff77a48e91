"""What one unit adds to an answer, compared with the bounds that the query's specification declares."""

import numpy as np


def norms(change, spec):
    """Return the l1 and the squared l2 norm of what a unit adds, after checking them against the declared bounds."""
    change = np.abs(change)
    assert np.count_nonzero(change) <= spec.sensitivity.touched
    assert change.max(initial=0) <= spec.max_records * spec.largest
    shifts = np.sort(change[change > 0])[::-1]
    if spec.sensitivity.shifts:
        assert (shifts <= np.array(spec.sensitivity.shifts[::-1])[: len(shifts)]).all()
    assert change.sum() <= spec.sensitivity.l1
    assert (change**2).sum() <= spec.sensitivity.l2_squared
    return change.sum(), (change**2).sum()


def assert_reached(found, spec):
    """Check that the largest of these norms equal the declared bounds, so that no bound is loose."""
    assert max(l1 for l1, _ in found) == spec.sensitivity.l1
    assert max(l2 for _, l2 in found) == spec.sensitivity.l2_squared

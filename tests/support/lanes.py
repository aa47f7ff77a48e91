"""Which cases of a test wait for `make test-slow`: those that repeat, at a second each, what another case shows."""

import pytest


def slow(*values):
    """Return a case of a parametrized test that only `make test-slow` runs."""
    return pytest.param(*values, marks=pytest.mark.slow)


def slow_but(quick, cases):
    """Return cases of one value each, all of which are slow but those named."""
    return [case if case in quick else slow(case) for case in cases]

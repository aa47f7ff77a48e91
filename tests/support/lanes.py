"""Which test cases run only in `make test-slow`: cases that show, at a second each, what another case already shows."""

import pytest


def slow(*values):
    """Return a case of a parametrized test that is run only by `make test-slow`."""
    return pytest.param(*values, marks=pytest.mark.slow)


def slow_but(quick, cases):
    """Return test cases of one value each, all of which are slow except those in `quick`."""
    return [case if case in quick else slow(case) for case in cases]

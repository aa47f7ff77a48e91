"""Figures of claims that need no run: exact, from formulas.

Each function gives the figure of each row, by the row's name.
"""

from collections.abc import Callable, Mapping

FUNCTIONS: Mapping[str, Callable[[], Mapping[str, float]]] = {}

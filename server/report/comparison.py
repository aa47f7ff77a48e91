"""The page that compares the runs of a sweep."""

COMPARISON = r"""
"""

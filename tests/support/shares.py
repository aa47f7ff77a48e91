"""Shares of one secret, by the functions that split and combine several."""

from common.secagg.shamir import combine_many, split_many


def split(secret, threshold, points, entropy, *, label=b""):
    """Return a share for each point."""
    return split_many([secret], threshold, points, entropy, label=label)[0]


def combine(shares, threshold, *, label=b""):
    """Return the secret recovered from these shares, which are keyed by point."""
    return combine_many({"secret": shares}, threshold, label=label)["secret"]

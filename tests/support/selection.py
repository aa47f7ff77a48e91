"""Exact distributions of mechanisms that choose one of several candidates."""

import itertools
import math


def passing(utilities, scale):
    """Return the probability that each candidate is accepted when it is drawn."""
    return [math.exp((utility - max(utilities)) / scale) for utility in utilities]


def permute_and_flip(utilities, scale):
    """Return the exact probability that each candidate is chosen, computed from all orders of drawing them."""
    coins, result = passing(utilities, scale), [0.0] * len(utilities)
    orders = list(itertools.permutations(range(len(utilities))))
    for order in orders:
        reached = 1.0
        for candidate in order:
            result[candidate] += reached * coins[candidate] / len(orders)
            reached *= 1 - coins[candidate]
    return result


def exponential(utilities, scale):
    coins = passing(utilities, scale)
    return [coin / sum(coins) for coin in coins]

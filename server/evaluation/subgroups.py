"""The worst group of texts beside the mean, since a mean can hide a label, or long texts, that is served badly.

Texts are grouped by label and by length, and the records of a simulation also by hospital. The worst of many groups is
low by chance alone: of ten labels with 40 texts each, all recognised at 80%, the worst has 70% in the mean. Its
interval therefore holds for all groups at once (Clopper and Pearson, with Bonferroni's correction).
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from server.documents.metrics import Figure
from server.metrics import intervals

FEWEST = 10
"""Minimum number of texts in a group; smaller groups cannot be the worst, since one text would decide."""
_THIRDS = (1 / 3, 2 / 3)


def lengths(texts: Sequence[str]) -> list[str]:
    """Return each text's third by its number of words, in words such as "10 to 14 words"."""
    if not texts:
        return []
    words = np.array([len(text.split()) for text in texts])
    short, long = (int(end) for end in np.quantile(words, _THIRDS))
    names = (f"at most {short} words", f"{short + 1} to {long} words", f"more than {long} words")
    return [names[int(count > short) + int(count > long)] for count in words]


def worst(
    shares: NDArray[np.floating], groups: Mapping[str, Sequence[str]], *, highest: bool = False
) -> dict[str, Figure]:
    """Return the figure of the worst group for each way of grouping, such as "worst_label".

    Args:
        shares: (rows,) in [0, 1]: whether a row is a hit, or the fraction of trainings in which it is one.
        groups: For each way of grouping, the name of each row's group.
        highest: Whether a higher fraction is worse.

    Returns:
        Figures with the group's name as their definition; without those for which no group has `FEWEST` rows.
    """
    figures = {}
    for kind, names in groups.items():
        sizes = {name: rows for name, rows in Counter(names).items() if rows >= FEWEST}
        if not sizes:
            continue
        of_row = np.array(names)
        means = {name: float(shares[of_row == name].mean()) for name in sorted(sizes)}
        name = (max if highest else min)(means, key=means.__getitem__)
        # The level of each interval, so that all hold at once in 95% of cases (Bonferroni).
        rows, level = sizes[name], 1 - (1 - intervals.LEVEL) / len(sizes)
        figures[f"worst_{kind}"] = Figure(
            value=means[name],
            interval=intervals.share_interval(round(means[name] * rows), rows, level=level),
            rows=rows,
            definition=f"{name}: the worst of {len(sizes)} with {FEWEST} rows or more each; the interval holds for "
            "all of them at once.",
        )
    return figures

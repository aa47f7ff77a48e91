"""The texts that a page shows: three for a first look, a few of each label, and all of them for the search."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from server.domain import Candidate
from server.evaluation.projection import evenly

EXAMPLES = 5
"""Number of texts of each label in the page itself; the search on the page finds all texts."""

LONG = 1200
"""Number of characters of a text that are shown before the reader opens it."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Glimpsed:
    """One of the three texts.

    Attributes:
        text: The text.
        why: Why it is one of the three; empty if all texts are shown.
    """

    text: Candidate
    why: str


def glimpse(
    texts: Sequence[Candidate], nearest: Sequence[tuple[int, int]] = (), tested: int | None = None
) -> tuple[Glimpsed, ...]:
    """Return two typical texts, of two labels if there are two, and the text with the rarest words.

    Typical texts are those that are nearest to the most held-out texts or, where this was not measured, texts of median
    rarity. The rarity of a text is the mean of -log p(w) over its words, where p(w) is the proportion of the word among
    the words of all texts. No private record is needed, so the choice costs no privacy.

    Args:
        texts: The texts of a run.
        nearest: See `Metrics.nearest_texts`; a line beyond the last text is ignored.
        tested: Number of the held-out texts.

    Returns:
        Three texts, the rarest last; all texts if there are fewer than three.
    """
    if len(texts) < 3:
        return tuple(Glimpsed(text=text, why="") for text in texts)
    words = [_WORD.findall(text.text.casefold()) for text in texts]
    counts = Counter(word for spoken in words for word in spoken)
    total = counts.total()
    cost = {word: math.log(total / count) for word, count in counts.items()}
    rarity = [math.fsum(cost[word] for word in spoken) / max(1, len(spoken)) for spoken in words]
    *usual, rarest = sorted(range(len(texts)), key=rarity.__getitem__)
    middle, of_all = len(usual) // 2, f"of {tested:,} " if tested else ""
    typical = dict.fromkeys(usual[middle:] + usual[:middle], "Usual words")
    chosen = {
        line: f"Typical: the closest of all texts to {votes:,} {of_all}real test texts"
        for line, votes in nearest
        if line in typical
    }
    first, *others = (chosen | {line: why for line, why in typical.items() if line not in chosen}).items()
    second = next((one for one in others if texts[one[0]].label != texts[first[0]].label), others[0])
    return tuple(
        Glimpsed(text=texts[line], why=why)
        for line, why in (first, second, (rarest, "The rarest words: look here for names and odd details"))
    )


def list_columns(texts: Sequence[Candidate], *, labelled: bool) -> dict[str, Any]:
    """Return all texts, with labels and models as indices into lists, which halves the page for short texts."""
    labels, models, rounds = (
        {name: at for at, name in enumerate(dict.fromkeys(names))}
        for names in (
            (text.named for text in texts),
            (text.model for text in texts),
            (str(text.round) for text in texts),
        )
    )
    return {
        "few": "A few of each label." if labelled else "A few of them.",
        "labelled": labelled,
        "labels": list(labels) if labelled else [],
        "models": list(models),
        "rounds": list(rounds),
        "long": LONG,
        "rows": [[text.text, labels[text.named], models[text.model], rounds[str(text.round)]] for text in texts],
    }


def pick_examples(texts: Sequence[Candidate]) -> dict[str, dict[str, Any]]:
    """Return the number of texts of each label and a few of them, evenly spaced over the run."""
    by_label: dict[str, list[Candidate]] = {}
    for text in texts:
        by_label.setdefault(text.named, []).append(text)
    return {label: {"total": len(of_label), "rows": evenly(of_label, EXAMPLES)} for label, of_label in by_label.items()}

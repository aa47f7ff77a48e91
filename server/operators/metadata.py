"""Metadata, the "genes" of DPGA-TextSyn: noised statistics of the private records (section 3.2).

Metadata are queried before the first generation. They consist of the proportions of labels, lengths and keywords,
computed from answers that are already noised, so nothing here can cost privacy. Negative counts are set to zero, and if
no count is positive, the proportions are equal. Most functions also return notes for the report.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.errors import ProviderError
from server.domain import Task
from server.llm.clean import count_scripts, usual_scripts
from server.llm.generate import MOST_PASSES, Written, reseeded
from server.llm.orders import allocate
from server.llm.requests import subtopics
from server.method import Tools

Counts = NDArray[np.float64]
Shares = Mapping[str, float]
"""Non-negative numbers that sum to 1."""
Span = tuple[int, int]
"""Shortest and longest length of a bin, in words, inclusive."""

_LEAST_USABLE = 0.5
"""Share of the requested keywords of a label that must be usable; with fewer, their votes are not worth their cost."""
_MOST_WORDS = 4  # in a keyword, as `server/llm/prompts/subtopics.jinja` requests
_WORD = re.compile(r"""[("“]?[^\W_]+(?:['’./&+-]+[^\W_]+)*[)"”.,:;!?%]*|[&/+–-]""")
"""A word of letters or digits, as in "X-ray", "patient's" or "(adults)", or a sign between two words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Labels, lengths and keywords from which prompts for new texts are drawn, in JSON's types.

    Attributes:
        labels: Proportion of new texts with each label.
        lengths: Shortest and longest length of each bin, in words, and the bin's proportion; if empty, no length is
            requested.
        keywords: Proportion of each keyword of each label; without keywords, the task's public attributes are used.
        tau: Initial threshold of similarity suppression.
    """

    labels: Shares
    lengths: Sequence[tuple[int, int, float]]
    keywords: Mapping[str, Shares]
    tau: float

    def deal(self, texts: int) -> list[str]:
        """Return a label for each of `texts` new texts, in accordance with the proportions (+-1 text)."""
        counts = allocate(texts, np.array(list(self.labels.values())))
        return [label for label, count in zip(self.labels, counts, strict=True) for _ in range(count)]

    def draw_keyword(self, label: str, generator: np.random.Generator) -> str | None:
        """Return a random keyword of the label, or None if the label has no keywords."""
        keywords = self.keywords.get(label)
        return str(generator.choice(list(keywords), p=list(keywords.values()))) if keywords else None

    def draw_length(self, generator: np.random.Generator) -> int | None:
        """Draw a length in words, at least 1, uniformly from a bin drawn by proportion; None if there are no bins."""
        if not self.lengths:
            return None
        first, last, _ = self.lengths[generator.choice(len(self.lengths), p=[share for *_, share in self.lengths])]
        return max(1, int(generator.integers(first, last + 1)))


def label_shares(counts: Counts, task: Task) -> tuple[dict[str, float], list[str]]:
    """Return the proportion of each label, and notes, from the noised label histogram, (labels,)."""
    shares, empty = _shares(counts)
    by_label = dict(zip(task.labels, shares, strict=True))
    if empty:
        return by_label, ["no label's noised count is above zero: equal shares"]
    without = "noised count not above zero, so no text is written for it"
    return by_label, [f"{label}: {without}" for label, share in by_label.items() if share == 0]


def length_range(ends: NDArray[np.float64], cap: int) -> tuple[Span, list[str]]:
    """Merge the parties' (parties, 2) ranges into one, from the median low to the median high end; return notes too.

    Each end comes from a separate noised search, which at a party with few records often stops too early, at any
    length. This affects the extremes over all parties, but hardly the medians; the same holds for one dishonest party.
    The drawback is that lengths which occur only at a minority of the parties may be outside the range. Lengths below
    the range count as its shortest length; lengths above it are ignored.
    """
    low, high = (float(np.median(side)) for side in ends.T)
    low, high = sorted((min(max(0.0, low), cap), min(max(0.0, high), cap)))
    span = (math.floor(low), math.ceil(high))
    notes = [f"the search for the longest length went up to the cap of {cap} words"] if span[1] == cap else []
    return span, notes


def bins(span: Span, count: int) -> tuple[NDArray[np.int32], list[Span]]:
    """Divide a range into bins of equal width, in whole words.

    Returns:
        (count - 1,) edges of all bins, and the spans of the bins within the range. The last bin, for longer texts, is
        never among them. If the range has fewer lengths than there are bins, a bin is one word wide and the remaining
        bins are ignored.
    """
    low, high = span
    # The last bin is for texts longer than the range.
    width = -(-(high - low + 1) // max(1, count - 1))
    starts = range(low, low + width * count, width)
    edges = np.array(starts[1:], dtype=np.int32)
    return edges, [(start, min(start + width - 1, high)) for start in starts if start <= high]


def length_shares(counts: Counts, spans: Sequence[Span]) -> tuple[list[tuple[int, int, float]], list[str]]:
    """Return the proportion of each span, and notes; the spans are the first bins of the noised histogram, (bins,)."""
    shares, empty = _shares(counts[: len(spans)])
    notes = ["no length's noised count is above zero: all lengths of the range equally"] if empty else []
    return [(first, last, share) for (first, last), share in zip(spans, shares, strict=True)], notes


def list_keywords(
    tools: Tools, labels: Sequence[str], count: int, *, temperature: float
) -> tuple[dict[str, list[str]], Written, list[str]]:
    """Return subtopics of each label; every model lists an equal part of them.

    A keyword is usable if it has one to four words, spelled in a script of the task's description or in the script that
    most of the listed letters have. All others are dropped. Where too few are left, the models are asked again, since a
    chat model at times writes sentences instead.

    Args:
        tools: Task, models and experiment seed.
        labels: Labels that need keywords.
        count: Number of keywords per label.
        temperature: Sampling temperature of the language models.

    Returns:
        At most `count` different keywords for each label, keyed by label; the texts written; notes.

    Raises:
        ProviderError: Of a label, fewer than half of the requested keywords are usable in the last attempt; or too many
            replies are lost.
    """
    written, usable = Written(texts=[]), dict[str, list[str]]()
    least = _LEAST_USABLE * count
    for attempt in range(MOST_PASSES):
        if short := [label for label in labels if len(usable.get(label, ())) < least]:
            usable |= _usable_keywords(tools, short, count, temperature=temperature, attempt=attempt, written=written)
    for label in labels:
        if len(usable[label]) < least:  # a keyword that several models list is no sign of bad models
            raise ProviderError(
                f"keywords of {label}",
                expected=f"at least half of {count} to be usable: one to {_MOST_WORDS} words in the task's script",
                got=len(usable[label]),
                do="Lower method.keyword_temperature, take another model, or ask for fewer (method.keywords; 0 for "
                "none); no hospital was asked to vote on them",
            )
    keywords = {label: _distinct(phrases) for label, phrases in usable.items()}
    notes = [
        f"{label}: {len(phrases)} of {count} keywords listed"
        for label, phrases in keywords.items()
        if len(phrases) < count
    ]
    return keywords, written, notes


def _usable_keywords(
    tools: Tools, labels: Sequence[str], count: int, *, temperature: float, attempt: int, written: Written
) -> dict[str, list[str]]:
    """Return the usable keywords of each label in one attempt, repetitions included; add the replies to `written`."""
    requests, owners = [], []
    for label in labels:
        for number, part in enumerate(allocate(count, np.ones(len(tools.models)))):
            if part:
                generator = rng.experiment(tools.experiment_seed, "keywords", label, number)
                request = subtopics(tools.task, label, phrases=int(part), rng=generator, temperature=temperature)
                requests.append((tools.models[number], reseeded(request, attempt * MOST_PASSES)))
                owners.append(label)  # not in the request of a task without labels
    replies = tools.write(requests)
    written.add(replies)
    scripts = _scripts(tools.task, [phrase for phrases in written.texts for phrase in phrases])
    usable: dict[str, list[str]] = {label: [] for label in labels}
    for owner, phrases in zip(owners, replies.texts, strict=True):
        usable[owner] += [phrase for phrase in phrases if _is_usable(phrase, scripts)]
    return usable


def _distinct(phrases: Sequence[str]) -> list[str]:
    """Return each phrase once, spelled as when it came first."""
    spelled = dict[str, str]()
    for phrase in phrases:
        spelled.setdefault(phrase.casefold(), phrase)
    return list(spelled.values())


def _scripts(task: Task, phrases: Sequence[str]) -> frozenset[str]:
    """Return the scripts of the task's description, and the most frequent one of the phrases: the two may differ."""
    listed = count_scripts("".join(phrases)).most_common(1)
    return usual_scripts([task.kind, *task.labels, *task.labels.values()]) | {script for script, _ in listed}


def _is_usable(phrase: str, scripts: frozenset[str]) -> bool:
    """Return whether a phrase has one to four words, at least one letter, and letters of these scripts alone."""
    bare = "".join(letter for letter in phrase if unicodedata.category(letter)[0] != "M")
    words, letters = bare.split(), count_scripts(bare).keys()
    return bool(letters) and letters <= scripts and len(words) <= _MOST_WORDS and all(map(_WORD.fullmatch, words))


def keyword_shares(
    votes: Counts, keywords: Mapping[str, Sequence[str]], *, softmax: float
) -> dict[str, dict[str, float]]:
    """Return the proportion of each keyword: a softmax over the votes for each label's keywords (section 3.2.2).

    Args:
        votes: Noised votes for the keywords of all labels, in order.
        keywords: Keywords, keyed by label.
        softmax: Temperature in votes: a keyword with this many more votes than another is e times as likely.
    """
    shares, start = {}, 0
    for label, phrases in keywords.items():
        logits = votes[start : start + len(phrases)] / softmax
        weights = np.exp(logits - logits.max())
        shares[label] = dict(zip(phrases, (weights / weights.sum()).tolist(), strict=True))
        start += len(phrases)
    return shares


def first_tau(answer: NDArray[np.float64]) -> tuple[float, list[str]]:
    """Return the mean cosine of pairs of private records, from their noised sum and number, and notes.

    If, due to the noise, the number of pairs is below 1 or the mean is outside 0 to 1, the threshold tau starts at 0,
    and therefore ends at the lowest value that leaves enough elites.
    """
    total, pairs = answer
    if pairs >= 1 and 0 <= total / pairs <= 1:
        return float(total / pairs), []
    return 0.0, ["too few pairs of records for their mean similarity under this noise: tau starts at 0"]


def _shares(counts: Counts) -> tuple[list[float], bool]:
    """Return the proportions of the positive counts, and False; if no count is positive, equal proportions and True."""
    above = np.maximum(0.0, counts)
    total = float(above.sum())
    if total > 0:
        return (above / total).tolist(), False
    return [1 / len(counts)] * len(counts), True

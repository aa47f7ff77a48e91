"""Variations of synthetic texts, and what they tell of their parents (Aug-PE; PrE-Text).

A parent's own model writes its variations: in other words, or with a share of the words masked and filled in afresh,
in a length drawn around the parent's. Looking ahead, a candidate is voted on by the mean embedding of some variations
of it instead of its own: by where its offspring will be.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common import rng, validate
from server.domain import Candidate
from server.llm import prompts
from server.llm.base import Request
from server.llm.generate import Written
from server.method import Tools

SHORTEST = 3
"""Words: no variation is asked to be shorter, however short its parent."""

Ahead = Mapping[str, Sequence[str]]
"""Variations of each candidate, by its text; none where its model wrote none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """How texts are varied.

    Attributes:
        kind: "paraphrase" or "fill_in".
        mask: Share of the words that a fill-in replaces.
        length_spread: Standard deviation of a variation's wanted length, as a share of its parent's length in words;
            None asks for no length.
        with_label: Whether prompts name the label.
        texts_per_request: Variations of one parent that one prompt asks for at most.
        temperature: Of the language models.
    """

    kind: str = "paraphrase"
    mask: float = 0.5
    length_spread: float | None = 0.2
    with_label: bool = True
    texts_per_request: int = 1
    temperature: float = 1.0

    def __post_init__(self) -> None:
        validate.one_of("variation", self.kind, among=("paraphrase", "fill_in"))
        validate.positive(mask=self.mask)
        validate.in_range(0, 1, mask=self.mask)
        validate.at_least(1, texts_per_request=self.texts_per_request)
        validate.in_range(0, 2, temperature=self.temperature)
        validate.in_range(0, 1, length_spread=self.length_spread or 0.0)

    def write(self, parents: Sequence[tuple[Candidate, int]], tools: Tools, *purpose: str | int) -> Written:
        """Have each parent's model write so many variations of it.

        Args:
            parents: Candidates, and how many variations of each.
            tools: For the writing.
            purpose: Names the random streams, such as ("variation", 3).

        Returns:
            With the texts of each parent, in order.
        """
        requests, owners = [], []
        for at, (parent, count) in enumerate(parents):
            for start in range(0, count, self.texts_per_request):
                generator = rng.experiment(tools.experiment_seed, *purpose, at, start)
                request = self._request(parent, min(self.texts_per_request, count - start), tools, generator)
                requests.append((parent.model, request))
                owners.append(at)
        written: Written = tools.write(requests)
        texts: list[tuple[str, ...]] = [()] * len(parents)
        for owner, some in zip(owners, written.texts, strict=True):
            texts[owner] += some
        return replace(written, texts=texts)

    def _request(self, parent: Candidate, texts: int, tools: Tools, generator: np.random.Generator) -> Request:
        label = parent.label if self.with_label else None
        words = self._length(parent.text, generator)
        if self.kind == "fill_in":
            return prompts.fill_in(
                tools.task, label, parent.text, blanks=self.mask, texts=texts, rng=generator,
                temperature=self.temperature, words=words,
            )  # fmt: skip
        return prompts.paraphrase(
            tools.task, label, parent.text, texts=texts, rng=generator, temperature=self.temperature, words=words
        )

    def _length(self, text: str, generator: np.random.Generator) -> int | None:
        if self.length_spread is None:
            return None
        own = len(text.split())
        return max(SHORTEST, round(own + generator.normal() * self.length_spread * own))


def family_sizes(parents: Sequence[tuple[Candidate, int]]) -> Counter[str]:
    """Variations asked for, by model."""
    sizes: Counter[str] = Counter()
    for parent, count in parents:
        sizes[parent.model] += count
    return sizes


def children(parents: Sequence[tuple[Candidate, int]], written: Written, round_number: int) -> list[Candidate]:
    """The variations as candidates, with label and model of their parents."""
    return [
        Candidate(text=text, label=parent.label, model=parent.model, round=round_number)
        for (parent, _), texts in zip(parents, written.texts, strict=True)
        for text in texts
    ]


def look_ahead(
    candidates: Sequence[Candidate],
    tools: Tools,
    *,
    degree: int,
    known: Ahead,
    variation: Variation,
    round_number: int,
) -> tuple[dict[str, list[str]], Written]:
    """Variations of each candidate to look ahead with, and what writing them took.

    Args:
        candidates: All that are to be voted on.
        tools: For the writing.
        degree: k, variations of each; 0 writes none.
        known: Those of earlier rounds: a candidate that lives on keeps its own.
        variation: How they are written.
        round_number: For the random streams.
    """
    if not degree:
        return {}, Written(texts=[])
    new = list({candidate.text: candidate for candidate in candidates if candidate.text not in known}.values())
    written = variation.write([(candidate, degree) for candidate in new], tools, "look ahead", round_number)
    ahead = {**known, **{candidate.text: texts for candidate, texts in zip(new, written.texts, strict=True)}}
    return {candidate.text: list(ahead[candidate.text]) for candidate in candidates}, written


def vectors(candidates: Sequence[Candidate], tools: Tools, ahead: Ahead) -> NDArray[np.float32]:
    """What candidates are voted on by: (candidates, dimensions) float32, unit norm.

    The mean embedding of a candidate's variations, scaled to norm 1; its own embedding where there are none, or where
    they cancel out.
    """
    own = tools.embed([candidate.text for candidate in candidates])
    texts = list(dict.fromkeys(text for some in ahead.values() for text in some))
    if not texts:
        return own
    embedded = dict(zip(texts, tools.embed(texts), strict=True))
    rows = []
    for candidate, alone in zip(candidates, own, strict=True):
        some = [embedded[text] for text in ahead[candidate.text]]
        mean = np.mean(some, axis=0, dtype=np.float64) if some else np.zeros(len(alone))
        norm = float(np.linalg.norm(mean))
        rows.append(mean / norm if norm > 1e-6 else alone)
    return np.array(rows, dtype=np.float32)

"""Variations of synthetic texts, and votes for parents through their variations (Aug-PE; PrE-Text).

A parent's own model writes its variations: paraphrases, or texts with a fraction of the words masked and replaced, with
a length drawn around the parent's. With look-ahead, votes for a candidate depend on the mean embedding of some of its
variations instead of its own embedding, and therefore on where its offspring lie.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from common import rng
from server.domain import Candidate
from server.llm.base import Request
from server.llm.generate import Written
from server.llm.requests import fill_in, paraphrase
from server.method import Tools
from server.settings.voting import Variation

SHORTEST = 3
"""Minimum number of words requested of a variation, however short its parent is."""

Ahead = Mapping[str, Sequence[str]]
"""Variations of each candidate, keyed by the candidate's text; empty if its model wrote none."""


def modes(variation: Variation) -> dict[str, str | None]:
    """Return the mode of the requests for variations, and the setting that avoids it; see `server.method.Method`."""
    if variation.kind == "fill_in":
        return {"blanks": "method.variation.kind=paraphrase"}
    return {"rewriting": "method.variation.kind=fill_in"}


def vary(
    variation: Variation,
    parents: Sequence[tuple[Candidate, int]],
    tools: Tools,
    *purpose: str | int,
    texts_per_request: int = 1,
    temperature: float = 1.0,
    with_label: bool = True,
) -> Written:
    """Have each parent's own model write variations of it.

    Args:
        variation: Kind and length of the variations.
        parents: Candidates, each with the number of variations to write.
        tools: Tools of the method.
        purpose: Name of the random streams, such as ("variation", 3).
        texts_per_request: Maximum number of variations of one parent that one prompt requests.
        temperature: Sampling temperature of the language models.
        with_label: Whether prompts mention the label.

    Returns:
        The texts of each parent and their models, in the order of the parents.
    """
    ask: Callable[..., Request] = partial(fill_in, blanks=variation.mask) if variation.kind == "fill_in" else paraphrase
    requests, owners = [], []
    for at, (parent, count) in enumerate(parents):
        for start in range(0, count, texts_per_request):
            generator = rng.experiment(tools.experiment_seed, *purpose, at, start)
            request = ask(
                tools.task,
                parent.label if with_label else None,
                parent.text,
                texts=min(texts_per_request, count - start),
                rng=generator,
                temperature=temperature,
                words=_length(variation, parent.text, generator),
            )
            requests.append((parent.model, replace(request, showable=True)))
            owners.append(at)
    written: Written = tools.write(requests)
    variations: list[tuple[str, ...]] = [()] * len(parents)
    models = variations.copy()
    for owner, reply, writers in zip(owners, written.texts, written.models, strict=True):
        variations[owner] += reply
        models[owner] += writers
    return replace(written, texts=variations, models=models)


def _length(variation: Variation, text: str, generator: np.random.Generator) -> int | None:
    if variation.length_spread is None:
        return None
    length = len(text.split())
    return max(SHORTEST, round(length + generator.normal() * variation.length_spread * length))


def make_children(parents: Sequence[tuple[Candidate, int]], written: Written, round_number: int) -> list[Candidate]:
    """Return the variations as candidates, with the label of their parents."""
    return written.fill(Candidate(text="", label=parent.label, model="", round=round_number) for parent, _ in parents)


def look_ahead(
    candidates: Sequence[Candidate],
    tools: Tools,
    *,
    degree: int,
    known: Ahead,
    variation: Variation,
    round_number: int,
    texts_per_request: int = 1,
    temperature: float = 1.0,
    with_label: bool = True,
) -> tuple[dict[str, list[str]], Written]:
    """Return variations that represent each candidate in the votes, and what the models wrote for new candidates.

    Args:
        candidates: All candidates to be voted on.
        tools: Tools of the method.
        degree: k, number of variations of each candidate; 0 writes none.
        known: Variations of earlier rounds; a candidate that survives keeps the variations that it had.
        variation: Kind and length of the variations.
        round_number: Part of the name of the random streams.
        texts_per_request: See `vary`.
        temperature: Sampling temperature of the language models.
        with_label: Whether prompts mention the label.
    """
    if not degree:
        return {}, Written(texts=[])
    new = list({candidate.text: candidate for candidate in candidates if candidate.text not in known}.values())
    written = vary(
        variation,
        [(candidate, degree) for candidate in new],
        tools,
        "look ahead",
        round_number,
        texts_per_request=texts_per_request,
        temperature=temperature,
        with_label=with_label,
    )
    ahead = {**known, **{candidate.text: texts for candidate, texts in zip(new, written.texts, strict=True)}}
    return {candidate.text: list(ahead[candidate.text]) for candidate in candidates}, written


def voting_vectors(candidates: Sequence[Candidate], tools: Tools, ahead: Ahead) -> NDArray[np.float32]:
    """Return the vectors that represent the candidates in the votes: (candidates, dimensions) float32, unit norm.

    Each vector is the mean embedding of a candidate's variations, scaled to norm 1. If there are no variations, or if
    they cancel out, the vector is the candidate's own embedding.
    """
    own_vectors = tools.embed([candidate.text for candidate in candidates])
    texts = list(dict.fromkeys(text for variations in ahead.values() for text in variations))
    if not texts:
        return own_vectors
    embedded = dict(zip(texts, tools.embed(texts), strict=True))
    rows = []
    for candidate, alone in zip(candidates, own_vectors, strict=True):
        variations = [embedded[text] for text in ahead[candidate.text]]
        mean = np.mean(variations, axis=0, dtype=np.float64) if variations else np.zeros(len(alone))
        norm = float(np.linalg.norm(mean))
        rows.append(mean / norm if norm > 1e-6 else alone)
    return np.array(rows, dtype=np.float32)

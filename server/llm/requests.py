"""Construction of requests to language models: the fields of `Request` that each mode sets.

The providers choose the wording (`server/llm/render.py`). Exemplars and sources are synthetic texts, keyphrases are
sampled from noised answers, and the examples with keyphrases come from the data's recipient, who may want to keep them
private. Only one kind of text from a party can appear in a prompt: an abstract of a record, released to the coordinator
by RPSG's `seed_unproven`, whose privacy statement says that it has no guarantee (`AbstractedSeedsSpec`). All other
answers that lead to prompts are numbers; texts that parties release for publication (`FineTunedSpec`, `RewrittenSpec`)
are not used in any prompt. A simulation can show records to models on its own machine, at ε = ∞, to measure how much
this helps (`simulations/baselines/private_exemplars.py`).

A run folder keeps examples of prompts. It keeps one with texts or keyphrases only if whoever makes the request states
`replace(request, showable=True)`: all of them are synthetic, public, or drawn from noised answers
(`Request.may_be_shown`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Required, TypedDict, Unpack

import numpy as np

from common.validate import in_range, not_empty, positive
from server.domain import Task
from server.llm.base import Request
from server.llm.marks import marks_of


class Common(TypedDict, total=False):
    """What every request may have, as in `by_example`."""

    texts: Required[int]
    rng: Required[np.random.Generator]
    temperature: float
    words: int | None


def by_example(
    task: Task,
    label: str | None,
    *,
    texts: int,
    rng: np.random.Generator,
    good: Sequence[str] = (),
    bad: Sequence[str] = (),
    attribute: str | None = None,
    temperature: float = 1.0,
    words: int | None = None,
    more: Sequence[str] = (),
) -> Request:
    """Make a request from the task, a label, one public attribute, and exemplars.

    Without exemplars the prompt is zero-shot (WASP, section 4.3; DPGA-TextSyn's first population, with a keyword as the
    attribute and a length). With good exemplars alone, it asks for more texts like them (PrE-Text's expansion of its
    seeds). With good and bad exemplars it is contrastive: it asks for texts better than the good ones and further from
    the bad ones (WASP, section 4.6).

    Args:
        task: Public description of the data.
        label: Label of the new texts.
        texts: Number of texts to request.
        rng: Draws the attribute and the request's seed.
        good: Exemplars to follow and to surpass.
        bad: Exemplars to move away from.
        attribute: Topic of the texts; None samples one of the task's attributes, if it has any.
        temperature: Temperature of the language model.
        words: Requested length in words; None leaves it open.
        more: Further labels of the new texts, if each has several.
    """
    if attribute is None and task.attributes:
        attribute = str(rng.choice(np.array(task.attributes)))
    plain = _plain(task, label, texts=texts, rng=rng, temperature=temperature, words=words)
    return replace(plain, attribute=attribute, good=tuple(good), bad=tuple(bad), more=tuple(more))


def paraphrase(
    task: Task,
    label: str | None,
    source: str,
    *,
    texts: int,
    rng: np.random.Generator,
    temperature: float = 1.0,
    words: int | None = None,
) -> Request:
    """Make a request for a paraphrase.

    Such requests are used in Aug-PE, in DPGA-TextSyn's first mutation (with the source's length) and in RPSG (Table 6).
    """
    return replace(_plain(task, label, texts=texts, rng=rng, temperature=temperature, words=words), source=(source,))


def abstracts(task: Task, label: str | None, **common: Unpack[Common]) -> Request:
    """Make a request for short abstracts of possible texts, which form RPSG's public pool.

    Each abstract mentions one of the task's attributes.
    """
    return replace(by_example(task, label, **common), abstract=True, marks=None)


def request_from_abstract(task: Task, label: str | None, abstract: str, **common: Unpack[Common]) -> Request:
    """Make a request for a realistic text of which this could be the abstract (RPSG, section 3.3 and Table 6)."""
    return replace(_plain(task, label, **common), source=(abstract,), abstract=True)


def fill_in(task: Task, label: str | None, source: str, *, blanks: float, **common: Unpack[Common]) -> Request:
    """Make a request for variants of the source in which a fraction `blanks` of the words is replaced.

    Such requests are used in Aug-PE and in DPGA-TextSyn's second mutation.
    """
    positive(blanks=blanks)
    return replace(_plain(task, label, **common), source=(source,), blanks=blanks)


def crossover(
    task: Task,
    label: str | None,
    parents: tuple[str, str],
    *,
    attribute: str | None = None,
    **common: Unpack[Common],
) -> Request:
    """Make a request for a text from two parents.

    In DPGA-TextSyn (3.4.2), `words` is the parents' mean length, and `attribute` is a keyword.
    """
    return replace(_plain(task, label, **common), source=parents, attribute=attribute)


def with_keyphrases(
    task: Task,
    phrases: Sequence[str],
    *,
    examples: Sequence[tuple[str, Sequence[str]]] = (),
    **common: Unpack[Common],
) -> Request:
    """Make a request for a text that contains the phrases, without a label (DP-KPS, section 2, step 5).

    Only the phrases determine the class, as in the paper.

    Args:
        task: Public description of the data; the prompt contains only its kind of text.
        phrases: The keyphrases, at least one.
        examples: Texts with their keyphrases, provided by the data's recipient (section B.2.5).
        common: See `Common`.
    """
    not_empty(phrases=phrases)
    return replace(
        _plain(task, None, **common),
        must=tuple(phrases),
        good=tuple(text for text, _ in examples),
        good_must=tuple(tuple(keyphrases) for _, keyphrases in examples),
    )


def request_from_words(task: Task, vocabulary: Sequence[str], *, count: int, **common: Unpack[Common]) -> Request:
    """Make a request for a text that contains random words of a vocabulary, without a label.

    Aug-PE+ makes its first texts in this way (DP-KPS, section 3). The prompt contains `count` words and is otherwise
    the same as in `with_keyphrases`, so that the two methods differ only in the choice of words.
    """
    in_range(1, len(vocabulary), count=count)
    sample = [vocabulary[at] for at in common["rng"].choice(len(vocabulary), size=count, replace=False)]
    return with_keyphrases(task, sample, **common)


def subtopics(
    task: Task, label: str | None, *, phrases: int, rng: np.random.Generator, temperature: float = 1.0
) -> Request:
    """Make a request for short phrases that name subtopics for a label's texts (DPGA-TextSyn, 3.2 and appendix I)."""
    plain = _plain(task, label, texts=phrases, rng=rng, temperature=temperature)
    return replace(plain, phrases=True, marks=None)


def _plain(task: Task, label: str | None, **common: Unpack[Common]) -> Request:
    """Return the common part of all modes: a zero-shot request, which names no label if the task has none."""
    return Request(
        task_kind=task.kind,
        labels=tuple(task.labels.items()),
        label=label if task.labelled else None,
        n=common["texts"],
        temperature=common.get("temperature", 1.0),
        words=common.get("words"),
        seed=int(common["rng"].integers(2**63)),
        wording=task.wording,
        marks=marks_of(task),
    )

"""When missing texts stop a run: before a query that would be asked about what is left, and would cost epsilon."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import ProviderError
from server.llm.use import Use

log = logging.getLogger("caucus.llm")

FEW = 3
"""Smallest number of missing texts that can stop a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What became of an order or of a request.

    Attributes:
        kind: Kind of its prompts (`server.llm.base.PROMPTS`).
        wanted: Number of texts, or 1 for a request.
        missing: How many of these are missing after the last pass.
        failed: Whether some are missing because their last request failed.
    """

    kind: str
    wanted: int
    missing: int
    failed: bool


def refuse_failed(asked: Sequence[Asked], use: Use, *, most_lost: float) -> None:
    """Raise `ProviderError` if texts are missing since a model did not answer, unless any number may be lost."""
    failed = sum(one.missing for one in asked if one.failed)
    if failed and most_lost < 1:
        raise ProviderError(
            "a language model left requests unanswered",
            expected="an answer to each request",
            got=f"none for {failed:,} of {sum(one.wanted for one in asked):,} texts; {use.losses_in_words}",
            do=_advice(use),
        )


def refuse_lost(asked: Sequence[Asked], use: Use, *, most_lost: float) -> None:
    """Raise `ProviderError` if more than the share `most_lost` of the texts, or all of a kind of prompt, are missing.

    Fewer than `FEW` missing texts never stop a run, and with `most_lost` = 1 nothing does. A smaller loss is logged.
    """
    wanted, missing = Counter[str](), Counter[str]()
    for one in asked:
        wanted[one.kind] += one.wanted
        missing[one.kind] += one.missing
    gone = [kind for kind, count in missing.items() if count >= FEW and count == wanted[kind]]
    got = f"{missing.total():,} of {wanted.total():,} missing"
    if gone and len(wanted) > 1:
        got += f", and all for prompts of {', '.join(kind.replace('_', ' ') for kind in gone)}"
    if most_lost < 1 and (gone or FEW <= missing.total() > most_lost * wanted.total()):
        raise ProviderError(
            "language models wrote too few texts",
            expected=f"at most {most_lost:.0%} of the texts missing (llm.most_lost), and not all of one kind of prompt",
            got=f"{got}; {use.losses_in_words}",
            do=_advice(use),
        )
    if missing.total():
        log.warning("texts are lost and the run goes on without them: %s; %s", got, use.losses_in_words)


def _advice(use: Use) -> str:
    again = "Resuming asks for the missing texts again; llm.most_lost=1 goes on without them"
    return ". ".join(part for part in (use.advice, again) if part)

"""What a plan guarantees, in words for both sides; `english.yaml` here and its translations have the sentences."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

from common.page.words import ENGLISH, catalogue, spelt

if TYPE_CHECKING:
    from common.plan.facts import PlanGuarantee


def differences(max_dropouts: int, language: str = ENGLISH) -> str:
    """Return a clause that says when the difference of two sums reveals one party's answer despite secure aggregation.

    Args:
        max_dropouts: Maximum number of parties that may be missing from a sum.
        language: Code of the reader's language.
    """
    say = catalogue(__package__, language)
    return str(say.differences.format(f"{say.dropouts} " if max_dropouts else ""))


def subsampling_clause(rate: float, *, by_user: bool, redrawn: bool, steps: bool, language: str = ENGLISH) -> str:
    """Return a clause that says who takes part in the answers to a query of a random subset of the records.

    Args:
        rate: Probability of taking part.
        by_user: Whether the records of a user take part together.
        redrawn: Whether a new subset is drawn for each answer or, if `steps`, for each training step.
        steps: Whether the query trains a model.
        language: Code of the reader's language.
    """
    say = catalogue(__package__, language).subsampled
    drawn = (say.step if steps else say.answer) if redrawn else say.once
    return str((say.user if by_user else say.record).format(spelt(f"{rate:g}", language), drawn))


def few_corrupt(corrupt: int, parties: int, language: str = ENGLISH) -> str:
    """Return the condition of a figure that relies on the noise of all hospitals but a few, as a clause."""
    say = catalogue(__package__, language).corrupt
    return str((say.few if corrupt else say.none).format(corrupt, parties))


def protected_unit(facts: "PlanGuarantee", language: str = ENGLISH) -> str:
    """Return the unit of which nobody can tell whether it took part, such as "a record"."""
    say = catalogue(__package__, language).guess
    return str(say.user if facts.by_user else say.record)


def readers_guess(facts: "PlanGuarantee", condition: str) -> str:
    """Return a sentence that says how often a reader of the texts can guess rightly who took part.

    Args:
        facts: The facts about the plan and its guarantee.
        condition: A clause on which the figure depends; empty if it depends on nothing.
    """
    right, unit = f"{facts.readers_guesses.right:g}", protected_unit(facts)
    return str(catalogue(__package__).guess.readers.format(right, unit, condition and f", {condition}"))


def not_covered(facts: "PlanGuarantee", show: Callable[[float], str], language: str = ENGLISH) -> list[str]:
    """Return a list of what the guarantee does not cover; each item reads "Heading: explanation.".

    Args:
        facts: The facts about the plan and its guarantee.
        show: Function that formats an epsilon as text, rounded up.
        language: Code of the reader's language.
    """
    say = catalogue(__package__, language).not_covered
    asked, noisy, masked = bool(facts.queries), facts.noisy, facts.masked
    items: list[str] = []
    if facts.unproven:
        items.append(say.unproven.format(", ".join(facts.unproven)))
    elif asked and not noisy:
        items.append(say.bare_masked if masked else say.bare)
    if asked and masked:
        against = {row.colluders: show(row.epsilon) for row in facts.against_colluders}
        items += _aggregation_gaps(facts, against, say, differences(facts.max_dropouts, language))
    if asked:
        stuffing = say.stuffing_masked if masked else say.stuffing
        items.append(f"{stuffing} {say.shirking}" if masked and noisy else stuffing)
        items += [say.traffic, say.side_channels, say.changed_file, say.decision]
    if asked and noisy:
        items += [say.groups, say.users.format(facts.adjacency.max_records) if facts.by_user else say.several]
    if noisy and facts.trains:
        items.append(say.training)
    return [*items, say.public, say.other_uses, say.faults]


def _aggregation_gaps(
    facts: "PlanGuarantee", against: dict[int, str], say: SimpleNamespace, differing: str
) -> Iterator[str]:
    noisy, colluders = facts.noisy, facts.assumed_colluders
    exposed = say.noisy_share if noisy else say.no_share
    if facts.malicious:
        yield say.signed.format(say.one_corrupt if facts.corrupt == 1 else say.few_corrupt.format(facts.corrupt))
    else:
        yield say.trusted
    if noisy and colluders == 0:
        yield say.curious_of.format(against[1]) if 1 in against else say.curious
    shown = noisy and colluders + 1 in against
    more = f" {say.against.format(colluders + 1, against[colluders + 1])}" if shown else ""
    yield say.colluding.format(colluders, more, facts.largest_coalition + 1, exposed)
    yield say.sums.format(differing)
    yield say.dropouts.format(facts.assumed_survivors)
    yield say.cryptography.format(exposed)

"""The facts about a plan and its guarantee, computed once, and in words; screens and documents of both sides use them.

    the sheet of a plan, in a hospital's terminal and on its page     client/approval
    `privacy.json`, the statement of a run and its report             server/documents/privacy.py, which adds fields

Epsilons are infinite if nothing bounds the loss, and hold at the plan's delta. `common/plan/guarantee.py` computes
them, and says what each of them means and which noise it counts. `english.yaml` here and its translations have the
sentences.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Protocol

from common.page.words import ENGLISH, catalogue, spelt
from common.plan.guesses import Guesses

SECURE = "secure, semi-honest coordinator"
MALICIOUS = "secure, malicious coordinator"
NO_AGGREGATION = "none"


class AskedQuery(Protocol):
    """What the facts need of a query: `PlannedQuery` has it, and so has the query of a `privacy.json`."""

    @property
    def mechanism(self) -> str:
        """The mechanism that adds noise to the answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacency:
    """The pairs of data sets that the guarantee makes hard to distinguish.

    Attributes:
        relation: Difference between the two data sets: "add or remove".
        unit: "sample" or "user": the unit of which one data set has one more than the other.
        max_records: Maximum number of records counted per unit.
    """

    relation: str = "add or remove"
    unit: str
    max_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstColluders:
    """Epsilon of one party's answers against the coordinator and some other parties.

    Attributes:
        colluders: Number of the other parties.
        epsilon: Epsilon against these parties and the coordinator.
    """

    colluders: int
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGuarantee:
    """What a plan guarantees, against whom, and what the guarantee assumes.

    Attributes:
        epsilon: The requested epsilon.
        delta: δ, a public constant; 0 if no queries are asked.
        planned_epsilon: Epsilon of the planned noise; above `epsilon` if the noise follows an incorrect formula from a
            paper.
        unproven: Names of the queries that have no privacy proof.
        released_epsilon: Epsilon of the released texts against a reader, while at most `corrupt_for_readers` parties
            leave out or tell their noise. Files of earlier versions, which have no `released_guesses`, counted the
            noise of all parties here.
        released_guesses: What a reader can find out under the same condition; None in files of earlier versions.
        if_all_add_noise_epsilon: Epsilon of the released texts if every party adds its noise and tells it to nobody; no
            guarantee. None in files of earlier versions.
        party_epsilon: Epsilon of a party's answers against the coordinator and the colluders.
        party_guesses: What the coordinator and the colluders can find out; None in files of earlier versions.
        adjacency: The change in the records that the guarantee hides.
        queries: The planned queries.
        max_attempts: Number of attempts at an answer that are charged to the budget.
        parties: L, the number of parties.
        max_dropouts: Maximum number of parties that may be missing from a sum.
        assumed_survivors: Minimum number of parties in a sum.
        assumed_colluders: Number of other parties that the plan assumes to reveal their noise to the coordinator.
        noise_parties: Number of parties whose noise shares add up to the full noise.
        threshold: Minimum number of parties that can remove a mask together.
        aggregation: "none", or secure against a semi-honest or a malicious coordinator.
        neighbours: Number of parties with which each party shares masks.
        corrupt: Number of parties that may deviate from the protocol.
        largest_coalition: Maximum number of colluding parties against which the masks remain secure.
        against_colluders: Epsilon for some numbers of colluders.
    """

    epsilon: float
    delta: float
    planned_epsilon: float
    unproven: tuple[str, ...] = ()
    released_epsilon: float
    released_guesses: Guesses | None = None
    if_all_add_noise_epsilon: float | None = None
    party_epsilon: float
    party_guesses: Guesses | None = None
    adjacency: Adjacency
    queries: tuple[AskedQuery, ...]
    max_attempts: int = 1
    parties: int
    max_dropouts: int
    assumed_survivors: int
    assumed_colluders: int
    noise_parties: int
    threshold: int = 0
    aggregation: str
    neighbours: int = 0
    corrupt: int = 0
    largest_coalition: int
    against_colluders: tuple[AgainstColluders, ...]

    @property
    def noisy(self) -> bool:
        """Whether the requested epsilon is finite, so that noise is added to all answers that can have it."""
        return math.isfinite(self.epsilon)

    @property
    def masked(self) -> bool:
        """Whether secure aggregation is used."""
        return self.aggregation != NO_AGGREGATION

    @property
    def malicious(self) -> bool:
        """Whether the masks remain secure against a coordinator that deviates from the protocol."""
        return self.aggregation == MALICIOUS

    @property
    def by_user(self) -> bool:
        """Whether all records of a user are protected together."""
        return self.adjacency.unit == "user"

    @property
    def trains(self) -> bool:
        """Whether parties train models."""
        return any(query.mechanism == "dp-sgd" for query in self.queries)

    @property
    def corrupt_for_readers(self) -> int:
        """Number of parties whose noise does not count against a reader (`common.plan.guarantee`)."""
        return self.corrupt if self.malicious else self.assumed_colluders

    @property
    def lifting(self) -> int | None:
        """The smallest number of other parties that could lift a party's masks together with the coordinator.

        None if no number of them could, or if there are no masks.
        """
        needed = self.largest_coalition + 1
        return needed if self.masked and needed < self.parties else None

    @property
    def readers_epsilon(self) -> float:
        """Epsilon against a reader, also in files of earlier versions, which counted the noise of corrupt parties."""
        if self.released_guesses:
            return self.released_epsilon
        few = self.corrupt_for_readers
        known = (row.epsilon for row in self.against_colluders if row.colluders == few and self.masked)
        return max(self.released_epsilon, self.planned_epsilon, *known)

    @property
    def readers_guesses(self) -> Guesses:
        """What a reader can find out; from epsilon and delta alone if the file does not say it."""
        return self.released_guesses or Guesses.of_pair(self.readers_epsilon, self.delta)

    @property
    def insiders_guesses(self) -> Guesses:
        """What the coordinator and the colluders can find out; from epsilon and delta alone if the file lacks it."""
        worst = max(self.epsilon, self.planned_epsilon, self.party_epsilon)
        return self.party_guesses or Guesses.of_pair(worst, self.delta)

    def readers_condition(self, language: str = ENGLISH) -> str:
        """Return the condition of a figure for readers, which counts the noise of all parties but a few, as a clause.

        Args:
            language: Code of the reader's language.
        """
        return few_corrupt(self.corrupt_for_readers, self.parties, language)


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


def protected_unit(facts: PlanGuarantee, language: str = ENGLISH) -> str:
    """Return the unit of which nobody can tell whether it took part, such as "a record"."""
    say = catalogue(__package__, language).guess
    return str(say.user if facts.by_user else say.record)


def readers_guess(facts: PlanGuarantee, condition: str) -> str:
    """Return a sentence that says how often a reader of the texts can guess rightly who took part.

    Args:
        facts: The facts about the plan and its guarantee.
        condition: A clause on which the figure depends; empty if it depends on nothing.
    """
    right, unit = f"{facts.readers_guesses.right:g}", protected_unit(facts)
    return str(catalogue(__package__).guess.readers.format(right, unit, condition and f", {condition}"))


def not_covered(facts: PlanGuarantee, show: Callable[[float], str], language: str = ENGLISH) -> list[str]:
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
    facts: PlanGuarantee, against: dict[int, str], say: SimpleNamespace, differing: str
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

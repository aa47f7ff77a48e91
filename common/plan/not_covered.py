"""The limits of a plan's guarantee, in plain words, which a run's statement and a hospital's sheet must contain."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Self

from common.page.words import ENGLISH, catalogue
from common.plan.guarantee import epsilon_against
from common.plan.plan import Plan
from common.plan.words import differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The properties of a plan on which the limits of its guarantee depend.

    Attributes:
        asked: Whether the plan has any questions.
        unproven: Names of the queries without a privacy proof.
        noisy: Whether epsilon is finite.
        masked: Whether secure aggregation is used.
        malicious: Whether the masks hold against a coordinator that deviates from the protocol.
        corrupt: Number of parties that may help a coordinator that deviates from the protocol.
        colluders: Number of parties that may reveal their noise.
        against: Epsilon against the coordinator and its colluders, as text, keyed by the number of colluders.
        largest_coalition: Maximum number of colluders that cannot remove a mask.
        max_dropouts: Maximum number of parties that may be missing from a sum.
        survivors: Minimum number of parties in a sum.
        user_records: Maximum number of records of one user that count; None if single records are protected.
        trained: Whether parties train models.
    """

    asked: bool
    unproven: tuple[str, ...]
    noisy: bool
    masked: bool
    malicious: bool
    corrupt: int
    colluders: int
    against: Mapping[int, str]
    largest_coalition: int
    max_dropouts: int
    survivors: int
    user_records: int | None
    trained: bool

    @classmethod
    def of(cls, plan: Plan, show: Callable[[float], str]) -> Self:
        """Return the scope of a plan's guarantee.

        Args:
            plan: The plan.
            show: Function that formats an epsilon as text, rounded up.
        """
        records = max((query.spec.max_records for query in plan.queries), default=1)
        numbers = [number for number in (1, plan.colluders + 1) if number < plan.parties]
        return cls(
            asked=bool(plan.queries),
            unproven=tuple(query.name for query in plan.queries if query.unproven),
            noisy=math.isfinite(plan.epsilon),
            masked=plan.secure,
            malicious=plan.malicious,
            corrupt=plan.corrupt,
            colluders=plan.colluders,
            against={number: show(epsilon_against(plan, number)) for number in numbers},
            largest_coalition=plan.largest_coalition,
            max_dropouts=plan.max_dropouts,
            survivors=plan.survivors,
            user_records=records if plan.unit == "user" else None,
            trained=any(query.mechanism == "dp-sgd" for query in plan.queries),
        )


def not_covered(scope: Scope, language: str = ENGLISH) -> list[str]:
    """Return a list of what the guarantee does not cover; each item reads "Heading: explanation."."""
    say = catalogue(__package__, language).not_covered
    items: list[str] = []
    if scope.unproven:
        items.append(say.unproven.format(", ".join(scope.unproven)))
    elif scope.asked and not scope.noisy:
        items.append(say.bare_masked if scope.masked else say.bare)
    if scope.asked and scope.masked:
        items += _aggregation_gaps(scope, say, differences(scope.max_dropouts, language))
    if scope.asked:
        stuffing = say.stuffing_masked if scope.masked else say.stuffing
        items.append(f"{stuffing} {say.shirking}" if scope.masked and scope.noisy else stuffing)
        items += [say.traffic, say.side_channels, say.changed_file, say.decision]
    if scope.asked and scope.noisy:
        users = say.several if scope.user_records is None else say.users.format(scope.user_records)
        items += [say.groups, users]
    if scope.noisy and scope.trained:
        items.append(say.training)
    return [*items, say.public, say.other_uses, say.faults]


def _aggregation_gaps(scope: Scope, say: SimpleNamespace, differing: str) -> Iterator[str]:
    noisy, colluders, against = scope.noisy, scope.colluders, scope.against
    exposed = say.noisy_share if noisy else say.no_share
    if scope.malicious:
        yield say.signed.format(say.one_corrupt if scope.corrupt == 1 else say.few_corrupt.format(scope.corrupt))
    else:
        yield say.trusted
    if noisy and colluders == 0:
        yield say.curious_of.format(against[1]) if 1 in against else say.curious
    shown = noisy and colluders + 1 in against
    more = f" {say.against.format(colluders + 1, against[colluders + 1])}" if shown else ""
    yield say.colluding.format(colluders, more, scope.largest_coalition + 1, exposed)
    yield say.sums.format(differing)
    yield say.dropouts.format(scope.survivors)
    yield say.cryptography.format(exposed)

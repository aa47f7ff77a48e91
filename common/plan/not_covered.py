"""The limits of a plan's guarantee, in plain words, which a run's statement and a hospital's sheet must contain."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

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


def not_covered(scope: Scope) -> list[str]:
    """Return a list of what the guarantee does not cover; each item reads "Heading: explanation."."""
    items: list[str] = []
    if scope.unproven:
        items.append(
            f"The private records: texts from {', '.join(scope.unproven)} are written from them. Names and "
            "numbers are masked by patterns, which miss some; any other content of a record can appear in its text."
        )
    elif scope.asked and not scope.noisy:
        items.append(
            "The private records: without noise, nothing about them is protected"
            + " except what secure aggregation hides: which hospital contributed which part of a sum" * scope.masked
            + "."
        )
    if scope.asked and scope.masked:
        items += _aggregation_gaps(scope)
    if scope.asked:
        items += _party_gaps(scope)
    if scope.asked and scope.noisy:
        items += _unit_gaps(scope)
    if scope.noisy and scope.trained:
        items.append(
            "Training in floating point: sums of gradients and their noise are exact integers, but a single record's "
            "gradient is not. If a hospital computes several gradients at once (micro_batch above 1 in its own file), "
            "records change each other's gradients by rounding errors, for which no noise was planned."
        )
    return [
        *items,
        (
            "What was public before: language models and public texts may contain facts about real people, true or "
            "false, and may repeat them. The guarantee is about the hospitals' records only."
        ),
        (
            "Other uses of the same records: each further run or release adds its own loss to this one, trial runs "
            "included. So does any choice made by looking at the records, such as labels, settings or the best of "
            "several runs."
        ),
        (
            "Faults in software or machines: the guarantee is proved for the protocol. Its implementation is tested, "
            "not formally verified."
        ),
    ]


def _aggregation_gaps(scope: Scope) -> list[str]:
    noisy, colluders, against = scope.noisy, scope.colluders, scope.against
    exposed = "with only that hospital's own share of the noise" if noisy else "without noise"
    if scope.malicious:
        few = "at most 1 hospital is" if scope.corrupt == 1 else f"at most {scope.corrupt} hospitals are"
        items = [
            (
                "A coordinator that stops or distorts the run: keys and survivors are signed by the hospitals, so it "
                "cannot open a single hospital's answer, but it can leave hospitals out, fail rounds and falsify the "
                f"sum that it uses. This holds while {few} corrupt and each hospital "
                "received the others' identity keys over a separate channel."
            )
        ]
    else:
        items = [
            (
                "A malicious coordinator: it is assumed to follow the protocol. One that deviates from it, for example "
                "by telling hospitals different things about who dropped out, may be able to see single hospitals' "
                "answers."
            )
        ]
    if noisy and colluders == 0:
        items.append(
            "A curious hospital: each hospital knows its own share of the noise and can subtract it. Against a "
            "hospital, the ε of one colluder applies" + (f" (ε = {against[1]})." if 1 in against else ".")
        )
    more = f" Against {colluders + 1}, ε is {against[colluders + 1]}." if noisy and colluders + 1 in against else ""
    return [
        *items,
        (
            f"More colluding hospitals than planned: the plan allows for {colluders}.{more} If "
            f"{scope.largest_coalition + 1} or more hospitals collude with the coordinator, they may open the masks "
            f"of the others and see each answer {exposed}."
        ),
        (
            f"Sums over different hospitals: {differences(scope.max_dropouts)}. ε holds for its records; that its "
            "answer is hidden among the others' does not."
        ),
        (
            f"More dropouts than planned: if fewer than {scope.survivors} hospitals stay, the round is "
            "refused. This preserves the noise but not the run."
        ),
        (
            "Broken cryptography: the masks hide single answers by computational hardness, not unconditionally. "
            "An attacker who breaks the key agreement or the ciphers, even years later from recorded traffic, sees "
            f"each hospital's answer {exposed}."
        ),
    ]


def _party_gaps(scope: Scope) -> list[str]:
    unseen = ", and behind the masks only a sum that no records add up to shows it" if scope.masked else ""
    shirking = ""
    if scope.masked and scope.noisy:
        shirking = " One that leaves out its share of the noise counts as a colluder."
    return [
        (
            f"A malicious hospital: it can stuff the ballot with votes for records that it does not have{unseen}. That "
            f"distorts the released texts.{shirking}"
        ),
        "Traffic: the coordinator and the network see which hospitals took part, when, and how much they sent.",
        (
            "Side channels at a hospital: its disks, memory, logs and staff are its own to protect. In a deployment "
            "its replies leave at times that depend on public numbers alone, as long as they are ready by then: a late "
            "one leaves at twice, four times and so on of its time, which shows that the hospital's machine was slow "
            "or busy, and how long it took up to that doubling; a coordinator may try to make replies late, and from "
            "many of them learn that time more exactly. How long a hospital's service takes to start tells roughly how "
            "many records it has. Who shares that machine can measure how long it really computes. Texts of a "
            "hospital's own model leave on the same doublings, so how long they took is known to a factor of two."
        ),
        (
            "A changed file of records: a hospital whose file differs from the one that the run began with refuses to "
            "go on, and names this reason. That the file was changed, and between which two questions, becomes known."
        ),
        (
            "A person's decision: who approves or refuses a plan at a hospital sees how many of its records have the "
            "plan's labels. The decision, and when it was made, become known without noise, and may depend on that."
        ),
    ]


def _unit_gaps(scope: Scope) -> list[str]:
    group = (
        "Facts about groups: what many records have in common, such as which words go with which diagnosis, is what "
        "the texts are meant to show. Such a fact can be learnt about a person whether or not their record was used."
    )
    if scope.user_records is not None:
        several = (
            "Who a user is: the person named in the column `user` of a hospital's file; if the file names nobody, all "
            f"its records belong to one user. At most {scope.user_records} records of one user count. A "
            "person with records at several hospitals, or under several names, is protected less."
        )
    else:
        several = (
            "People with several records: the guarantee is for one record. For a person with more, ε grows with the "
            "number of records; with Gaussian noise and the same δ it grows faster than in proportion to it."
        )
    return [group, several]

"""The guarantees of a plan: four figures, each rounded toward more privacy loss.

verify            everything that can be released, with the noise that is certain; this is the plan's guarantee
epsilon_released  the synthetic data, against a reader, while no more parties are corrupt than the plan assumes
epsilon_against   the answers of one party, against a coordinator that colludes with other parties
epsilon_alone     the answers of one party, against a coordinator that sees them without a mask

The second and third are of one record or, if `records` is above 1 in a plan that protects single records, of that many
records of one person together. Each has its `guesses_...`: what an attacker can find out with this noise, which is less
than epsilon alone implies. `epsilon_pure` returns the same epsilon as `verify`, but at a delta of 0.
`epsilon_if_all_add_noise` is no guarantee: it is what readers face if no party is corrupt.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from common.errors import ConfigError, PlanError
from common.plan.facts import MALICIOUS, NO_AGGREGATION, SECURE, Adjacency, AgainstColluders, PlanGuarantee
from common.plan.guesses import Guesses
from common.plan.plan import Plan
from common.privacy import accountant
from common.privacy.accountant import ReleasedAnswers


def verify(plan: Plan) -> float:
    """Return epsilon, at the plan's delta, of everything that the plan can release.

    Raises:
        PlanError: If this epsilon exceeds the epsilon of the plan.
    """
    spent = accountant.epsilon(plan.releases(), plan.delta)
    if spent > plan.epsilon:
        expected, do = f"enough for epsilon {plan.epsilon:g}", "Refuse this plan, or calibrate it again."
        raise PlanError("noise in the plan", expected=expected, got=f"epsilon {spent:g}", do=do)
    return spent


def epsilon_pure(plan: Plan) -> float:
    """Return the epsilon, at a delta of 0, of everything that the plan can release; infinite with Gaussian noise.

    The samplers' inexactness still adds to delta. Laplace noise and mechanisms inside a party cost l1 / scale per
    answer, and pure epsilons add up.
    """
    releases = plan.releases()
    if any(release.mechanism == "gaussian" or release.scale == 0 for release in releases):
        return math.inf
    return math.fsum(release.times * release.sensitivity.l1 / release.scale for release in releases)


def epsilon_released(plan: Plan, records: int = 1) -> float:
    """Return the epsilon of the data made from the noised sums, against an observer who is no party.

    Only the noise of parties that are not `corrupt_for_readers` counts, which is the planned noise by default.
    """
    return _with_shares(plan, _released(plan), records)


def corrupt_for_readers(plan: Plan) -> int:
    """Return the number of parties whose noise does not count against a reader.

    If the masks hold against a malicious coordinator, these are the corrupt parties: they may leave out their noise,
    which nobody can see in a masked sum, or tell it to the reader. Otherwise all parties are assumed to follow the
    protocol, and these are the colluders, who may tell their noise.
    """
    return plan.corrupt if plan.malicious else plan.colluders


def guesses_released(plan: Plan, records: int = 1) -> Guesses:
    """Return what an observer of the data made from the noised sums can find out; see `epsilon_released`."""
    return _guesses(plan, _released(plan), records)


def epsilon_if_all_add_noise(plan: Plan) -> float:
    """Return the epsilon of the data made from the noised sums if no party is corrupt; no guarantee relies on it."""
    return _with_shares(plan, plan.survivors)


def guesses_planned(plan: Plan) -> Guesses:
    """Return what can be found out from all that the plan can release, with the noise that is certain."""
    return _guesses(plan, plan.noise_parties)


def epsilon_against(plan: Plan, colluders: int, records: int = 1) -> float:
    """Return the epsilon of one party's answers if the coordinator and `colluders` other parties collude.

    This is the worst accepted case, with the fewest survivors. The sum hides the party behind its own share of noise
    and the shares of the survivors that do not collude. Only the party's own share is left in two cases: if the
    coalition is larger than secure aggregation is planned for, since it may then remove the party's mask; and without
    secure aggregation, since there is no mask. The party's own share always remains, since every sum that contains the
    party's answer contains this share. Answers that a party noises by itself are equally private against everybody.

    Args:
        plan: The plan.
        colluders: Number of other parties that collude, 0 to parties - 1.
        records: Number of records of one person that are to be hidden together.
    """
    return _with_shares(plan, _against(plan, colluders), records)


def guesses_against(plan: Plan, colluders: int, records: int = 1) -> Guesses:
    """Return what the coordinator and `colluders` other parties can find out; see `epsilon_against`."""
    return _guesses(plan, _against(plan, colluders), records)


def epsilon_alone(plan: Plan) -> float:
    """Return the epsilon of one party's answers against a coordinator that sees them without a mask.

    These answers are protected only by the party's own share of noise, which is the whole noise without secure
    aggregation.
    """
    return _with_shares(plan, 1)


def guesses_alone(plan: Plan) -> Guesses:
    """Return what can be found out from one party's answers without a mask; see `epsilon_alone`."""
    return _guesses(plan, 1)


def _released(plan: Plan) -> int:
    """Return the number of shares of noise in a sum that a reader cannot know."""
    return max(1, plan.survivors - corrupt_for_readers(plan))


def _against(plan: Plan, colluders: int) -> int:
    """Return the number of shares of noise that hide a party's answer from the coordinator and its colluders."""
    if not 0 <= colluders < plan.parties:
        raise ConfigError("colluders", expected=f"0 to {plan.parties - 1} other parties", got=colluders)
    alone = not plan.secure or colluders > plan.largest_coalition
    return 1 if alone else max(1, plan.survivors - colluders)


def _with_shares(plan: Plan, shares: int, records: int = 1) -> float:
    price = accountant.epsilon if records == 1 else accountant.epsilon_by_norm
    planned = price(_of_group(plan.releases(), records), plan.delta)
    if shares == plan.noise_parties:
        return planned
    bound = accountant.epsilon_by_norm(_of_group(plan.releases(shares), records), plan.delta)
    # A sum with more noise than planned is post-processing of the planned one; the bound is the coarser of two ways.
    return min(bound, planned) if shares > plan.noise_parties else bound


def _guesses(plan: Plan, shares: int, records: int = 1) -> Guesses:
    trade_off = accountant.trade_off(_of_group(plan.releases(shares), records), plan.delta)
    return Guesses.of(trade_off, _with_shares(plan, shares, records), plan.delta)


def _of_group(releases: Iterable[ReleasedAnswers], records: int) -> Iterator[ReleasedAnswers]:
    """Yield each release as it changes for several records at once.

    Of records that take part with probability q each, some take part with at most `records` times q.
    """
    for release in releases:
        changed = replace(release, sensitivity=release.sensitivity.of_group(records))
        rate = min(1.0, release.rate * records)
        if release.rate == 1 or rate < 1:
            yield replace(changed, rate=rate)
        else:
            yield replace(changed, rate=1.0, times=release.times * release.draws, draw="", draws=1)


def plan_guarantee(
    plan: Plan, *, colluders: int | None = None, coalitions: Iterable[int] | None = None
) -> PlanGuarantee:
    """Return the facts about a plan and its guarantee. Nothing is checked: the noise may be less than the plan claims.

    Args:
        plan: The plan.
        colluders: Number of other parties that help the coordinator in `party_epsilon`; by default the plan's own
            assumption.
        coalitions: Numbers of colluders in `against_colluders`; by default those that `not_covered` names. A plan may
            name so many parties that figures for all numbers take minutes.
    """
    helping = min(plan.colluders, plan.parties - 1) if colluders is None else colluders
    if coalitions is None:
        coalitions = (number for number in sorted({1, plan.colluders + 1}) if number < plan.parties)
    return PlanGuarantee(
        epsilon=plan.epsilon,
        delta=plan.delta if plan.queries else 0.0,
        planned_epsilon=accountant.epsilon(plan.releases(), plan.delta),
        unproven=tuple(planned.name for planned in plan.queries if planned.unproven),
        released_epsilon=epsilon_released(plan),
        released_guesses=guesses_released(plan),
        if_all_add_noise_epsilon=epsilon_if_all_add_noise(plan),
        party_epsilon=epsilon_against(plan, helping),
        party_guesses=guesses_against(plan, helping),
        adjacency=Adjacency(
            unit=plan.unit, max_records=max((planned.spec.max_records for planned in plan.queries), default=1)
        ),
        queries=plan.queries,
        max_attempts=plan.max_attempts,
        parties=plan.parties,
        max_dropouts=plan.max_dropouts,
        assumed_survivors=plan.survivors,
        assumed_colluders=plan.colluders,
        noise_parties=plan.noise_parties,
        threshold=plan.threshold,
        aggregation=NO_AGGREGATION if not plan.secure else MALICIOUS if plan.malicious else SECURE,
        neighbours=plan.degree,
        corrupt=plan.corrupt,
        largest_coalition=plan.largest_coalition,
        against_colluders=tuple(
            AgainstColluders(colluders=number, epsilon=epsilon_against(plan, number)) for number in coalitions
        ),
    )

"""This party's own limits: they come from its own file, never from a message."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from client.session import RefusalError
from common import validate
from common.errors import ConfigError, PlanError
from common.messages import Reason
from common.privacy.accountant import Release, epsilon_by_norm
from common.privacy.plan import Plan, epsilon_against, verify
from common.setup import log2_breach


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a party lets happen to its records.

    Attributes:
        max_epsilon: Largest ε of a plan; infinity only together with `unsafe_no_noise`.
        max_delta: Largest δ of a plan.
        max_total_epsilon: Largest ε, at the plan's δ, of all that this party's ledger holds and the new plan in full;
            None for no such limit. A coordinator gets no fresh budget by starting another run.
        colluders: Other parties that might tell the coordinator their noise: `max_epsilon` must hold even then.
        max_top: Largest Q.
        min_noise_parties: Fewest parties whose noise together makes up the planned one (U of the plan). It asks for
            company, not for safety: where U is 1 this party adds all the noise itself.
        min_unit_records: Fewest records of one user that the plan must protect together; 1 accepts sample level.
        malicious_coordinator: Refuses plans whose secure aggregation trusts the coordinator to follow the protocol.
        security_bits: A sparse graph of a plan must let a mask be lifted with probability below 2^-security_bits.
        unsafe_no_noise: Allows plans without noise. For experiments on data that is not private.
    """

    max_epsilon: float = 8.0
    max_delta: float = 1e-4
    max_total_epsilon: float | None = None
    colluders: int = 0
    max_top: int = 16
    min_noise_parties: int = 1
    min_unit_records: int = 1
    malicious_coordinator: bool = False
    security_bits: int = 40
    unsafe_no_noise: bool = False

    def __post_init__(self) -> None:
        validate.probability(max_delta=self.max_delta)
        validate.at_least(1, max_top=self.max_top, min_noise_parties=self.min_noise_parties)
        validate.at_least(0, colluders=self.colluders)
        for name, value in (("max_epsilon", self.max_epsilon), ("max_total_epsilon", self.max_total_epsilon)):
            if value is not None and not value > 0:
                raise ConfigError(name, expected="a number > 0", got=value)
        if math.isinf(self.max_epsilon) and not self.unsafe_no_noise:
            raise ConfigError("max_epsilon", expected="finite, or unsafe_no_noise set as well", got=self.max_epsilon)

    def check(self, plan: Plan, earlier: Iterable[Release] = ()) -> None:
        """Accept or refuse a plan before anything private is touched.

        Args:
            plan: The plan.
            earlier: All answers of this party's other runs.

        Raises:
            RefusalError: OVER_LIMIT, with the limit that is exceeded for this party's own log.
        """
        for name, value, limit in (
            ("epsilon", plan.epsilon, self.max_epsilon),
            ("delta", plan.delta, self.max_delta),
            ("votes in each direction", max(planned.spec.top for planned in plan.queries), self.max_top),
        ):
            _at_most(f"plan's {name}", value, limit)
        for name, value, limit in (
            ("parties that add noise", plan.noise_parties, self.min_noise_parties),
            ("records protected together", min(p.spec.max_records for p in plan.queries), self.min_unit_records),
        ):
            if value < limit:
                raise RefusalError(Reason.OVER_LIMIT, f"plan's {name}", expected=f"at least {limit}", got=value)
        if self.malicious_coordinator and not plan.malicious:
            raise RefusalError(Reason.OVER_LIMIT, "secure aggregation", expected="signed", got="a trusted coordinator")
        if plan.secure and plan.largest_coalition < min(self.colluders, plan.parties - 1):
            raise RefusalError(
                Reason.OVER_LIMIT, "coalition", expected=f"{self.colluders} or more", got=plan.largest_coalition
            )
        if plan.secure and log2_breach(plan) > -self.security_bits:
            raise RefusalError(
                Reason.OVER_LIMIT, "graph", expected=f"2^-{self.security_bits} or safer", got=f"degree {plan.degree}"
            )
        # The plan's claim is recomputed: a coordinator that writes a small epsilon over a small sigma is refused.
        try:
            spent = verify(plan)
        except PlanError as error:
            raise RefusalError(Reason.OVER_LIMIT, error.what, expected="enough for the plan's epsilon") from error
        if self.colluders > plan.colluders:
            known = min(self.colluders, plan.parties - 1)
            _at_most(f"plan's epsilon against {known} colluders", epsilon_against(plan, known), self.max_epsilon)
        if self.max_total_epsilon is not None:
            # In closed form, never below the truth and at once, however many runs there were.
            before = tuple(earlier)
            total = epsilon_by_norm([*before, *plan.releases()], plan.delta) if before else spent
            _at_most("epsilon of all runs", total, self.max_total_epsilon)


def _at_most(what: str, value: float, limit: float) -> None:
    if value > limit:
        raise RefusalError(Reason.OVER_LIMIT, what, expected=f"at most {limit}", got=value)

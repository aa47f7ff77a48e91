"""This party's own limits: they come from its own file, never from a message."""

import math
from dataclasses import dataclass

from client.session import RefusalError
from common import validate
from common.errors import ConfigError
from common.messages import Reason
from common.privacy.plan import Plan, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a party lets happen to its records in one run.

    Attributes:
        max_epsilon: Largest ε of a plan; infinity only together with `unsafe_no_noise`.
        max_delta: Largest δ of a plan.
        max_top: Largest Q.
        min_noise_parties: Fewest other parties' noise that this party relies on, itself included (U of the plan).
        min_unit_records: Fewest records of one user that the plan must protect together; 1 accepts sample level.
        malicious_coordinator: Refuses plans whose secure aggregation trusts the coordinator to follow the protocol.
        unsafe_no_noise: Allows plans without noise. For experiments on data that is not private.
    """

    max_epsilon: float = 8.0
    max_delta: float = 1e-4
    max_top: int = 16
    min_noise_parties: int = 1
    min_unit_records: int = 1
    malicious_coordinator: bool = False
    unsafe_no_noise: bool = False

    def __post_init__(self) -> None:
        validate.probability(max_delta=self.max_delta)
        validate.at_least(1, max_top=self.max_top, min_noise_parties=self.min_noise_parties)
        if math.isnan(self.max_epsilon) or self.max_epsilon <= 0:
            raise ConfigError("max_epsilon", expected="a number > 0", got=self.max_epsilon)
        if math.isinf(self.max_epsilon) and not self.unsafe_no_noise:
            raise ConfigError("max_epsilon", expected="finite, or unsafe_no_noise set as well", got=self.max_epsilon)

    def check(self, plan: Plan) -> None:
        """Accept or refuse a plan before anything private is touched.

        Raises:
            RefusalError: OVER_LIMIT, with the limit that is exceeded for this party's own log.
        """
        for name, value, limit in (
            ("epsilon", plan.epsilon, self.max_epsilon),
            ("delta", plan.delta, self.max_delta),
            ("votes in each direction", max(planned.spec.top for planned in plan.queries), self.max_top),
        ):
            if value > limit:
                raise RefusalError(Reason.OVER_LIMIT, f"plan's {name}", expected=f"at most {limit}", got=value)
        for name, value, limit in (
            ("parties that add noise", plan.noise_parties, self.min_noise_parties),
            ("records protected together", min(p.spec.max_records for p in plan.queries), self.min_unit_records),
        ):
            if value < limit:
                raise RefusalError(Reason.OVER_LIMIT, f"plan's {name}", expected=f"at least {limit}", got=value)
        if self.malicious_coordinator and not plan.malicious:
            raise RefusalError(Reason.OVER_LIMIT, "secure aggregation", expected="signed", got="a trusted coordinator")
        # The plan's claim is recomputed: a coordinator that writes a small epsilon over a small sigma is refused.
        verify(plan)

"""OnlyPrivate: the small model trained on the private records alone, at ε = ∞ (WASP, section 5.1, baselines).

It bounds what can be had without synthetic texts. It needs all records in one place, so it exists in a simulation only,
as `simulations/only_private.py`; wherever a coordinator would run it, it is refused before anything else.
"""

from dataclasses import dataclass
from typing import NoReturn

from common.errors import ConfigError
from server.domain import Membership, PrivacyTarget, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyPrivate:
    """A name in the configuration; no settings."""

    name: str = "only_private"

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> NoReturn:
        """Refuse.

        Raises:
            ConfigError: Always: a coordinator must not have the records.
        """
        del task, target, membership
        raise ConfigError(
            "method only_private",
            expected="a simulation: it trains on the private records themselves, without any privacy",
            got="a coordinator",
            do="Run it with caucus-simulate",
        )

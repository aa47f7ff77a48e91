"""Keeps the order of a run at one party: refuses what is out of order, replayed or unplanned. No I/O.

                 Open                    AskVotes (without secure aggregation)
        idle ───────────> between ─────────────────────────────────────┐
                           │   ^                                       │
                   AskKeys │   └───────────────────────────────────────┘
                           v
                       advertised ──AskShares──> shared ──AskVotes──> answered ──AskUnmask──> between

Invariants:
1. Every message after Open carries the run and the plan digest of that Open.
2. (index, attempt) never goes back; a new round starts with a larger pair. Which queries were paid is the ledger's
   business: it outlives this session and the process.
3. A new Open forgets everything that belonged to an unfinished round, so its masks are never lifted.
"""

from dataclasses import dataclass
from enum import Enum, auto

from common import messages as m
from common.errors import RefusedError
from common.privacy.plan import Plan


class RefusalError(RefusedError):
    """A refusal with the coarse reason that the coordinator may learn; the text stays in the party's own log."""

    def __init__(self, reason: m.Reason, what: str, *, expected: object = None, got: object = None) -> None:
        super().__init__(what, expected=expected, got=got)
        self.reason = reason


class Step(Enum):
    """What has been done last in the current round."""

    BETWEEN = auto()
    ADVERTISED = auto()
    SHARED = auto()
    ANSWERED = auto()


AFTER = {
    m.AskShares: (Step.ADVERTISED, Step.SHARED),
    m.AskVotes: (Step.SHARED, Step.ANSWERED),
    m.AskUnmask: (Step.ANSWERED, Step.BETWEEN),
}
"""Message within a round of secure aggregation: the step it needs and the step it leads to."""


@dataclass(slots=True)
class Session:
    """The run that this party takes part in.

    Attributes:
        run: Its identity, as the coordinator named it.
        plan: The agreed plan.
        at: Query and attempt of the current or last round; (-1, 0) before the first.
        step: What has been done last in it.
    """

    run: str
    plan: Plan
    at: tuple[int, int] = (-1, 0)
    step: Step = Step.BETWEEN

    def admit(self, envelope: m.Envelope) -> None:
        """Check one message against the invariants and advance.

        Raises:
            RefusalError: Nothing has changed.
        """
        if envelope.run != self.run or envelope.plan_digest != self.plan.digest():
            raise RefusalError(m.Reason.UNPLANNED, "message of another run or plan")
        if isinstance(envelope.body, m.Close):
            return
        if not 0 <= envelope.index < self.plan.total_queries:
            raise RefusalError(
                m.Reason.UNPLANNED, "query number", expected=f"below {self.plan.total_queries}", got=envelope.index
            )
        here = (envelope.index, envelope.attempt)
        kind = type(envelope.body)
        if kind is (m.AskKeys if self.plan.secure else m.AskVotes):
            if here <= self.at:
                raise RefusalError(m.Reason.OUT_OF_ORDER, "round", expected=f"after {self.at}", got=here)
            self.at, self.step = here, Step.ADVERTISED if self.plan.secure else Step.BETWEEN
            return
        needed, following = AFTER.get(kind, (None, Step.BETWEEN))
        if not self.plan.secure or here != self.at or self.step is not needed:
            raise RefusalError(
                m.Reason.OUT_OF_ORDER, kind.__name__, expected=f"{self.step.name} of {self.at}", got=f"it in {here}"
            )
        self.step = following

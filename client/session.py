"""The order of messages in a run at one party, without I/O; messages out of order, replayed or unplanned are refused.

    Open ──> opened ──AskShares──> ready ──Ask──> answered ──AskAgree──> agreed ──AskUnmask──> ready
                                                     └───── AskUnmask, semi-honest ────────────^

Without secure aggregation, Open leads to ready, and Ask leads back to ready. With secure aggregation, Ask leads back to
ready only if the answer is not summed.

Invariants:
1. Every message after Open carries the run, the plan digest and the attempt of that Open.
2. Query numbers only increase. A query with a larger number may leave the previous round unfinished; the shares for
   that round are then never sent. The ledger, which outlives this session and the process, records which queries were
   charged.
3. An accepted Open deletes the secrets of every round, so masks that were not lifted never will be.
4. A session is immutable. Each message leads to a new session, which the party enters only once it has answered. A
   message that is refused, for its order or its content, leaves the session unchanged.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from common import messages as m
from common.errors import RefusedError
from common.plan.plan import Plan


class RefusalError(RefusedError):
    """A refusal with the coarse reason that the coordinator may learn; the message is only for the party's own log."""

    def __init__(
        self, reason: m.Reason, what: str, *, expected: object = None, got: object = None, do: str | None = None
    ) -> None:
        super().__init__(what, expected=expected, got=got, do=do)
        self.reason = reason


class Step(Enum):
    """The last step of the protocol that was completed."""

    OPENED = auto()
    READY = auto()
    ANSWERED = auto()
    AGREED = auto()


@dataclass(frozen=True, slots=True)
class Session:
    """The state of the run that this party takes part in.

    Attributes:
        run: The run's ID, as the coordinator chose it.
        plan: The agreed plan.
        attempt: Attempt number of the set-up.
        at: Index of the current or last query; before the first query, one less than its index.
        step: The last step that was completed.
    """

    run: str
    plan: Plan
    attempt: int
    at: int
    step: Step

    @classmethod
    def opened(cls, envelope: m.Envelope, plan: Plan, first: int) -> "Session":
        """Return a new session, in the state before its set-up.

        Raises:
            RefusalError: The plan has no queries left.
        """
        if not 0 <= first < plan.total_queries:
            raise RefusalError(m.Reason.UNPLANNED, "first query", expected=f"below {plan.total_queries}", got=first)
        step = Step.OPENED if plan.secure else Step.READY
        return cls(run=envelope.run, plan=plan, attempt=envelope.attempt, at=first - 1, step=step)

    def after(self, envelope: m.Envelope) -> "Session":
        """Return the session that is in force once this message is answered.

        Raises:
            RefusalError: The message must not be answered.
        """
        if (envelope.run, envelope.plan_digest) != (self.run, self.plan.digest()):
            raise RefusalError(m.Reason.UNPLANNED, "message of another run or plan")
        at = self.at
        match envelope.body:
            case m.AskShares():
                legal, step = self.step is Step.OPENED and envelope.index == self.at + 1, Step.READY
            case m.Ask():
                if envelope.index >= self.plan.total_queries:
                    raise RefusalError(m.Reason.UNPLANNED, "query number", got=envelope.index)
                legal = self.step is not Step.OPENED and envelope.index > self.at
                masked = self.plan.secure and self.plan.query(envelope.index).summed
                at, step = envelope.index, Step.ANSWERED if masked else Step.READY
            case m.AskAgree():
                legal, step = self.plan.malicious and self._here(envelope, Step.ANSWERED), Step.AGREED
            case m.AskUnmask():
                needed = Step.AGREED if self.plan.malicious else Step.ANSWERED
                legal, step = self._here(envelope, needed), Step.READY
            case _:
                legal, step = False, self.step
        if not legal or envelope.attempt != self.attempt:
            raise RefusalError(
                m.Reason.OUT_OF_ORDER,
                type(envelope.body).__name__,
                expected=f"what follows {self.step.name} of query {self.at}, set-up {self.attempt}",
                got=f"it for query {envelope.index}, set-up {envelope.attempt}",
            )
        return replace(self, at=at, step=step)

    def _here(self, envelope: m.Envelope, step: Step) -> bool:
        return self.step is step and envelope.index == self.at

"""Admission of plans, checked against the hospital's `client.yaml` at each opening of a run and at each question.

1. The plan names this party's encoder, and its parties are those of this party's own roster. Both are public, and
   cannot change without a restart.
2. The run has not ended for good (`caucus-party ledger accept`).
3. The plan is approved (`client/approval/entries.py`). Before a decision, the coordinator learns nothing of 4 to 6.
4. The limits allow the plan in addition to the charges of other runs.
5. This party has a writer for each of the plan's queries for texts.
6. The file of records has not changed since the plan's run began.

Points 3, 4 and 6 are checked again at each question, so a lowered limit or a person's refusal takes effect at the next
question. A refusal charges nothing. Where the limits decide (`approval: auto`), what they decide tells what they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from client.approval.entries import Approvals
from client.guard import Limits
from client.session import RefusalError
from client.writers import base as writers
from client.writers.base import PartyWriter
from common.domain import PartyId
from common.ledger.ledger import Ledger
from common.messages import Reason
from common.plan.plan import Plan
from common.secagg.identity import Roster


@dataclass(frozen=True, slots=True, kw_only=True)
class HospitalTerms:
    """The terms in the hospital's `client.yaml` at one moment; a simulation, without approvals, ignores `approval`."""

    limits: Limits
    approval: str = "auto"


class Admission:
    """The rules by which one party admits plans; `client.service.PartyService` describes the other arguments.

    Args:
        encoder: Digest of the party's encoder.
        terms: Function that reads the hospital's `client.yaml`; called at each opening and question. It may raise
            RefusalError.
        data_set: The ledger's name for the party's records; empty if all data sets count together.
    """

    def __init__(
        self,
        *,
        party: PartyId,
        encoder: str,
        declared: int,
        terms: Callable[[], HospitalTerms],
        ledger: Ledger,
        data_set: str,
        writers: Mapping[str, PartyWriter],
        roster: Roster | None,
        approvals: Approvals | None,
    ) -> None:
        self._party = party
        self._encoder = encoder
        self._declared = declared
        self._terms = terms
        self._ledger = ledger
        self._data_set = data_set
        self._writers = writers
        self._roster = roster
        self._approvals = approvals
        self._latest = terms()

    @property
    def records_digest(self) -> str:
        """Keyed digest of the file of records that the hospital has read; empty in a simulation."""
        return self._approvals.data if self._approvals else ""

    def at_opening(self, run: str, plan: Plan) -> Limits:
        """Check a run's plan when the run is opened.

        Returns:
            The limits that the plan was checked with.

        Raises:
            RefusalError: The run is refused; the error has the reason.
            CaucusError: A writer cannot do what the plan requires.
        """
        if plan.encoder != self._encoder:
            what = "encoder: weights, tokenizer, prompt, pooling and longest text must be the coordinator's"
            raise RefusalError(Reason.ENCODER, what, expected=repr(plan.encoder[:64]), got=self._encoder)
        check_parties(plan, self._party, self._roster)
        if ended := self._ledger.ended(run):
            expected = "one that began after caucus-party ledger accept"
            raise RefusalError(Reason.OVER_LIMIT, "run", expected=expected, got=f"one that ended for good, {ended}")
        return self._admit(run, plan)

    def at_question(self, run: str, plan: Plan, checked: Limits) -> Limits:
        """Check the plan again at the next question of its run.

        `checked` are the limits that the plan was last checked against. The result and the errors are those of
        `at_opening`.
        """
        return self._admit(run, plan, checked)

    def ended(self, run: str) -> None:
        """Record that the coordinator has ended a run."""
        if self._approvals:
            self._approvals.note_end(run)

    def data_set(self, plan: Plan) -> str:
        """Return the ledger's name for the data set; empty at user level, as users may span several data sets."""
        return self._data_set if plan.unit == "sample" else ""

    def _admit(self, run: str, plan: Plan, checked: Limits | None = None) -> Limits:
        unreadable = None
        try:
            self._latest = self._terms()
        except RefusalError as error:
            unreadable = error
        check = partial(self._check, run, plan, checked, unreadable)
        if self._approvals:
            self._approvals.admit(run, plan, automatic=self._latest.approval == "auto", check=check)
        else:
            check()
        return self._latest.limits

    def _check(self, run: str, plan: Plan, checked: Limits | None, unreadable: RefusalError | None) -> None:
        """Raise an error if the plan would not be answered even if it is approved."""
        if unreadable:
            raise unreadable
        limits = self._latest.limits
        if limits != checked:  # the same limits would find the same; what is charged, the ledger checks
            limits.check(plan, self._ledger.charged(self.data_set(plan), but=run), declared=self._declared)
        if checked is None:
            writers.check_writers(plan, self._writers)


def check_parties(plan: Plan, party: PartyId, roster: Roster | None) -> None:
    """Raise a RefusalError with the reason ROSTER if the plan's parties are not those of this party's own roster."""
    if party >= plan.parties:
        raise RefusalError(Reason.ROSTER, "parties", expected=f"above {party}, this party's number", got=plan.parties)
    if roster and plan.parties != len(roster.keys):
        # Parties that do not exist would add no noise, and this party's share of it would be smaller. Of fewer parties
        # a larger share may help the coordinator than of all: it could choose its helpers, and few others.
        whole = f"{len(roster.keys)}, all of this party's roster"
        raise RefusalError(Reason.ROSTER, "parties", expected=whole, got=plan.parties)
    digest = roster.digest.hex() if roster else "none"
    if plan.malicious and plan.roster != digest:
        raise RefusalError(
            Reason.ROSTER, "roster", expected=f"this party's own, {digest[:32]}", got=repr(plan.roster[:32])
        )
    if roster and plan.max_records_per_party != roster.max_records:
        bound = f"{roster.max_records}, as this party's roster says"
        raise RefusalError(Reason.ROSTER, "records of a party", expected=bound, got=plan.max_records_per_party)

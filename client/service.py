"""The party service: all private work of a party takes place here, in a process that the hospital installed itself.

It holds private records, their embeddings, round keys and ledger, and answers each parcel with one parcel. Whether a
plan may run is decided in `client/admission.py`. The Flower app (`client/app.py`) is code that the coordinator pushes
to the hospital; it only relays parcels and sees nothing but what the coordinator may see. The same service object is
called directly in a simulation, and over gRPC (`channel.py`) in a deployment.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TypeVar

from client import answer, refusals, secagg
from client.admission import Admission, HospitalTerms
from client.approval.entries import Approvals
from client.audit_log import AuditLog
from client.guard import Limits
from client.noted_head import NotedHead
from client.records import EmbeddedRecords, PartyRecords
from client.releases import Releases
from client.schedule import Schedule
from client.session import RefusalError, Session
from client.writers.base import PartyWriter
from common import messages as m
from common import wire
from common.compute import Compute, directly
from common.domain import UNLABELLED, PartyId
from common.errors import CaucusError, ProtocolError
from common.ledger.ledger import Ledger
from common.phrases import NumberedParty
from common.plan.aggregation import aggregation_setup
from common.plan.plan import Plan
from common.queries import closed_set
from common.rng import secure_bytes
from common.secagg import ring
from common.secagg.identity import Identity, Roster
from common.secagg.messages import KeyAdvert
from common.versions import CAUCUS

log = logging.getLogger("caucus.party")

NO_PLAN = bytes(32)
LONGEST_NAME = 200
"""Maximum number of characters of a run's name, which is written into logs and the ledger."""

State = TypeVar("State")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """The state of the run that this party takes part in; each answered request replaces it by the next state.

    Attributes:
        session: The run, its plan, and the state of the protocol.
        limits: This party's limits when the plan was last checked.
        records: This party's records, embedded.
        setup: State of the key exchange of secure aggregation; None if secure aggregation is not used.
        round: State of the current query's secure aggregation; None between queries.
    """

    session: Session
    limits: Limits
    records: EmbeddedRecords
    setup: secagg.Advertised | secagg.Shared | secagg.Ready | None
    round: secagg.Masked | secagg.Agreed | None = None


class PartyService:
    """The service of one party.

    Args:
        party: The party's number in the roster.
        private: The party's embedded records. They may be empty: the party then contributes only noise, since the
            number of its records is private too. Plans must name the encoder that made the vectors.
        declared: Maximum number of records that the party declares, which is public: by the roster in a deployment; in
            a simulation, usually the number that it has.
        terms: Function that reads this party's own limits; called at each opening and question.
        ledger: This party's own ledger.
        writers: Writers of texts, keyed by kind of query.
        identity: The party's signing key; None if the party has no identity.
        roster: The identities of all parties, from this party's own file. No plan may have more parties than the
            roster, and plans that do not trust the coordinator to follow the protocol need one.
        names: The hospitals' names by number, for the log; without names, as in a simulation, "party 0" and so on.
        approvals: The hospital's decisions about plans; None in a simulation, where the limits alone decide.
        audit_log: The audit log, which gets a line for each request; None in a simulation.
        noted_head: The file that notes the ledger's head; None in a simulation.
        schedule: Schedule of replies; None in a simulation, where replies are sent at once.
        releases: The releases that the coordinator sent; None in a simulation, where no release is sent.
        compute: Function that computes results that are the same for several parties; only a simulation passes one.
    """

    def __init__(
        self,
        *,
        party: PartyId,
        private: PartyRecords,
        declared: int,
        terms: Callable[[], HospitalTerms],
        ledger: Ledger,
        writers: Mapping[str, PartyWriter] | None = None,
        identity: Identity | None = None,
        roster: Roster | None = None,
        names: Sequence[str] = (),
        approvals: Approvals | None = None,
        audit_log: AuditLog | None = None,
        noted_head: NotedHead | None = None,
        schedule: Schedule | None = None,
        releases: Releases | None = None,
        compute: Compute = directly,
    ) -> None:
        self._party = party
        self._private = private
        self._ledger = ledger
        self._writers = dict(writers or {})
        self._identity = identity
        self._roster = roster
        self._names = tuple(names)
        self._name = NumberedParty(party).text(names)
        self._audit_log = audit_log
        self._noted_head = noted_head
        self._schedule = schedule
        self._releases = releases
        self._compute = compute
        # Digests of all records take time and stay in the ledger: only where a limit looks at them.
        # With and without its label a text is the same record: a plan without labels asks for either.
        contents = (
            json.dumps([record.text, label]).encode()
            for record in private.records
            for label in dict.fromkeys((record.label, UNLABELLED))
        )
        self._admission = Admission(
            party=party,
            encoder=private.encoder.digest,
            declared=declared,
            terms=terms,
            ledger=ledger,
            data_set=ledger.data_set(contents) if terms().limits.separate_data_sets else "",
            writers=self._writers,
            roster=roster,
            approvals=approvals,
        )
        self._run: OpenRun | None = None
        self._lock = Lock()

    @property
    def records_digest(self) -> str:
        """Keyed digest of the file of records that the hospital has read; empty in a simulation."""
        return self._admission.records_digest

    def handle(self, parcel: m.Parcel) -> m.Parcel:
        """Return the reply to one parcel; after an error, it has only a coarse reason, and the log has the details."""
        envelope, plan = None, None
        with self._lock:
            came = self._schedule.clock() if self._schedule else 0.0
            try:
                if self._audit_log:
                    self._audit_log.ready()  # before anything is charged
                if self._noted_head:
                    self._noted_head.check(self._ledger)
                envelope = self._unpack(parcel)
                plan = self._planned(envelope) if self._schedule else None
                body = self._reply(envelope)
                if self._noted_head:
                    self._noted_head.write(self._ledger)
                self._note(envelope)  # on disk before anything leaves
                if plan and isinstance(envelope.body, m.Ask):
                    number = envelope.index // plan.max_attempts + 1
                    log.info("%s answers query %d of %d of run %s", self._name, number, plan.questions, envelope.run)
            except Exception as error:  # noqa: BLE001 a party never lets an exception, with its text, travel
                reason, detail = refusals.reason(error), refusals.detail(error, self._names)
                verb = "does not answer yet:" if reason is m.Reason.AWAITING else "refuses"
                log.warning("%s %s %s (%s): %s", self._name, verb, _request_name(envelope), reason.name, detail)
                try:
                    self._note(envelope, reason.name, detail)
                except (OSError, RefusalError) as unwritten:
                    problem = unwritten.strerror if isinstance(unwritten, OSError) else "it is full"
                    log.error("the audit log cannot be written: %s", problem)  # noqa: TRY400
                body = m.Refusal(reason)
            reply = wire.pack(
                m.Envelope(
                    run=envelope.run if envelope else "",
                    party=self._party,
                    plan_digest=envelope.plan_digest if envelope else NO_PLAN,
                    index=envelope.index if envelope else 0,
                    attempt=envelope.attempt if envelope else 0,
                    body=body,
                )
            )
            if self._schedule and envelope:  # under the lock: a message that comes meanwhile must not see it free
                self._schedule.wait(came, envelope.body, plan, envelope.index)
        return reply

    def stop(self) -> None:
        """Release the waiting replies at once; called when nobody can receive them any longer."""
        if self._schedule:
            self._schedule.stop()

    def _unpack(self, parcel: m.Parcel) -> m.Envelope:
        """Return the message in a parcel; before it is parsed, refuse one that is too large for the present run."""
        if self._run:
            plan = self._run.session.plan
            most = m.largest_request(parties=plan.parties, degree=plan.degree, answers=plan.total_queries)
            return wire.unpack(parcel, self._compute, largest=min(most, m.LARGEST_ENVELOPE))
        if len(parcel.envelope) > m.LARGEST_OPENING:  # keys or shares, as after a restart of this service
            raise RefusalError(m.Reason.OUT_OF_ORDER, "a large message", expected="Open first")
        return wire.unpack(parcel, self._compute)

    def _planned(self, envelope: m.Envelope) -> Plan | None:
        """Return the plan that a message belongs to; None if public facts alone decide that it is refused."""
        body = envelope.body
        try:
            if isinstance(body, m.Open):
                return self._agreed(envelope, body)
            plan = self._following(envelope).plan
            if isinstance(body, m.Ask):
                dimensions = self._private.vectors.shape[1]
                answer.check_query(body.query, plan, plan.query(envelope.index), dimensions=dimensions)
        except CaucusError:
            return None
        return plan

    def _agreed(self, envelope: m.Envelope, opening: m.Open) -> Plan:
        """Return the plan of an opening, if it is the plan that the envelope names."""
        plan = self._compute(_read_plan, opening.plan)
        if plan.digest() != envelope.plan_digest:
            raise RefusalError(m.Reason.UNPLANNED, "plan", expected="the digest in its envelope", got="another")
        return plan

    def _following(self, envelope: m.Envelope) -> Session:
        """Return the session after a message of the open run; check that the message is for this party and in order."""
        if self._run is None:
            raise RefusalError(m.Reason.OUT_OF_ORDER, type(envelope.body).__name__, expected="Open first")
        if envelope.party != self._party:
            raise ProtocolError("receiver", expected=NumberedParty(self._party), got=NumberedParty(envelope.party))
        return self._run.session.after(envelope)

    def _note(self, envelope: m.Envelope | None, reason: str = "", detail: str = "") -> None:
        if self._audit_log:
            self._audit_log.note(
                run=envelope.run[:LONGEST_NAME] if envelope else "",
                plan_digest=envelope.plan_digest if envelope else NO_PLAN,
                request=type(envelope.body).__name__ if envelope else "unreadable",
                index=envelope.index if envelope else 0,
                reason=reason,
                detail=detail,
            )

    def _reply(self, envelope: m.Envelope) -> m.Reply:
        body = envelope.body
        if isinstance(body, m.Open):
            return self._open(envelope, body)
        if isinstance(body, m.Close):
            return self._close(envelope)
        if isinstance(body, m.Release):
            return self._receive(envelope, body)
        following = self._following(envelope)
        assert self._run
        reply: m.Reply
        match body:
            case m.AskShares(adverts):
                setup, sealed = _in(self._run.setup, secagg.Advertised).share(adverts)
                self._run = replace(self._run, setup=setup)
                reply = m.Shares(sealed)
            case m.Ask(query, delivery):
                limits = self._admission.at_question(envelope.run, following.plan, self._run.limits)
                self._run = replace(self._run, limits=limits)
                if delivery and isinstance(self._run.setup, secagg.Shared):
                    self._run = replace(self._run, setup=self._run.setup.receive(delivery.inbox, delivery.sharers))
                reply, self._run = self._answer(self._run, envelope, query)
            case m.AskAgree(survivors):
                signature, self._run = self._agree(self._run, envelope, survivors)
                reply = m.Agreement(signature)
            case m.AskUnmask(survivors, signatures):
                if not following.plan.malicious:
                    _, self._run = self._agree(self._run, envelope, survivors)
                reply = _in(self._run.round, secagg.Agreed).unmask(signatures)
                self._ledger.unmask(envelope.run, envelope.index)  # on disk before any share leaves
                self._run = replace(self._run, round=None)
            case _:
                raise ProtocolError("message", expected="a request", got=type(body).__name__)
        self._run = replace(self._run, session=following)
        return reply

    def _close(self, envelope: m.Envelope) -> m.Closed:
        # Needs no session: a coordinator that resumes after its last answer has nothing to open. It can only erase.
        self._ledger.forget(envelope.run)
        self._admission.ended(envelope.run)
        if self._run and self._run.session.run == envelope.run:
            self._run = None
        return m.Closed()

    def _receive(self, envelope: m.Envelope, release: m.Release) -> m.Received:
        # Needs no session either: the run has ended.
        if envelope.party != self._party:
            raise ProtocolError("receiver", expected=NumberedParty(self._party), got=NumberedParty(envelope.party))
        if self._releases is None:
            raise RefusalError(m.Reason.UNPLANNED, "release", expected="none in a simulation")
        self._releases.keep(envelope.run, envelope.plan_digest, release.texts)
        return m.Received()

    def _open(self, envelope: m.Envelope, body: m.Open) -> m.Opened:
        if not (0 < len(envelope.run) <= LONGEST_NAME and envelope.run.isprintable()):
            raise ProtocolError("name of the run", expected=f"1 to {LONGEST_NAME} printable characters", got="another")
        plan = self._agreed(envelope, body)
        limits = self._admission.at_opening(envelope.run, plan)
        session = Session.opened(envelope, plan, body.first)
        setup, advert = self._begin(session) if plan.secure else (None, None)
        records = self._private.for_plan(
            plan.labels, unit=plan.unit, labels_per_record=plan.labels_per_record, by_section=plan.by_section
        )
        # Nothing can fail any more: a refused Open leaves the run before it as it was.
        self._run = OpenRun(session=session, limits=limits, records=records, setup=setup)
        return m.Opened(self._private.encoder.digest, advert, CAUCUS)

    def _begin(self, session: Session) -> tuple[secagg.Advertised, KeyAdvert]:
        setup = self._compute(
            aggregation_setup, session.plan, session.run, attempt=session.attempt, first=session.at + 1
        )
        signed = session.plan.malicious
        return secagg.begin(
            setup,
            self._party,
            secure_bytes(32),
            identity=self._identity if signed else None,
            roster=self._roster if signed else None,
            compute=self._compute,
        )

    def _answer(self, run: OpenRun, envelope: m.Envelope, query: closed_set.Query) -> tuple[m.Answer, OpenRun]:
        plan = run.session.plan
        masked = plan.secure and plan.query(envelope.index).summed
        ready = _in(run.setup, secagg.Ready) if masked else None
        digest = self._compute(closed_set.digest, query)
        counts = answer.answer(
            query,
            digest=digest,
            run=envelope.run,
            index=envelope.index,
            plan=plan,
            records=run.records,
            party=answer.Party(
                ledger=self._ledger,
                limits=run.limits,
                data_set=self._admission.data_set(plan),
                encoder=self._private.encoder,
                writers=self._writers,
            ),
        )
        if not ready:
            return m.Answer(ring.encode(counts)), run
        masked_round, words = ready.mask(envelope.index, counts, subject=digest)
        return m.Answer(words), replace(run, round=masked_round)

    def _agree(self, run: OpenRun, envelope: m.Envelope, survivors: frozenset[PartyId]) -> tuple[bytes, OpenRun]:
        agreed, signature = _in(run.round, secagg.Masked).agree(survivors)
        # On disk before anything leaves: two sums of one query over different parties could be subtracted.
        self._ledger.survivors(envelope.run, envelope.index, survivors)
        return signature, replace(run, round=agreed)


def _request_name(envelope: m.Envelope | None) -> str:
    """Return the name of a request for the log."""
    if envelope is None:
        return "an unreadable message"
    run = envelope.run[:LONGEST_NAME]
    # The coordinator's own word: it must not write further lines.
    return f"{type(envelope.body).__name__} of run {run if run.isprintable() else ascii(run)}"


def _read_plan(data: bytes) -> Plan:
    try:
        return Plan.from_json(data)
    except CaucusError as error:
        raise ProtocolError("plan", expected="one that this version can read and that is consistent") from error


def _in(value: object, kind: type[State]) -> State:
    if not isinstance(value, kind):
        # A message that was refused for its content has spent the state that it needed.
        raise RefusalError(m.Reason.OUT_OF_ORDER, "state", expected=kind.__name__, got=type(value).__name__)
    return value

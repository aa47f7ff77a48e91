"""The party service: everything that matters at a party lives here, in a process that the hospital installed itself.

It holds private records, their embeddings, round keys, limits and ledger, and answers one parcel with one parcel. The
Flower app (`client/app.py`) is code that the coordinator pushes to the hospital; it only relays parcels and sees
nothing but what the coordinator may see. The same object serves in process (simulation) and over gRPC (`channel.py`).
"""

import errno
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Protocol, TypeVar

from client import answer, records, secagg
from client.guard import Limits
from client.session import RefusalError, Session
from client.writers import base as writers
from client.writers.base import PartyWriter
from common import messages as m
from common import wire
from common.domain import PartyId, Record
from common.errors import (
    CaucusError,
    ConfigError,
    DropoutError,
    MembershipError,
    PlanError,
    ProtocolError,
    RefusedError,
    SignatureError,
)
from common.ledger.ledger import Ledger
from common.models.encoder import Encoder
from common.plan.aggregation import aggregation_setup
from common.plan.plan import Plan
from common.queries import closed_set
from common.rng import secure_bytes
from common.secagg import ring
from common.secagg.identity import Identity, Roster
from common.secagg.messages import KeyAdvert

log = logging.getLogger("caucus.party")

NO_PLAN = bytes(32)
LONGEST_NAME = 200
"""Of a run: it is written into logs and the ledger."""
LARGEST_PLAN = 2**16
"""Bytes: a hospital keeps each plan that it was shown. Those of all methods here have some 600."""

State = TypeVar("State")


class Desk(Protocol):
    """What a hospital's people see and decide (`client/approvals.py`)."""

    def admit(self, run: str, plan: Plan) -> None:
        """Let a plan in, or raise RefusalError."""

    def ready(self) -> None:
        """Raise RefusalError if what became of a request could not be logged."""

    def unchanged(self) -> None:
        """Raise RefusalError if the records on disk are no longer those that were read."""

    def note(self, *, run: str, plan_digest: bytes, request: str, index: int, reason: str, detail: str) -> None:
        """Log one request and what became of it."""


class PartyService:
    """One party.

    Args:
        party: Its number in the roster.
        private: Its records. May be empty: it then contributes noise alone, since its record count is private too.
        encoder: The encoder that the plan must name.
        limits: This party's own limits.
        ledger: This party's own ledger.
        writers: What writes texts, by kind of query.
        identity: Its signing key; None if it knows nobody's identity.
        roster: Everybody's identities, from this party's own file: no plan may have more parties. Plans that trust the
            coordinator with less than following the protocol need it.
        desk: Who approves plans and keeps the audit log; None in a simulation.

    Raises:
        ConfigError: The encoder would send texts to an endpoint.
    """

    def __init__(
        self,
        *,
        party: PartyId,
        private: Sequence[Record],
        encoder: Encoder,
        limits: Limits,
        ledger: Ledger,
        writers: Mapping[str, PartyWriter] | None = None,
        identity: Identity | None = None,
        roster: Roster | None = None,
        desk: Desk | None = None,
    ) -> None:
        if not getattr(encoder, "local", True):
            raise ConfigError(
                "encoder of a party", expected="one that runs here: private text is never sent anywhere",
                got=type(encoder).__name__, do="Choose embedding=pretrained, or another that is computed locally",
            )  # fmt: skip
        self._party = party
        self._private = private
        self._encoder = encoder
        self._limits = limits
        self._ledger = ledger
        # Digests of all records take time and stay in the ledger: only where a limit looks at them.
        contents = (json.dumps([record.text, record.label]).encode() for record in private)
        self._data_set = ledger.data_set(contents) if limits.separate_data_sets else ""
        self._writers = dict(writers or {})
        self._identity = identity
        self._roster = roster
        self._desk = desk
        self._session: Session | None = None
        self._records: records.EmbeddedRecords | None = None
        self._setup: secagg.Advertised | secagg.Shared | secagg.Ready | None = None
        self._round: secagg.Masked | secagg.Agreed | None = None
        self._lock = Lock()

    def handle(self, parcel: m.Parcel) -> m.Parcel:
        """Answer one parcel. Whatever goes wrong, the coordinator gets a coarse reason and the log here the rest."""
        envelope = None
        with self._lock:
            try:
                if self._desk:
                    self._desk.ready()  # before anything is charged
                envelope = wire.unpack(parcel)
                body = self._reply(envelope)
                self._note(envelope)  # on disk before anything leaves
            except Exception as error:  # noqa: BLE001 a party never lets an exception, with its text, travel
                reason = _reason(error)
                log.warning("party %d refuses (%s): %s", self._party, reason.name, _for_log(error))
                try:
                    self._note(envelope, reason.name, _for_log(error))
                except (OSError, RefusalError) as unwritten:
                    why = unwritten.strerror if isinstance(unwritten, OSError) else "it is full"
                    log.error("the audit log cannot be written: %s", why)  # noqa: TRY400
                body = m.Refusal(reason)
        return wire.pack(
            m.Envelope(
                run=envelope.run if envelope else "",
                party=self._party,
                plan_digest=envelope.plan_digest if envelope else NO_PLAN,
                index=envelope.index if envelope else 0,
                attempt=envelope.attempt if envelope else 0,
                body=body,
            )
        )

    def _note(self, envelope: m.Envelope | None, reason: str = "", detail: str = "") -> None:
        if self._desk:
            self._desk.note(
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
        if self._session is None:
            raise RefusalError(m.Reason.OUT_OF_ORDER, type(body).__name__, expected="Open first")
        if envelope.party != self._party:
            raise ProtocolError("receiver", expected=self._party, got=envelope.party)
        following = self._session.after(envelope)
        reply: m.Reply
        match body:
            case m.AskShares(adverts):
                self._setup, sealed = _in(self._setup, secagg.Advertised).share(adverts)
                reply = m.Shares(sealed)
            case m.Ask(query, delivery):
                if self._desk:
                    self._desk.unchanged()
                reply = self._answer(envelope, query, delivery, following.plan)
            case m.AskAgree(survivors):
                reply = m.Agreement(self._agree(envelope, survivors))
            case m.AskUnmask(survivors, signatures):
                if not following.plan.malicious:
                    self._agree(envelope, survivors)
                reply = _in(self._round, secagg.Agreed).unmask(signatures)
                self._round = None
            case _:
                raise ProtocolError("message", expected="a request", got=type(body).__name__)
        self._session = following
        return reply

    def _close(self, envelope: m.Envelope) -> m.Closed:
        # Needs no session: a coordinator that resumes after its last answer has nothing to open. It can only erase.
        answer.close(self._ledger, envelope.run, before=sys.maxsize)
        self._ledger.forget(envelope.run)
        if self._session and self._session.run == envelope.run:
            self._session = self._records = self._setup = self._round = None
        return m.Closed()

    def _open(self, envelope: m.Envelope, body: m.Open) -> m.Opened:
        if not (0 < len(envelope.run) <= LONGEST_NAME and envelope.run.isprintable()):
            raise ProtocolError("name of the run", expected=f"1 to {LONGEST_NAME} printable characters", got="another")
        plan = _read_plan(body.plan)
        if plan.digest() != envelope.plan_digest:
            raise RefusalError(m.Reason.UNPLANNED, "plan", expected="the digest in its envelope", got="another")
        if plan.encoder != self._encoder.digest:
            what = "encoder: weights, tokenizer, prompt, pooling and longest text must be the coordinator's"
            raise RefusalError(m.Reason.ENCODER, what, expected=repr(plan.encoder[:64]), got=self._encoder.digest)
        if self._party >= plan.parties:
            raise RefusalError(m.Reason.UNPLANNED, "parties", expected=f"above {self._party}", got=plan.parties)
        if self._roster and plan.parties > len(self._roster.keys):
            # Parties that nobody knows would add no noise, and this party's share of it would be the smaller.
            known = f"at most {len(self._roster.keys)}, those of this party's roster"
            raise RefusalError(m.Reason.UNPLANNED, "parties", expected=known, got=plan.parties)
        self._limits.check(plan, self._ledger.charged(self._data_set_of(plan), but=envelope.run))
        writers.check(plan, self._writers)
        if self._desk:
            self._desk.admit(envelope.run, plan)
        if plan.delta * len(self._private) >= 1:
            log.warning("the plan's delta is not below one in the number of records of party %d", self._party)
        session = Session.opened(envelope, plan, body.first)
        setup, advert = self._begin(session) if plan.secure else (None, None)
        before = self._session
        if before is None or (before.run, before.plan) != (envelope.run, plan):
            # Not when a run is opened again: a hospital that embeds for longer than a run waits would never be ready.
            owners = _users(self._private) if plan.unit == "user" else None
            self._records = records.embed(self._private, plan.labels, self._encoder, owners)
        # Nothing can fail any more: a refused Open leaves the run before it as it was.
        self._session, self._setup, self._round = session, setup, None
        return m.Opened(self._encoder.digest, advert)

    def _data_set_of(self, plan: Plan) -> str:
        """What the ledger calls the records, where they have a budget of their own; a user's may be in any data set."""
        return self._data_set if plan.unit == "sample" else ""

    def _begin(self, session: Session) -> tuple[secagg.Advertised, KeyAdvert]:
        setup = aggregation_setup(session.plan, session.run, attempt=session.attempt, first=session.at + 1)
        signed = session.plan.malicious
        return secagg.begin(
            setup,
            self._party,
            secure_bytes(32),
            identity=self._identity if signed else None,
            roster=self._roster if signed else None,
        )

    def _answer(
        self, envelope: m.Envelope, query: closed_set.Query, delivery: m.Delivery | None, plan: Plan
    ) -> m.Answer:
        if delivery and isinstance(self._setup, secagg.Shared):
            self._setup = self._setup.receive(delivery.inbox, delivery.sharers)
        ready = _in(self._setup, secagg.Ready) if plan.secure and plan.query(envelope.index).summed else None
        counts = answer.answer(
            query,
            run=envelope.run,
            index=envelope.index,
            plan=plan,
            records=_in(self._records, records.EmbeddedRecords),
            ledger=self._ledger,
            limits=self._limits,
            data_set=self._data_set_of(plan),
            encoder=self._encoder,
            writers=self._writers,
        )
        if not ready:
            return m.Answer(ring.encode(counts))
        self._round, words = ready.mask(envelope.index, counts, subject=closed_set.digest(query))
        return m.Answer(words)

    def _agree(self, envelope: m.Envelope, survivors: frozenset[PartyId]) -> bytes:
        agreed, signature = _in(self._round, secagg.Masked).agree(survivors)
        # On disk before anything leaves: two sums of one query over different parties could be subtracted.
        self._ledger.survivors(envelope.run, envelope.index, survivors)
        self._round = agreed
        return signature


def _read_plan(data: bytes) -> Plan:
    if len(data) > LARGEST_PLAN:
        raise ProtocolError("plan", expected=f"at most {LARGEST_PLAN} bytes", got=len(data))
    try:
        return Plan.from_dict(json.loads(data))
    except (ValueError, ArithmeticError, RecursionError, CaucusError) as error:
        raise ProtocolError("plan", expected="one that this version can read and that is consistent") from error


def _users(private: Sequence[Record]) -> list[str]:
    """Whose each record is; in a file that names nobody, all are the party's, as one user."""
    return [record.user or "" for record in private]


def _reason(error: Exception) -> m.Reason:
    match error:
        case RefusalError():
            return error.reason
        case RefusedError():
            return m.Reason.OVER_LIMIT
        case DropoutError():
            return m.Reason.TOO_FEW
        case SignatureError() | MembershipError():
            return m.Reason.IDENTITY
        case ProtocolError() | ConfigError() | PlanError() | OverflowError():
            return m.Reason.MALFORMED
        case _:
            return m.Reason.INTERNAL


def _for_log(error: Exception) -> str:
    # Only our own messages are known to be free of private text; of others the type must do, or what the system says.
    if isinstance(error, OSError) and isinstance(error.errno, int) and error.errno in errno.errorcode:
        return f"{type(error).__name__}: {os.strerror(error.errno)}"
    return str(error) if isinstance(error, CaucusError) else type(error).__name__


def _in(value: object, kind: type[State]) -> State:
    if not isinstance(value, kind):
        # A message that was refused for its content has spent the state that it was for.
        raise RefusalError(m.Reason.OUT_OF_ORDER, "state", expected=kind.__name__, got=type(value).__name__)
    return value

"""One exchange with the parties of a run: a request to each, the replies, and the reasons why parties are missing.

Each message is put into an envelope that states its position in the run. A reply counts only if it has the same
position and is of the expected type. A party that sends anything else, or nothing, is left out of the exchange. The
reason is logged and is part of the error if too few parties remain.

Parties are identified by numbers here; the code that shows a log line or an error replaces the numbers by hospitals'
names (`failure.py`).

The last exchange of a run is the delivery of its texts; `client/releases.py` is the parties' side. Each party decides
for itself whether to accept the texts. The coordinator learns these decisions, and which nodes are connected. The texts
go only to the nodes of the parties that answered the run.
"""

import logging
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from common import messages as m
from common import wire
from common.domain import PartyId
from common.errors import AwaitingError, DropoutError, ProtocolError, RejectedError
from common.phrases import NumberedParty, Phrase, Turnout
from common.plan.plan import Plan
from common.schedule import seconds
from server.federation.absence import SILENT, Absence, absence_advice, would_refuse_again
from server.federation.network import FlowerNetwork, Network

log = logging.getLogger("caucus.ask")

OFFLINE = "is offline"

Body = TypeVar("Body")


class Parties:
    """The parties of one run, as the coordinator reaches them.

    Args:
        network: Transport of the parcels.
        plan: The agreed plan.
        run: ID of the run.

    Attributes:
        attempt: Attempt number of the current set-up, from 0; -1 before the first set-up.
    """

    def __init__(self, *, network: Network, plan: Plan, run: str) -> None:
        self.attempt = -1
        self._network = network
        self._plan, self._plan_digest = plan, plan.digest()
        self._run = run
        self._absences: dict[PartyId, Absence] = {}

    def begin_setup(self) -> None:
        """Number all further messages as messages of a new set-up."""
        self.attempt += 1
        self._absences.clear()

    def begin_query(self) -> None:
        """Discard the reasons why parties were missing before this query."""
        self._absences.clear()

    def may_return(self) -> bool:
        """Return whether a missing party may be restarting or has restarted; only then can a retry help."""
        return any(absence.restarts for absence in self._absences.values())

    def join(self, request: m.Open | m.Close, kind: type[Body], *, needed: int, index: int) -> dict[PartyId, Body]:
        """Send one request to every node, and return the replies, which identify the nodes' parties.

        Args:
            request: The request, which is the same for all.
            kind: Expected type of the replies.
            needed: Minimum number of replies of this type.
            index: Index, in the plan, of the attempt at a query.

        Returns:
            The replies, keyed by party.

        Raises:
            AwaitingError: There are fewer such replies, because other parties have yet to approve the plan.
            RejectedError: There are fewer such replies, and another party refused permanently.
            DropoutError: There are fewer such replies; the error contains the reasons of the other parties.
        """
        parcel = wire.pack(self._envelope(0, request, index=index))
        replies = self._network.join(parcel, self._plan.parties, computing=self._computing(request, index))
        silent = set(range(self._plan.parties)) - replies.keys()
        return self._read(replies, silent, kind, needed=needed, index=index, where=type(request).__name__.lower())

    def exchange(
        self, requests: Mapping[PartyId, m.Request], kind: type[Body], *, needed: int, index: int
    ) -> dict[PartyId, Body]:
        """Send each party its request, and return the replies; see `join` for the other arguments and the errors."""
        parcels = wire.pack_all({party: self._envelope(party, body, index=index) for party, body in requests.items()})
        computing = next((self._computing(body, index) for body in requests.values()), 0.0)  # the same for all
        replies = self._network.exchange(parcels, computing=computing)
        silent = requests.keys() - replies.keys()
        where = f"query {index}, {kind.__name__}"
        return self._read(replies, silent, kind, needed=needed, index=index, where=where)

    def dismiss(self) -> None:
        """Tell the parties that replied to an opening that the run has ended, so that they need not decide on it."""
        silent = {party for party, absence in self._absences.items() if absence.silent}
        requests = dict.fromkeys(sorted(set(range(self._plan.parties)) - silent), m.Close())
        self._absences.clear()  # they are told by the error that is raised
        self.exchange(requests, m.Closed, needed=0, index=0)

    def _computing(self, request: m.Request, index: int) -> float:
        return seconds(request, self._plan.max_records_per_party, self._plan, index) or 0.0

    def _envelope(self, party: PartyId, body: m.Request, *, index: int) -> m.Envelope:
        return m.Envelope(
            run=self._run, party=party, plan_digest=self._plan_digest, index=index, attempt=self.attempt, body=body
        )

    def _read(
        self,
        replies: Mapping[PartyId, m.Parcel],
        silent: set[PartyId],
        kind: type[Body],
        *,
        needed: int,
        index: int,
        where: str,
    ) -> dict[PartyId, Body]:
        self._absences |= dict.fromkeys(silent, SILENT)
        bodies: dict[PartyId, Body] = {}
        for party, parcel in sorted(replies.items()):
            try:
                reply = wire.unpack(parcel)
            except ProtocolError as error:
                self._absences[party] = Absence(Phrase("unreadable reply: ", error))
                continue
            place = (reply.run, reply.party, reply.plan_digest, reply.index, reply.attempt)
            match reply.body:
                case m.Refusal(reason):
                    self._absences[party] = Absence(m.refused_for(reason, self._compared(reason)), refusal=reason)
                case kind() if place == (self._run, party, self._plan_digest, index, self.attempt):
                    bodies[party] = reply.body
                case _ if reply.party != party:
                    words = f"answered as number {reply.party}: it has another roster.json"
                    self._absences[party] = Absence(words)
                case _:
                    self._absences[party] = Absence(f"out of place: {type(reply.body).__name__}")
        for party, absence in self._absences.items():
            log.warning("%s %s", NumberedParty(party), absence.words)
        if len(bodies) < needed:
            if self._absences and all(one.refusal is m.Reason.AWAITING for one in self._absences.values()):
                raise AwaitingError(self._absences)
            kind_of_error = RejectedError if would_refuse_again(self._absences) else DropoutError
            raise kind_of_error(
                "too few parties take part",
                expected=f"at least {needed} of {self._plan.parties}",
                got=Turnout(len(bodies), {party: absence.words for party, absence in self._absences.items()}),
                where=where,
                do=absence_advice(self._absences),
            )
        return bodies

    def _compared(self, reason: m.Reason) -> str:
        """Return a clause with the coordinator's digest if different digests led to the refusal; otherwise empty."""
        match reason:
            case m.Reason.ENCODER:
                return f"not {self._plan.encoder[:16]}: weights, prompt and pooling are compared"
            case m.Reason.ROSTER if self._plan.malicious:
                return f"not {self._plan.roster[:16]}: rosters are compared (caucus-party roster, then restart)"
            case _:
                return ""


def send_texts(
    network: FlowerNetwork, texts: bytes, parties: AbstractSet[PartyId], *, run: str, plan_digest: bytes
) -> dict[PartyId, str]:
    """Send the content of the run's `synthetic.jsonl` to each of these parties that is connected.

    Returns:
        A clause for each party that states why the party does not have the texts; empty if it has them.
    """
    body = m.Release(texts)
    envelopes = {
        party: m.Envelope(run=run, party=party, plan_digest=plan_digest, body=body)
        for party in sorted(parties & network.online())
    }
    replies = network.exchange(wire.pack_all(envelopes)) if envelopes else {}
    problems = dict.fromkeys(sorted(parties), OFFLINE)
    for party, sent in envelopes.items():
        problems[party] = _problem(sent, replies[party]) if party in replies else str(SILENT.words)
    return problems


def _problem(sent: m.Envelope, parcel: m.Parcel) -> str:
    try:
        reply = wire.unpack(parcel)
    except ProtocolError:
        return "sent a reply that cannot be read"
    match reply.body:
        case m.Refusal(reason):
            return m.refused_for(reason)
        case m.Received() if (reply.run, reply.party, reply.plan_digest) == (sent.run, sent.party, sent.plan_digest):
            return ""
        case _:
            return "sent a reply that is out of place"

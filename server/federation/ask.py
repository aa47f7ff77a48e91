"""One private query, end to end: the mirror of `client/answer.py`.

1. Answered before? Then that answer is the answer: a paid query is never asked twice.
2. Reserve: the query's bytes and its charge are on disk before any party sees it.
3. Aggregate: under secure aggregation two exchanges (votes, unmasking), three if the coordinator is trusted with
   nothing (votes, agreement, unmasking); without it one. The set-up, two exchanges, was made once for all queries.
4. Commit: the noised total is on disk before anyone uses it.

What this side learns is the noised total over the survivors, and who took part; of a query that is not summed, each
party's own noised answer. A round that fails raises with its cause; it never returns the sum of fewer parties than the
noise was planned for. Asked again after a crash or a failure, after a new set-up, the parties recognise the same bytes
and answer with the same noise, so it is free to ask again (`federation.retries`, and `resume`); once survivors were
named for unmasking, only the very same survivors will do, because two sums over different sets could be subtracted.
Where that cannot be, because one of them is gone for good, a further attempt with fresh noise is made, if the plan has
paid for it (`federation.max_attempts`).
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from common import messages as m
from common import wire
from common.domain import PartyId
from common.errors import DropoutError, ProtocolError
from common.ledger.ledger import Ledger
from common.plan.aggregation import aggregation_setup
from common.plan.plan import Plan
from common.queries import closed_set
from common.secagg import ring
from common.secagg.identity import Roster
from common.secagg.messages import UnmaskShares
from server.federation import secagg
from server.federation.checkpoint import Checkpoint
from server.federation.network import Network

log = logging.getLogger("caucus.ask")

_SILENT = "did not answer"
_RESTARTED = {_SILENT, f"refused: {m.Reason.OUT_OF_ORDER.name}"}
"""What is heard of a party that starts anew, and of one that has: it knows of no run."""

Body = TypeVar("Body")
Aggregated = tuple[NDArray[np.int64], frozenset[PartyId]]
"""An answer, and the parties that it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer to a query.

    Attributes:
        index: Number of the attempt in the plan.
        values: (length,) int64, exact sum of the survivors' counts and noise, in grid units; of a query that is not
            summed (survivors, length), a row for each party.
        survivors: How many parties it holds.
    """

    index: int
    values: NDArray[np.int64]
    survivors: int


class Federation:
    """The parties of one run, seen from the coordinator.

    Args:
        network: How parcels reach them.
        plan: The agreed plan.
        run: Identity of the run, unique among all runs of these parties.
        checkpoint: Where queries and answers are kept.
        ledger: The coordinator's own ledger.
        roster: The parties' identities, where the plan names their digest.
        retries: How often an opening, or a query, that failed is made anew before the run ends; free for privacy.
    """

    def __init__(
        self,
        *,
        network: Network,
        plan: Plan,
        run: str,
        checkpoint: Checkpoint,
        ledger: Ledger,
        roster: Roster | None = None,
        retries: int = 0,
    ) -> None:
        self._network = network
        self._retries = retries
        self._plan = plan
        self._run = run
        self._checkpoint = checkpoint
        self._ledger = ledger
        self._roster = roster
        self._attempt = -1
        self._failed = False
        self._joined: frozenset[PartyId] = frozenset()
        self._ready: secagg.Ready | None = None
        self._inboxes: dict[PartyId, m.Delivery] = {}
        self._refused: dict[PartyId, str] = {}

    def open(self) -> None:
        """Send the plan to every party, learn who takes part, and set up all queries that are left.

        Raises:
            DropoutError: Too few accept it; the coarse reasons of those who refuse are named.
        """
        for left in reversed(range(self._retries + 1)):
            try:
                self._open()
            except DropoutError as error:
                # Who refused would refuse again, but for one that is or has just been restarted.
                if not left or not _RESTARTED & set(self._refused.values()):
                    raise
                log.warning("the run is opened again: %s", error)
            else:
                return

    def _open(self) -> None:
        self._attempt, self._failed = self._attempt + 1, True  # until it has not
        first = self._first_unanswered()
        if first is None:  # resumed after the last answer: the parties may still keep theirs
            self._network.join(wire.pack(self._envelope(0, m.Close(), index=0)), self._plan.parties)
            self._failed = False
            return
        self._refused.clear()
        opening = self._envelope(0, m.Open(self._plan.to_json(), first), index=first)
        replies = self._network.join(wire.pack(opening), self._plan.parties)
        self._silent(set(range(self._plan.parties)) - replies.keys())
        opened = self._bodies(replies, m.Opened, index=first)
        self._joined = frozenset(opened)
        self._enough("open", self._joined, self._plan.survivors)
        if self._plan.secure:
            self._set_up(opened, first)
        self._failed = False

    def _set_up(self, opened: Mapping[PartyId, m.Opened], first: int) -> None:
        setup = aggregation_setup(self._plan, self._run, attempt=self._attempt, first=first)
        adverts = {party: body.advert for party, body in opened.items() if body.advert}
        sharing, adverts = secagg.collect_adverts(setup, adverts, roster=self._roster)
        asked = dict.fromkeys(adverts, m.AskShares(adverts))
        shared = self._exchange(asked, m.Shares, needed=self._plan.survivors, index=first)
        self._ready, inboxes = sharing.collect({party: shares.sealed for party, shares in shared.items()})
        self._joined = self._ready.sharers
        self._inboxes = {party: m.Delivery(inbox, self._joined) for party, inbox in inboxes.items()}

    def close(self) -> None:
        """Let the parties forget the run's keys."""
        last = self._plan.total_queries - 1
        self._exchange(dict.fromkeys(self._joined, m.Close()), m.Closed, needed=0, index=last)

    def ask(self, name: str, nth: int, query: closed_set.Query) -> Answered:
        """Ask a planned query.

        Args:
            name: Its name in the plan.
            nth: Which of its planned answers, from 0.
            query: What is asked.

        Raises:
            DropoutError: Too few parties answered; resuming asks again at no cost to privacy.
        """
        attempts = [self._plan.index(name, nth, attempt) for attempt in range(self._plan.max_attempts)]
        charged = {entry.index: entry for entry in self._ledger.entries(self._run)}
        for index in attempts:
            if self._checkpoint.answer(index) is not None:
                self._ledger.commit(self._run, index)  # we may have died between the two commits
                return self._answered(index)
        index = max((index for index in attempts if index in charged), default=attempts[0])
        tries = self._plan.max_attempts + self._retries
        while True:
            tries -= 1
            try:
                if self._failed:
                    self._open()
                if tries < len(attempts) and index < attempts[-1] and self._lost(index):  # free tries come first
                    index += 1
                return self._attempted(index, query)
            except DropoutError as error:
                if not tries:
                    raise
                log.warning("query %d failed and is asked again: %s", index, error)

    def _lost(self, index: int) -> bool:
        """Whether a party that was named for this attempt is gone, so that only fresh noise and a charge help."""
        named = [entry.survivors for entry in self._ledger.entries(self._run) if entry.index == index]
        return any(survivors is not None and not survivors <= self._joined for survivors in named)

    def _attempted(self, index: int, query: closed_set.Query) -> Answered:
        query = self._checkpoint.reserve(index, query)
        entry = self._ledger.reserve(
            run=self._run,
            index=index,
            plan_digest=self._plan.digest(),
            query_digest=closed_set.digest(query),
            release=self._plan.answer_release(index),
        )
        roster = self._joined if entry.survivors is None else entry.survivors & self._joined
        self._failed = True  # until it has not: whoever is missing may be there after a new set-up
        self._same(index, entry.survivors, roster)
        self._refused.clear()
        aggregate = self._own_answers
        if self._plan.query(index).summed:
            aggregate = self._masked_total if self._plan.secure else self._plain_total
        values, survivors = aggregate(index, query, roster, entry.survivors)
        self._ledger.survivors(self._run, index, survivors)

        self._checkpoint.commit(index, values)
        self._ledger.commit(self._run, index)
        self._failed = False
        return self._answered(index)

    def _answered(self, index: int) -> Answered:
        (entry,) = (entry for entry in self._ledger.entries(self._run) if entry.index == index)
        values = self._checkpoint.answer(index)
        assert values is not None
        return Answered(index=index, values=values, survivors=len(entry.survivors or ()))

    def _first_unanswered(self) -> int | None:
        """Number of the first attempt at the first query that no attempt has answered."""
        attempts, total = self._plan.max_attempts, self._plan.total_queries
        for first in range(0, total, attempts):
            if all(self._checkpoint.answer(index) is None for index in range(first, first + attempts)):
                return first
        return None

    def _masked_total(
        self, index: int, query: closed_set.Query, roster: frozenset[PartyId], first: frozenset[PartyId] | None
    ) -> Aggregated:
        assert self._ready is not None
        masking = self._ready.open(index, query.length, subject=closed_set.digest(query))
        asking: Mapping[PartyId, m.Request] = self._asking(query, roster)
        for party, masked in self._exchange(asking, m.Answer, needed=self._plan.survivors, index=index).items():
            masking.add(party, masked.words)
            self._inboxes.pop(party, None)
        agreeing, survivors = masking.close()
        self._same(index, first, survivors)

        # From here on a share may leave a party: if we die now, only these survivors may be summed again.
        self._ledger.survivors(self._run, index, survivors)
        signatures: dict[PartyId, bytes] = {}
        if self._plan.malicious:
            asking = dict.fromkeys(sorted(survivors), m.AskAgree(survivors))
            agreed = self._exchange(asking, m.Agreement, needed=self._plan.threshold, index=index)
            signatures = {party: agreement.signature for party, agreement in agreed.items()}
        unmasking, signatures = agreeing.collect(signatures)
        asking = dict.fromkeys(sorted(survivors), m.AskUnmask(survivors, signatures))
        shares = self._exchange(asking, UnmaskShares, needed=self._plan.threshold, index=index)
        return unmasking.combine(shares), survivors

    def _plain_total(
        self, index: int, query: closed_set.Query, roster: frozenset[PartyId], first: frozenset[PartyId] | None
    ) -> Aggregated:
        rows, survivors = self._own_answers(index, query, roster, first)
        total = np.zeros(query.length, dtype=np.uint64)
        for row in rows:
            ring.add_into(total, ring.encode(row))
        return ring.decode(total), survivors

    def _own_answers(
        self, index: int, query: closed_set.Query, roster: frozenset[PartyId], first: frozenset[PartyId] | None
    ) -> Aggregated:
        answers = self._exchange(self._asking(query, roster), m.Answer, needed=self._plan.survivors, index=index)
        self._same(index, first, frozenset(answers))
        rows = []
        for party, answer in answers.items():
            if answer.words.shape != (query.length,):
                raise ProtocolError("answer", expected=query.length, got=answer.words.shape, where=f"party {party}")
            self._inboxes.pop(party, None)
            rows.append(ring.decode(answer.words))
        return np.array(rows), frozenset(answers)

    def _asking(self, query: closed_set.Query, roster: frozenset[PartyId]) -> dict[PartyId, m.Ask]:
        """With the end of the set-up for who has not answered since."""
        return {party: m.Ask(query, self._inboxes.get(party)) for party in sorted(roster)}

    def _envelope(self, party: PartyId, body: m.Request, *, index: int) -> m.Envelope:
        return m.Envelope(
            run=self._run,
            party=party,
            plan_digest=self._plan.digest(),
            index=index,
            attempt=self._attempt,
            body=body,
        )

    def _exchange(
        self, asked: Mapping[PartyId, m.Request], kind: type[Body], *, needed: int, index: int
    ) -> dict[PartyId, Body]:
        parcels = wire.pack_all({party: self._envelope(party, body, index=index) for party, body in asked.items()})
        replies = self._network.exchange(parcels)
        self._silent(asked.keys() - replies.keys())
        bodies = self._bodies(replies, kind, index=index)
        self._enough(f"query {index}, {kind.__name__}", bodies, needed)
        return bodies

    def _silent(self, parties: Iterable[PartyId]) -> None:
        for party in parties:
            self._refused[party] = _SILENT

    def _bodies(self, replies: Mapping[PartyId, m.Parcel], kind: type[Body], *, index: int) -> dict[PartyId, Body]:
        """The replies of the kind that was asked for; whoever sent another has dropped out, and the log says why."""
        bodies: dict[PartyId, Body] = {}
        for party, parcel in sorted(replies.items()):
            try:
                reply = wire.unpack(parcel)
            except ProtocolError as error:
                self._refused[party] = f"unreadable reply: {error}"
                continue
            place = (reply.run, reply.party, reply.plan_digest, reply.index, reply.attempt)
            match reply.body:
                case m.Refusal(reason):
                    self._refused[party] = f"refused: {reason.name}{self._why(reason)}"
                case kind() if place == (self._run, party, self._plan.digest(), index, self._attempt):
                    bodies[party] = reply.body
                case _:
                    self._refused[party] = f"out of place: {type(reply.body).__name__}"
        for party, why in self._refused.items():
            log.warning("party %d %s", party, why)
        return bodies

    def _why(self, reason: m.Reason) -> str:
        """What is known here of what a refusal compared."""
        match reason:
            case m.Reason.ENCODER:
                return f", not {self._plan.encoder[:16]}: weights, prompt and pooling are compared"
            case m.Reason.IDENTITY if self._plan.malicious:
                return f", not {self._plan.roster[:16]}: rosters are compared, and signatures by their keys"
            case _:
                return ""

    def _same(self, index: int, first: frozenset[PartyId] | None, now: frozenset[PartyId]) -> None:
        if first is not None and now != first:
            raise DropoutError(
                "parties of the interrupted round",
                expected=f"the same {sorted(first)}",
                got=sorted(now),
                where=f"query {index}",
                do="Bring them back and resume; sums over different parties would give too much away",
            )

    def _enough(self, step: str, parties: Collection[PartyId], needed: int) -> None:
        if len(parties) < needed:
            reasons = ", ".join(f"party {party} {why}" for party, why in sorted(self._refused.items()))
            raise DropoutError(
                "too few parties take part",
                expected=f"at least {needed} of {self._plan.parties}",
                got=f"{len(parties)}" + (f" ({reasons})" if reasons else ""),
                where=step,
                do="See the logs of those that are missing; then resume, or plan for more dropouts",
            )

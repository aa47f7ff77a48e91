"""The course of a private query, from the request to the stored total; `client/answer.py` is the parties' side.

1. Look up: a query that was answered before is never asked again; the stored answer is returned.
2. Reserve: the query's bytes and its charge are on disk before any party sees it.
3. Aggregate: secure aggregation takes two exchanges (votes, unmasking), or three if the coordinator is not trusted
   (votes, agreement, unmasking). Without secure aggregation, there is one exchange. The set-up takes two exchanges and
   serves all queries.
4. Commit: the noised total is on disk before it is used.

The coordinator learns the noised total over the survivors and which parties took part; if a query's answers are not
summed, it learns each party's noised answer. A failed round raises an error with its cause; it never returns the sum of
fewer parties than the noise was planned for.

A query that failed is asked again after a new set-up (`federation.retries`, `resume`). The parties recognise the same
bytes and answer with the same noise, so a retry costs no privacy. Once the survivors are named, a retry needs exactly
these survivors, because otherwise two sums over different sets could be subtracted from each other. If one of the
survivors is permanently gone before shares are requested, there is a further attempt with fresh noise, provided that
the plan includes its cost (`federation.max_attempts`). Once shares are requested, no further attempt is made, since the
parties would refuse a second set of survivors for the same query.
"""

import logging
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from common import messages as m
from common.domain import PartyId
from common.errors import DropoutError, ProtocolError, RejectedError
from common.ledger.ledger import Ledger
from common.phrases import NumberedParty
from common.plan.aggregation import aggregation_setup
from common.plan.plan import Plan
from common.queries import closed_set
from common.secagg import ring
from common.secagg.identity import Roster
from common.secagg.messages import UnmaskShares
from server.federation import secagg
from server.federation.attempt import Answered, Attempt, Joined
from server.federation.checkpoint import Checkpoint
from server.federation.exchange import Parties
from server.federation.network import Network
from server.federation.plausible import check_sum

log = logging.getLogger("caucus.ask")

Aggregate = tuple[NDArray[np.int64], frozenset[PartyId]]
"""An answer, and the parties whose contributions it contains."""


class Federation:
    """The parties of one run, seen from the coordinator.

    Args:
        network: Transport of the parcels.
        plan: The agreed plan.
        run: ID of the run, unique among all runs of these parties.
        checkpoint: Store of queries and answers.
        ledger: The coordinator's own ledger.
        roster: The parties' identities, if the plan names their digest.
        retries: Number of retries of a failed opening or query before the run ends; a retry costs no privacy.
        heard: Function that is called at each opening, with the version of Caucus that each participating party uses.
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
        heard: Callable[[Mapping[PartyId, str]], None] | None = None,
    ) -> None:
        self._parties = Parties(network=network, plan=plan, run=run)
        self._plan = plan
        self._run = run
        self._checkpoint = checkpoint
        self._ledger = ledger
        self._roster = roster
        self._retries = retries
        self._heard = heard
        self._joined: Joined | None = None  # None before the first set-up, and after a failure until the next

    def open(self) -> None:
        """Send the plan to every party, learn who takes part, and set up all unanswered queries.

        Raises:
            DropoutError: Too few parties accept the plan; the error contains the coarse reasons of the parties that
                refuse.
        """
        for retries in reversed(range(self._retries + 1)):
            try:
                self._joined = self._open()
            except DropoutError as error:
                if not retries or not self._parties.may_return():
                    raise
                log.warning("the run is opened again: %s", error.without_advice())
            else:
                return

    def ask(self, name: str, nth: int, query: closed_set.Query) -> Answered:
        """Ask a planned query, and return its answer.

        Args:
            name: The query's name in the plan.
            nth: Index of the answer among the query's planned answers, from 0.
            query: The query.

        Raises:
            CheckpointError: The run was resumed, and asked another query before.
            DropoutError: Too few parties answered; resuming the run repeats the query at no cost to privacy.
        """
        attempts = [self._plan.index(name, nth, attempt) for attempt in range(self._plan.max_attempts)]
        for index in attempts:
            if self._checkpoint.answer(index) is not None:
                self._checkpoint.reserve(index, query)
                self._ledger.commit(self._run, index)  # we may have died between the two commits
                return self._answered(index)
        charged = {entry.index for entry in self._ledger.entries(self._run)}
        index = max(charged.intersection(attempts), default=attempts[0])
        tries = self._plan.max_attempts + self._retries
        while True:
            tries -= 1
            try:
                joined = self._joined or self._open()
                if tries < len(attempts) and index < attempts[-1] and self._lost(index, joined):  # free tries first
                    index += 1
                return self._ask(index, query, joined)
            except DropoutError as error:
                if not tries:
                    raise
                log.warning("query %d failed and is asked again: %s", index, error.without_advice())

    def close(self) -> None:
        """Tell the parties to forget the run's keys."""
        parties = self._joined.parties if self._joined else ()
        last = self._plan.total_queries - 1
        self._parties.exchange(dict.fromkeys(parties, m.Close()), m.Closed, needed=0, index=last)

    def _open(self) -> Joined:
        self._joined = None
        self._parties.begin_setup()
        first = self._first_unanswered()
        if first is None:  # resumed after the last answer: the parties may still keep theirs
            self._parties.join(m.Close(), m.Closed, needed=0, index=0)
            return Joined(parties=frozenset())
        opening, needed = m.Open(self._plan.to_json(), first), self._plan.survivors
        try:
            opened = self._parties.join(opening, m.Opened, needed=needed, index=first)
        except RejectedError:
            if not self._ledger.entries(self._run):  # no answer is kept anywhere that a resumed run could use
                self._parties.dismiss()
            raise
        log.info("%d of %d hospitals take part", len(opened), self._plan.parties)
        if self._heard:
            self._heard({party: body.version for party, body in opened.items()})
        return self._exchange_keys(opened, first) if self._plan.secure else Joined(parties=frozenset(opened))

    def _exchange_keys(self, opened: Mapping[PartyId, m.Opened], first: int) -> Joined:
        setup = aggregation_setup(self._plan, self._run, attempt=self._parties.attempt, first=first)
        adverts = {party: body.advert for party, body in opened.items() if body.advert}
        sharing, adverts = secagg.collect_adverts(setup, adverts, roster=self._roster)
        requests = dict.fromkeys(adverts, m.AskShares(adverts))
        shares = self._parties.exchange(requests, m.Shares, needed=self._plan.survivors, index=first)
        ready, inboxes = sharing.collect({party: body.sealed for party, body in shares.items()})
        deliveries = {party: m.Delivery(inbox, ready.sharers) for party, inbox in inboxes.items()}
        return Joined(parties=ready.sharers, aggregation=ready, deliveries=deliveries)

    def _first_unanswered(self) -> int | None:
        """Return the index in the plan of the first attempt at the first unanswered query; None if all are answered."""
        attempts, total = self._plan.max_attempts, self._plan.total_queries
        for first in range(0, total, attempts):
            if all(self._checkpoint.answer(index) is None for index in range(first, first + attempts)):
                return first
        return None

    def _lost(self, index: int, joined: Joined) -> bool:
        """Return whether a survivor named for this attempt is gone, so that only an attempt with fresh noise can help.

        Once shares have been requested, only the return of that party helps, since the sum may have been opened.
        """
        return any(
            entry.survivors is not None and not entry.unmasked and not entry.survivors <= joined.parties
            for entry in self._ledger.entries(self._run)
            if entry.index == index
        )

    def _ask(self, index: int, query: closed_set.Query, joined: Joined) -> Answered:
        query = self._checkpoint.reserve(index, query)
        digest = closed_set.digest(query)
        entry = self._ledger.reserve(
            run=self._run,
            index=index,
            plan_digest=self._plan.digest(),
            query_digest=digest,
            release=self._plan.answer_release(index),
        )
        attempt = Attempt(index=index, query=query, digest=digest, joined=joined, named=entry.survivors)

        self._joined = None  # if it fails from here on, a missing party may be back after a new set-up
        attempt.check_survivors(frozenset(attempt.requests()))
        self._parties.begin_query()
        summed = self._plan.query(index).summed
        aggregate = self._own_answers
        if summed:
            aggregate = self._masked_total if self._plan.secure else self._plain_total
        values, survivors = aggregate(attempt)
        if summed:
            check_sum(query, values, plan=self._plan, index=index, survivors=survivors)
        self._ledger.survivors(self._run, index, survivors)

        self._checkpoint.commit(index, values)
        self._ledger.commit(self._run, index)
        self._joined = joined
        return self._answered(index)

    def _masked_total(self, attempt: Attempt) -> Aggregate:
        ready = attempt.joined.aggregation
        assert ready is not None
        index, threshold = attempt.index, self._plan.threshold
        masking = ready.open(index, attempt.query.length, subject=attempt.digest)
        for party, answer in self._answers(attempt).items():
            masking.add(party, answer.words)
            attempt.joined.deliveries.pop(party, None)
        agreeing, survivors = masking.close()
        attempt.check_survivors(survivors)

        # From here on a share may leave a party: if we die now, only these survivors may be summed again.
        self._ledger.survivors(self._run, index, survivors)
        signatures: dict[PartyId, bytes] = {}
        if self._plan.malicious:
            to_agree = dict.fromkeys(sorted(survivors), m.AskAgree(survivors))
            needed = max(threshold, agreeing.signers)
            agreements = self._parties.exchange(to_agree, m.Agreement, needed=needed, index=index)
            signatures = {party: agreement.signature for party, agreement in agreements.items()}
        unmasking, signatures = agreeing.collect(signatures)
        self._ledger.unmask(self._run, index)
        to_unmask = dict.fromkeys(sorted(survivors), m.AskUnmask(survivors, signatures))
        shares = self._parties.exchange(to_unmask, UnmaskShares, needed=threshold, index=index)
        return unmasking.combine(shares), survivors

    def _plain_total(self, attempt: Attempt) -> Aggregate:
        rows, survivors = self._own_answers(attempt)
        total = np.zeros(attempt.query.length, dtype=np.uint64)
        for row in rows:
            ring.add_into(total, ring.encode(row))
        return ring.decode(total), survivors

    def _own_answers(self, attempt: Attempt) -> Aggregate:
        answers, shape = self._answers(attempt), (attempt.query.length,)
        attempt.check_survivors(frozenset(answers))
        for party, answer in answers.items():
            if answer.words.shape != shape:
                raise ProtocolError("answer", expected=shape[0], got=answer.words.shape, where=NumberedParty(party))
            attempt.joined.deliveries.pop(party, None)
        return np.array([ring.decode(answer.words) for answer in answers.values()]), frozenset(answers)

    def _answers(self, attempt: Attempt) -> dict[PartyId, m.Answer]:
        needed = self._plan.survivors
        return self._parties.exchange(attempt.requests(), m.Answer, needed=needed, index=attempt.index)

    def _answered(self, index: int) -> Answered:
        (entry,) = (entry for entry in self._ledger.entries(self._run) if entry.index == index)
        values = self._checkpoint.answer(index)
        assert values is not None
        return Answered(index=index, values=values, survivors=len(entry.survivors or ()))

"""Any sequence of legal, illegal, repeated and damaged messages, with restarts, at one party of three.

The party always answers with a parcel; it gives one answer to one query, one set of survivors and one kind of share for
each peer; and a whole round is served at any time, unless the ledger holds something else in its place.
"""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from client import secagg
from common import messages as m
from common import wire
from common.plan.aggregation import aggregation_setup
from common.queries.closed_set import digest
from common.secagg.messages import UnmaskShares
from tests.support.federations import IDENTITIES, plan, query, roster, service

KNOWN = roster(3)
PLANS = {
    "plain": plan(3, secure=False, threshold=1),
    "trusting": plan(3, max_dropouts=1),
    "signed": plan(3, roster=KNOWN.digest.hex()),
}
PARTIES = frozenset({0, 1, 2})
SURVIVORS = [PARTIES, frozenset({0, 1}), frozenset({0, 2}), frozenset({1, 2})]


class Orders(RuleBasedStateMachine):
    """A coordinator without manners; its peers 1 and 2 do whatever it wants."""

    @initialize(mode=st.sampled_from(sorted(PLANS)))
    def start(self, mode):
        self.kept = tempfile.TemporaryDirectory()
        self.plan = PLANS[mode]
        self.sent = []
        self.attempt = -1
        self.answered = {}  # (run, index) to the query and, without masks, the words
        self.named = {}  # (run, index) to the survivors whose shares left
        self.advert = None
        self.unmasked = set()  # adverts and rounds whose shares left
        self.at = ("run", 0)
        self.restart()

    def teardown(self):
        self.kept.cleanup()

    def _send(self, body, *, run=None, index=None, attempt=None, digest=None):
        envelope = m.Envelope(
            run=self.at[0] if run is None else run,
            party=0,
            plan_digest=self.plan.digest() if digest is None else digest,
            index=self.at[1] if index is None else index,
            attempt=max(self.attempt, 0) if attempt is None else attempt,
            body=body,
        )
        parcel = wire.pack(envelope)
        self.sent.append(parcel)
        return self._deliver(parcel)

    def _deliver(self, parcel):
        reply = wire.unpack(self.party.handle(parcel)).body
        if isinstance(reply, m.Opened):
            self.advert = reply.advert
        if isinstance(reply, m.Shares):
            self.sealed = reply.sealed
        if isinstance(reply, (m.Answer, UnmaskShares)):
            request = wire.unpack(parcel)
            place = (request.run, request.index)
            if isinstance(reply, m.Answer):
                answer = (digest(request.body.query), None if self.plan.secure else reply.words.tobytes())
                assert self.answered.setdefault(place, answer) == answer
            else:
                assert self.named.setdefault(place, request.body.survivors) == request.body.survivors
                assert not set(reply.self_seeds) & set(reply.mask_keys)
                assert (self.advert, place) not in self.unmasked
                self.unmasked.add((self.advert, place))
        return reply

    @rule()
    def restart(self):
        self.party = service(Path(self.kept.name), 0, known=KNOWN if self.plan.malicious else None)

    @rule(run=st.sampled_from(["run", "walk"]), first=st.integers(0, 2), again=st.booleans())
    def open(self, run, first, again):
        """A set-up with two peers, as far as the party lets it come."""
        self.attempt += not again
        self.at = (run, first)
        self.attempt = max(self.attempt, 0)
        opened = self._send(m.Open(self.plan.to_json(), first))
        if self.plan.secure and isinstance(opened, m.Opened):
            self._peers(opened.advert, run, first)

    def _peers(self, advert, run, first):
        setup = aggregation_setup(self.plan, run, attempt=self.attempt, first=first)
        begun = {
            peer: secagg.begin(
                setup,
                peer,
                bytes([peer]) * 31 + bytes([len(self.sent) % 256]),
                roster=KNOWN if self.plan.malicious else None,
                identity=IDENTITIES[peer] if self.plan.malicious else None,
            )
            for peer in (1, 2)
        }
        self.adverts = {0: advert} | {peer: keys for peer, (_, keys) in begun.items()}
        self.shared = {peer: state.share(self.adverts) for peer, (state, _) in begun.items()}
        self.delivery = m.Delivery({peer: sealed[0] for peer, (_, sealed) in self.shared.items()}, PARTIES)

    def _ready(self):
        return self.plan.secure and hasattr(self, "adverts")

    @precondition(_ready)
    @rule()
    def shares(self):
        self._send(m.AskShares(self.adverts))

    @rule(seed=st.integers(0, 1), index=st.integers(0, 2), top=st.sampled_from([4, 4, 4, 5]), delivered=st.booleans())
    def votes(self, seed, index, top, delivered):
        delivery = self.delivery if delivered and self._ready() else None
        self.at = (self.at[0], index)
        self._send(m.Ask(query(seed, top=top), delivery))

    @precondition(_ready)
    @rule(survivors=st.sampled_from(SURVIVORS))
    def agree(self, survivors):
        self._send(m.AskAgree(survivors))

    @precondition(_ready)
    @rule(survivors=st.sampled_from(SURVIVORS), signatures=st.sampled_from([{}, {0: bytes(64), 1: bytes(64)}]))
    def unmask(self, survivors, signatures):
        self._send(m.AskUnmask(survivors, signatures))

    @rule(run=st.sampled_from(["run", "walk"]))
    def close(self, run):
        self._send(m.Close(), run=run)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def repeat(self, data):
        self._deliver(data.draw(st.sampled_from(self.sent)))

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def damage(self, data):
        parcel = data.draw(st.sampled_from(self.sent))
        envelope = bytearray(parcel.envelope)
        envelope[data.draw(st.integers(0, len(envelope) - 1))] ^= data.draw(st.integers(1, 255))
        reply = wire.unpack(self.party.handle(m.Parcel(bytes(envelope), parcel.bulk))).body
        assert reply != m.Refusal(m.Reason.INTERNAL)
        self.restart()  # damage may have been a legal message: what came of it is not followed up

    @rule(
        run=st.sampled_from(["run", "run", "walk"]),
        index=st.sampled_from([0, 0, 1]),
        seed=st.sampled_from([0, 0, 1]),
        survivors=st.sampled_from(SURVIVORS),
    )
    def whole_round(self, run, index, seed, survivors):
        """From Open to unmasking: refused only where the ledger holds something else, or the place is closed."""
        entries = {e.index: e for e in self.party._ledger.entries(run)}
        entry = entries.get(index)
        self.open(run, index, again=False)
        if self.plan.secure:
            assert isinstance(self._send(m.AskShares(self.adverts)), m.Shares)
        request = query(seed)
        reply = self._send(m.Ask(request, self.delivery if self.plan.secure else None))
        same = entry is None or (entry.query_digest == digest(request) and not entry.committed)
        assert isinstance(reply, m.Answer if same else m.Refusal)
        if not (self.plan.secure and same):
            return
        legal = 0 in survivors and len(survivors) >= self.plan.survivors
        legal = legal and (entry is None or entry.survivors in (None, survivors))
        # One question is opened over one set of survivors, whatever its number.
        opened = [e.survivors for e in entries.values() if e.unmasked and e.query_digest == digest(request)]
        legal = legal and all(others == survivors for others in opened)
        signatures = self._signatures(survivors, request) if self.plan.malicious and legal else {}
        if self.plan.malicious and not legal:
            assert isinstance(self._send(m.AskAgree(survivors)), m.Refusal)
        reply = self._send(m.AskUnmask(survivors, signatures))
        assert isinstance(reply, UnmaskShares if legal else m.Refusal)

    def _signatures(self, survivors, request):
        signatures = {0: self._send(m.AskAgree(survivors)).signature}
        for peer, (state, _) in self.shared.items():
            inbox = {sender: self.shared[sender][1][peer] for sender in (1, 2) if sender != peer}
            # Party 0's ciphertexts for its peers come with its reply to AskShares.
            inbox[0] = self.sealed[peer]
            nothing = np.zeros(request.length, dtype=np.int64)
            masked, _ = state.receive(inbox, PARTIES).mask(self.at[1], nothing, subject=digest(request))
            signatures[peer] = masked.agree(survivors)[1]
        return signatures


TestOrders = Orders.TestCase
TestOrders.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)

"""Whole runs over a network that drops, delays, duplicates, reorders and damages: the exact sum or a refusal.

The coordinator and each party use the real states; only the envelope (attempt, step, round) is the test's own. Whatever
the network does, three things hold: a sum that comes out is that of its survivors; a party answers each step of a round
once; and it never hands out both kinds of share for one owner.
"""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from client import secagg as party_side
from common.errors import DropoutError, ProtocolError
from server.federation import secagg as coordinator_side
from tests.support.secagg_rounds import LENGTH, identity, roster, setup, vectors

ROUNDS = (0, 1, 2)
FAULT = st.tuples(st.sampled_from(["drop", "delay", "duplicate", "damage", "restart"]), st.integers(0, 13))
FAULTS = st.just([]) | st.just([]) | st.lists(FAULT, max_size=2)
"""Most exchanges go well, or hardly a round would end in a sum."""

SHAPES = {"pair": (2, 1, 2), "full": (5, 4, 3), "sparse": (7, 4, 3)}


@dataclass(frozen=True)
class Letter:
    """A request to a party, or its reply."""

    party: int
    attempt: int
    step: str
    index: int
    body: object
    reply: bool = False

    @property
    def place(self):
        return self.attempt, self.step, self.index


class Party:
    """One party: its states, and the envelope check that its session makes."""

    def __init__(self, number, malicious):
        self.number, self.malicious, self.attempt, self.states = number, malicious, -1, {}

    def restart(self):
        """Everything in memory is lost; which attempt was answered last is on disk."""
        self.states = {}

    def handle(self, letter, asked, entropy):
        me = self.number
        if letter.step == "begin":
            if letter.attempt <= self.attempt:
                raise ProtocolError("attempt", expected="a later one")
            self.attempt = letter.attempt
            known = roster(asked.parties) if self.malicious else None
            signer = identity(me) if self.malicious else None
            state, reply = party_side.begin(asked, me, entropy, identity=signer, roster=known)
            self.states = {"share": state}
            return reply
        if letter.attempt != self.attempt:
            raise ProtocolError("attempt", expected="the current one")
        if letter.step == "share":
            self.states["receive"], reply = self._state("share").share(letter.body)
        elif letter.step == "mask":
            if "ready" not in self.states:
                self.states["ready"] = self._state("receive").receive(*letter.body)
            vector = vectors(asked, letter.index)[me]
            self.states["agree", letter.index], reply = self.states["ready"].mask(letter.index, vector, subject=b"")
        elif letter.step == "agree":
            state = self._state(("agree", letter.index))
            self.states["unmask", letter.index], reply = state.agree(letter.body)
        else:
            reply = self._state(("unmask", letter.index)).unmask(letter.body)
        return reply

    def _state(self, name):
        if name not in self.states:
            raise ProtocolError("step", expected="what comes before it first")
        return self.states[name]


class Federation(RuleBasedStateMachine):
    """A coordinator, its parties, and all letters that are under way."""

    @initialize(shape=st.sampled_from(sorted(SHAPES)), malicious=st.booleans())
    def start(self, shape, malicious):
        self.count, self.degree, self.threshold = SHAPES[shape]
        self.malicious, self.attempt, self.sums = malicious, -1, 0
        self.letters, self.delayed, self.ready, self.step = [], [], None, None
        self.parties = [Party(number, malicious) for number in range(self.count)]
        self.answered, self.kinds = Counter(), defaultdict(set)
        self.maskings = {}
        self.next_round = 0
        self.set_up()

    @precondition(lambda self: self.step is None)
    @rule()
    def set_up(self):
        """Begin, or begin anew for the rounds that are left, or go on to the next run."""
        self.attempt += 1
        self.next_round %= len(ROUNDS)
        self.asked = setup(
            self.count,
            malicious=self.malicious,
            attempt=self.attempt,
            rounds=ROUNDS[self.next_round :],
            degree=self.degree,
            threshold=self.threshold,
        )
        self.ready = None
        self.index = self.asked.rounds[0]
        self._ask("begin", dict.fromkeys(range(self.count)))

    @precondition(lambda self: self.step)
    @rule(
        going=FAULTS,
        coming=FAULTS,
        order=st.randoms(use_true_random=False),
        crash=st.sampled_from([False] * 19 + [True]),
    )
    def exchange(self, going, coming, order, crash=False):
        """One exchange over a bad network, after which the coordinator goes on with what it has, or with nothing."""
        for faults in (going, coming):
            self.letters, self.delayed = self.letters + self.delayed, []
            for fault, number in faults:
                if self.letters:
                    getattr(self, f"_{fault}")(number % len(self.letters))
            order.shuffle(self.letters)
            under_way, self.letters = self.letters, []
            for letter in under_way:
                self._deliver(letter)
        if crash:
            self.step = None
            return
        try:
            self._close(self.step)
        except (DropoutError, ProtocolError) as error:
            event(f"{self.step}: {type(error).__name__}")
            self._open_next()

    @invariant()
    def nothing_is_answered_twice_or_given_away(self):
        assert all(times == 1 for times in self.answered.values())
        assert all(len(kinds) == 1 for kinds in self.kinds.values())

    def teardown(self):
        event(f"sums: {getattr(self, 'sums', 0)}")

    def _drop(self, place):
        self.letters.pop(place)

    def _delay(self, place):
        self.delayed.append(self.letters.pop(place))

    def _duplicate(self, place):
        self.letters.append(self.letters[place])

    def _restart(self, place):
        self.parties[self.letters[place].party].restart()

    def _damage(self, place):
        """Cut what is sealed or signed: the network has no keys, so nothing of it can still hold."""
        letter = self.letters[place]
        if letter.reply and letter.step == "share":
            self.letters[place] = replace(letter, body={peer: text[:-1] for peer, text in letter.body.items()})
        elif letter.reply and letter.step == "agree" and self.malicious:
            self.letters[place] = replace(letter, body=letter.body[:-1])

    def _ask(self, step, bodies):
        self.step, self.replies = step, {}
        self.letters += [Letter(party, self.attempt, step, self.index, body) for party, body in bodies.items()]

    def _deliver(self, letter):
        if letter.reply:
            self._arrive(letter)
            return
        entropy = np.random.default_rng([letter.party, letter.attempt]).bytes(32)
        try:
            body = self.parties[letter.party].handle(letter, self.asked, entropy)
        except (ProtocolError, DropoutError) as error:
            event(f"party: {type(error).__name__}")
            return
        self.answered[letter.party, letter.place] += 1
        if letter.step == "unmask":
            for kind, owners in (("seed", body.self_seeds), ("key", body.mask_keys)):
                for owner in owners:
                    self.kinds[letter.party, letter.attempt, letter.index, owner].add(kind)
        self.letters.append(replace(letter, body=body, reply=True))

    def _arrive(self, letter):
        if letter.step == "mask":
            # Masked vectors go straight to the state of their round, late ones too.
            masking = self.maskings[letter.attempt, letter.index]
            try:
                masking.add(letter.party, letter.body)
            except ProtocolError as error:
                event(f"late vector: {type(error).__name__}")
        elif letter.place == (self.attempt, self.step, self.index):
            self.replies.setdefault(letter.party, letter.body)

    def _close(self, step):
        if step == "begin":
            held = roster(self.asked.parties) if self.malicious else None
            self.sharing, keys = coordinator_side.collect_adverts(self.asked, self.replies, roster=held)
            self._ask("share", dict.fromkeys(keys, keys))
        elif step == "share":
            self.ready, self.inboxes = self.sharing.collect(self.replies)
            self._open(self.asked.rounds[0])
        elif step == "mask":
            self.agreeing, self.survivors = self.maskings[self.attempt, self.index].close()
            self._ask("agree", dict.fromkeys(self.survivors, self.survivors))
        elif step == "agree":
            self.unmasking, signatures = self.agreeing.collect(self.replies)
            self._ask("unmask", dict.fromkeys(self.replies, signatures))
        else:
            total = self.unmasking.combine(self.replies)
            inputs = vectors(self.asked, self.index)
            expected = [sum(int(inputs[party][place]) for party in self.survivors) for place in range(LENGTH)]
            assert total.tolist() == expected
            self.sums += 1
            self._open_next()

    def _open(self, index):
        self.index, self.next_round = index, index + 1
        self.maskings[self.attempt, index] = self.ready.open(index, LENGTH, subject=b"")
        self._ask("mask", {party: (inbox, self.ready.sharers) for party, inbox in self.inboxes.items()})

    def _open_next(self):
        if self.ready and self.next_round in self.asked.rounds:
            self._open(self.next_round)
        else:
            self.step = None


@settings(max_examples=20, stateful_step_count=30, deadline=None)
class Settings(Federation):
    pass


TestFederation = Settings.TestCase


@pytest.mark.slow
def test_federation_at_length():
    run_state_machine_as_test(Federation, settings=settings(max_examples=1_000, stateful_step_count=60, deadline=None))


@pytest.mark.parametrize("malicious", [False, True])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_a_quiet_network_gives_every_sum(shape, malicious):
    """So that the machine above cannot pass by refusing everything."""
    run = Federation()
    run.start(shape, malicious)
    while run.step:
        run.exchange([], [], random.Random(0))
    assert run.sums == len(ROUNDS)

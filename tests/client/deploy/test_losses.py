"""A hospital that is backed up, restored, damaged, killed and made to go on between any two messages.

The coordinator is adversarial: it opens any run again and asks any question again, over other hospitals. Whatever is
lost, four things hold. A question is answered with one noised vector, and one set of survivors is signed for it. What
`ledger accept` charges is never below what was charged before, at any delta. What the hospital is told about a run is
what its audit log and its ledger say. A ledger that the service refuses has no known rest.

The note of the head is never restored: else nothing shows that anything is lost, as OPERATIONS.md says.
"""

import json
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from client.approval.amounts import answered_so_far
from client.approval.entries import Approvals, approvals, decide
from client.audit_log import AuditLog
from client.command import main
from client.deploy.settings import HospitalSettings
from client.deploy.status import hospital_status
from client.guard import Limits
from client.page.budget import budget
from common.errors import ConfigError, LedgerError
from common.privacy.accountant import epsilon
from tests.support.adversary import Adversary, Shown
from tests.support.federations import plan, query, roster, service

PARTIES, CORRUPT, OWN = 5, {3, 4}, 1
KNOWN = roster(PARTIES)
LIMITS = Limits(corrupt=0.3, lifetime_epsilon=1000.0)
SHAPE = {"max_dropouts": 1, "colluders": 2, "corrupt": 2, "threshold": 4, "roster": KNOWN.digest.hex(), "times": 2}
PLAN = plan(PARTIES, **SHAPE)
RUNS = ("first", "second", "third", "fourth")
SURVIVORS = (frozenset(range(PARTIES)), frozenset(range(PARTIES)) - {2})
FILE = {"name": "A", "records": "notes.csv", "encoder": "hashed_ngrams", "coordinator": "localhost:1"}


class KilledError(BaseException):
    """The process of the service ended here."""


class Losses(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.top = Path(tempfile.mkdtemp())
        self.folder, self.disk = self.top / "hospital", self.top / "disk"
        for folder in (self.folder / "private", self.folder / "run", self.disk):
            folder.mkdir(parents=True)
        (self.folder / "notes.csv").write_text("text,label\n")
        (self.folder / "client.yaml").touch(mode=0o600)
        limits = {"corrupt": 0.3, "lifetime_epsilon": 1000.0}
        file = FILE | {"bundle": "ab" * 32, "ledger_head": str(self.disk / "head"), "limits": limits}
        (self.folder / "client.yaml").write_text(yaml.safe_dump(file))
        self.adversary = Adversary(self.top / "others", PARTIES, corrupt=CORRUPT, limits=LIMITS)
        self.attempt = 0
        self.backups = []
        self.vectors, self.signed = defaultdict(set), defaultdict(set)
        self.charged = {}
        self.log_is_whole = True
        self.start()

    def teardown(self):
        shutil.rmtree(self.top)

    @property
    def private(self):
        return self.folder / "private"

    @property
    def settings(self):
        return HospitalSettings.load(self.folder)

    def start(self):
        """Start the service, as `caucus-party start` does; it refuses a ledger that lacks what was noted."""
        noted = self.settings.noted_head
        try:
            ledger = noted.opened(self.settings.ledger)
        except LedgerError:
            self.ledger = None
            return
        stored = Approvals(self.private, records=self.folder / "notes.csv", key=b"k" * 32)
        changes = {"ledger": ledger, "noted_head": noted, "approvals": stored, "audit_log": AuditLog(self.private)}
        self.adversary.services[OWN] = service(self.top, OWN, limits=LIMITS, known=KNOWN, **changes)
        self.adversary.ledgers[OWN] = self.ledger = ledger

    def runs(self):
        return self.ledger is not None

    def refused(self):
        return self.ledger is None

    def kill_at(self, step, run, index):
        """Have the service end at this step, once the answer is charged."""
        own = self.adversary.services[OWN]
        part = {"keep": own._ledger, "write": own._noted_head, "note": own._audit_log}[step]
        does = getattr(part, step)

        def ends(*values, **names):
            if any(entry.index == index for entry in self.ledger.entries(run)):
                raise KilledError
            return does(*values, **names)

        setattr(part, step, ends)

    @precondition(runs)
    @rule(
        run=st.sampled_from(RUNS),
        index=st.sampled_from([0, 0, 1]),
        named=st.sampled_from([None, *SURVIVORS]),
        killed=st.sampled_from([None, None, None, "keep", "write", "note"]),
    )
    def attack(self, run, index, named, killed):
        """Ask a question, and for a signature over these survivors; or kill the service before the answer leaves."""
        self.attempt += 1
        if killed:
            self.kill_at(killed, run, index)
        shown = Shown(PLAN, query(index), run=run, index=index, attempt=self.attempt)
        try:
            asked = self.adversary.attack(shown)
            if named and OWN in asked.words:
                asked.agree(otherwise=named)
        except KilledError:
            self.start()
            asked = None
        if killed:
            self.start()
        for entry in self.ledger.entries():
            self.charged[entry.run, entry.index] = entry.cost
        if asked and OWN in asked.words:
            self.vectors[run, index].add(asked.answers[OWN].tobytes())
            if OWN in asked.signatures:
                self.signed[run, index].add(named)

    @rule(whole=st.booleans())
    def back_up(self, whole):
        copy = self.top / f"backup {len(self.backups)}"
        if whole:
            shutil.copytree(self.private, copy)
        elif self.settings.ledger.exists():
            shutil.copy(self.settings.ledger, copy)
        else:
            return
        self.backups.append(copy)

    @precondition(lambda self: self.backups)
    @rule(data=st.data())
    def restore(self, data):
        copy = data.draw(st.sampled_from(self.backups))
        if copy.is_dir():
            shutil.rmtree(self.private)
            shutil.copytree(copy, self.private)
            self.log_is_whole = False
        else:
            shutil.copy(copy, self.settings.ledger)
        self.start()

    @rule(how=st.sampled_from(["cut off", "removed", "another file"]))
    def damage(self, how):
        path = self.settings.ledger
        if how == "removed":
            path.unlink(missing_ok=True)
        elif path.exists():
            path.write_bytes(path.read_bytes()[:5000] if how == "cut off" else b"no ledger" * 100)
        self.start()

    @precondition(refused)
    @rule(note_is_lost=st.sampled_from([False, False, True]))
    def accept(self, note_is_lost):
        """Go on; only where the plan of a run is not known here, a person must say what it has cost."""
        if note_is_lost and self.log_is_whole:
            (self.disk / "head").unlink(missing_ok=True)
        if main(["ledger", "accept", str(self.folder)]):
            assert main(["ledger", "accept", str(self.folder), "--lost", "inf"]) == 0
        self.start()
        assert self.runs()
        now, before = self.ledger.releases(), list(self.charged.values())
        for delta in (1e-4, 1e-5, 1e-9):
            assert epsilon(now, delta) >= epsilon(before, delta) * (1 - 1e-9)

    @rule(run=st.sampled_from(RUNS), approve=st.booleans())
    def decide(self, run, approve):
        for entry in approvals(self.private):
            if entry.run == run and entry.closed:
                with pytest.raises(ConfigError):
                    decide(self.private, entry, approve=approve, by="anna")
            elif entry.run == run:
                decide(self.private, entry, approve=approve, by="anna")

    @invariant()
    def one_vector_and_one_set_of_survivors_for_a_question(self):
        assert all(len(vectors) == 1 for vectors in self.vectors.values())
        assert all(len(signed) == 1 for signed in self.signed.values())

    @invariant()
    def what_the_hospital_is_told_is_what_its_files_say(self):
        log = self.private / "audit.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        answered = {
            (line["run"], line["query"]) for line in lines if line.get("request") == "Ask" and not line["reason"]
        }
        if self.log_is_whole:
            assert answered >= self.vectors.keys()
        try:
            ledger, problem = self.settings.noted_head.inspected(self.settings.ledger)
        except LedgerError:
            return  # nothing is told
        places = {(entry.run, entry.index) for entry in ledger.entries()} if ledger else set()
        assert bool(problem) == self.refused()
        lacking = {run for run, _ in answered - places}
        shown, status = budget(self.settings), hospital_status(self.settings)
        assert set(shown.spending.uncharged) == set(status.spending.uncharged) == lacking
        assert (shown.spending.left is None) == (status.spending.left is None) == bool(problem)
        for run in shown.runs:
            assert run.answers == sum(name == run.run for name, _ in places)
            assert run.answered == sum(name == run.run for name, _ in answered)
        for entry in approvals(self.private):
            mine = {index for run, index in answered if run == entry.run}
            paid = {index for run, index in places if run == entry.run}
            said = answered_so_far(entry, self.settings, ledger)
            assert (said.answered, said.charged, said.uncharged) == (len(mine), len(paid), len(mine - paid))
            if ledger and entry.closed:
                assert ledger.ended(entry.run) or problem


TestLosses = Losses.TestCase
TestLosses.settings = settings(
    max_examples=10, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture
def machine():
    machine = Losses()
    yield machine
    machine.teardown()


def ask(machine, run="first", named=SURVIVORS[0], killed=None):
    machine.attack(run=run, index=0, named=named, killed=killed)
    machine.one_vector_and_one_set_of_survivors_for_a_question()


def restore(machine, copy):
    shutil.copy(copy, machine.settings.ledger)
    machine.start()


@pytest.mark.parametrize("killed", ["keep", "write", "note"])
def test_a_copy_made_between_charge_and_answer_does_not_answer_again(killed, machine):
    ask(machine, killed=killed)
    machine.back_up(whole=False)
    ask(machine, named=None)
    restore(machine, machine.backups[0])
    assert machine.refused() is (killed == "keep")  # after that no event follows: the same answer is sent again
    if machine.refused():
        machine.accept(note_is_lost=False)
    ask(machine, named=SURVIVORS[1])
    assert len(machine.vectors["first", 0]) == 1


def test_a_run_that_is_in_no_restored_file_does_not_go_on(machine):
    machine.back_up(whole=True)
    ask(machine)
    shutil.rmtree(machine.private)
    shutil.copytree(machine.backups[0], machine.private)
    machine.start()
    command = ["ledger", "accept", str(machine.folder)]
    assert (main(command), main([*command, "--lost", "4"])) == (2, 0)  # its plan is in no file either
    machine.start()
    assert [entry.run for entry in approvals(machine.private)] == []
    ask(machine, named=SURVIVORS[1])
    assert "OVER_LIMIT" in machine.adversary.replies[OWN][-1]
    ask(machine, run="second")
    assert machine.vectors.keys() == {("first", 0), ("second", 0)}

"""The noted head: an older ledger is refused, one that is ahead of its note is not."""

import shutil

import pytest

from client.noted_head import NotedHead
from common import messages as m
from common.errors import ConfigError, IncompleteLedgerError, LedgerError
from common.ledger.ledger import ChargedRun, Ledger
from tests.support.federations import query
from tests.support.ledgers import reservation
from tests.support.party_requests import PLAIN, opened, send

P = reservation()["plan_digest"].hex()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "private" / "ledger.db"


@pytest.fixture
def noted(tmp_path, path):
    """The note of a ledger with one charge, on another disk."""
    for folder in ("private", "disk"):
        (tmp_path / folder).mkdir()
    noted = NotedHead(tmp_path / "disk" / "head")
    ledger = noted.opened(path)
    ledger.reserve(**reservation(index=0))
    noted.write(ledger)
    return noted


def restarted(noted):
    """The note as a service that starts again finds it."""
    return NotedHead(noted.path)


def test_the_note_is_the_head_and_the_number_of_charges_of_each_run(noted, path):
    assert noted.path.read_text() == f"{Ledger(path).head().chain}\n1 runs\n1 {P} r\n"
    assert noted.runs() == {"r": ChargedRun(1, P)}
    ledger = Ledger(path)
    for index in range(2):
        ledger.reserve(**reservation(run=" 7 grüße ", index=index))
    noted.write(ledger)
    ledger.accept([], ["never charged"])
    noted.write(ledger)
    runs = {"r": ChargedRun(1, P), " 7 grüße ": ChargedRun(2, P), "never charged": ChargedRun(0, "")}
    assert restarted(noted).runs() == ledger.runs() == runs
    assert noted.read() == ledger.head().chain
    assert noted.path.stat().st_mode & 0o077 == 0
    assert restarted(noted).opened(path).head().events == ledger.head().events


def test_an_older_copy_of_the_ledger_is_refused(noted, path):
    shutil.copy(path, path.with_name("copy.db"))
    ledger = Ledger(path)
    ledger.reserve(**reservation(index=1))
    noted.write(ledger)
    shutil.copy(path.with_name("copy.db"), path)
    with pytest.raises(LedgerError, match="ledger accept"):
        restarted(noted).opened(path)
    assert noted.read() != Ledger(path).head().chain  # asked again, it is refused again


def test_a_crash_between_the_charge_and_its_note_is_accepted(noted, path):
    Ledger(path).reserve(**reservation(index=1))  # and the note was not written
    opened = restarted(noted).opened(path)
    assert opened.head().events == 2
    assert noted.read() == opened.head().chain


def test_ledger_or_note_that_is_missing_is_refused_unless_the_service_never_started(noted, path):
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(LedgerError, match="is missing"):
        restarted(noted).opened(path)
    assert not path.exists()
    path.write_bytes(content)
    noted.path.unlink()
    with pytest.raises(LedgerError, match="was noted"):
        restarted(noted).opened(path)
    assert not noted.path.exists()
    path.unlink()
    Ledger(path)  # without events, as a crash before the first note leaves it
    assert restarted(noted).opened(path).head().events == 0
    noted.path.unlink()
    (path.parent / "runs").mkdir()  # or a crash of `accept`
    with pytest.raises(IncompleteLedgerError, match="was noted"):
        restarted(noted).opened(path)


def test_a_disk_that_is_not_mounted_and_a_file_that_is_no_note(noted, path):
    with pytest.raises(ConfigError, match=r"^ledger_head;"):
        NotedHead(noted.path.parent / "absent" / "head").opened(path)
    noted.path.write_text("none\n")
    with pytest.raises(IncompleteLedgerError, match=r"noted head;.*ledger accept"):
        restarted(noted).opened(path)


@pytest.mark.parametrize("note", [None, "none\n", "{head}\n", "{head}\n2 runs\n1 - r\n", "{head}\n1 runs\n1 r\n"])
def test_a_note_that_does_not_say_how_often_each_run_was_charged(note, noted):
    head = noted.read()
    noted.path.unlink()
    if note:
        noted.path.write_text(note.format(head=head))
    assert restarted(noted).runs() is None


@pytest.fixture
def party(tmp_path):
    """A party that notes its ledger's head, and has opened a run."""
    return opened(tmp_path, noted_head=NotedHead(tmp_path / "head"))


def test_what_was_answered_is_noted_before_it_leaves(party):
    start = party._noted_head.read()
    assert isinstance(send(party, m.Ask(query())), m.Answer)
    assert party._noted_head.read() == party._ledger.head().chain != start
    assert party._ledger.head().events == 2  # charged and kept
    assert party._noted_head.runs() == {"run": ChargedRun(1, PLAIN.digest().hex())}


def test_an_older_copy_in_place_of_the_ledger_of_a_running_service_is_refused(party, tmp_path, caplog):
    path = tmp_path / "party-0.db"
    shutil.copy(path, tmp_path / "copy.db")
    assert isinstance(send(party, m.Ask(query())), m.Answer)
    noted = party._noted_head.read()
    shutil.copy(tmp_path / "copy.db", path)
    for body in (m.Open(PLAIN.to_json()), m.Ask(query())):
        assert send(party, body) == m.Refusal(m.Reason.INTERNAL)
    assert "not contain" in caplog.text
    assert Ledger(path).entries() == ()
    assert party._noted_head.read() == noted
    with pytest.raises(LedgerError):
        restarted(party._noted_head).opened(path)


def test_no_answer_leaves_whose_note_cannot_be_written(party, tmp_path, caplog):
    before = party._noted_head.read()
    party._noted_head.path = tmp_path / "absent" / "head"
    assert send(party, m.Ask(query())) == m.Refusal(m.Reason.INTERNAL)
    assert "No such" in caplog.text
    assert party._ledger.head().events == 2  # charged, and behind it the note: accepted
    lagging = NotedHead(tmp_path / "head")
    assert lagging.read() == before
    assert lagging.opened(tmp_path / "party-0.db").head().events == 2

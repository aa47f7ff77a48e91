"""A ledger's file: what it refuses, what shows when it was edited, and every way in which it can fail."""

import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys

import pytest

from common.errors import LedgerError, RefusedError
from common.ledger import file
from common.ledger import ledger as ledgers
from common.ledger.chain import broken_ledger_error, canonical, follow, seal
from common.ledger.ledger import Ledger
from tests.support.ledgers import ANSWER, KEY, RELEASE, edited, reservation

ROOT = os.geteuid() == 0
CHARGE = {"plan": "", "query": "", "release": RELEASE.to_dict(), "data_set": "", "time": ""}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    """One answer closed, one kept, one charged; a data set and a sample key."""
    ledger = Ledger(path)
    data_set = ledger.data_set([b"a", b"b"])
    ledger.sample_key("r", "draw", KEY)
    for index in range(3):
        ledger.reserve(**reservation(index=index), data_set=data_set)
    ledger.survivors("r", 0, {0, 1})
    ledger.commit("r", 0)
    ledger.keep("r", 1, ANSWER)
    return ledger


def test_the_file_is_its_owners_alone(path):
    Ledger(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    Ledger(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "statement",
    [
        *(f"DELETE FROM {table}" for table in ("meta", "events", "answers", "data_sets", "records", "samples")),
        "UPDATE meta SET value = x'00'",
        "INSERT OR REPLACE INTO meta VALUES ('key', x'00')",
        "UPDATE events SET chain = x'00'",
        "INSERT OR REPLACE INTO events SELECT * FROM events WHERE sequence = 1",
        "INSERT INTO events SELECT 9, run, position, kind, body, chain FROM events WHERE sequence = 1",
        "UPDATE answers SET answer = x'00'",
        "INSERT OR REPLACE INTO answers VALUES ('r', 1, x'00')",
        "INSERT INTO answers VALUES ('r', 0, x'00')",
        "UPDATE data_sets SET name = 'x'",
        "INSERT OR REPLACE INTO data_sets SELECT 7, name FROM data_sets",
        "INSERT OR REPLACE INTO data_sets SELECT number, 'x' FROM data_sets",
        "UPDATE records SET digest = zeroblob(16)",
        "UPDATE samples SET key = zeroblob(32)",
        "UPDATE samples SET run = 's', key = NULL",
        "UPDATE samples SET draw = 's', key = NULL",
        "INSERT OR REPLACE INTO samples VALUES ('r', 'draw', zeroblob(32))",
    ],
)
def test_the_database_itself_refuses_to_rewrite(ledger, path, statement):
    before = path.read_bytes()
    with (
        contextlib.closing(sqlite3.connect(path)) as database,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        database.execute(statement)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("UPDATE events SET run = 's' WHERE sequence = 2", 2),
        ("UPDATE events SET position = 7 WHERE sequence = 2", 2),
        ("UPDATE events SET kind = 'close' WHERE sequence = 4", 4),
        ("UPDATE events SET body = replace(body, '20.0', '90.0') WHERE sequence = 3", 3),
        ("UPDATE events SET body = body || ' ' WHERE sequence = 3", 3),
        ("UPDATE events SET chain = zeroblob(32) WHERE sequence = 5", 5),
        ("DELETE FROM events WHERE sequence = 1", 1),
        ("DELETE FROM events WHERE sequence = 3", 3),
        ("UPDATE events SET sequence = 7 WHERE sequence = 6", 6),
        ("INSERT INTO events VALUES (7, 'r', 2, 'close', '{}', zeroblob(32))", 7),
        ("UPDATE meta SET value = zeroblob(32)", 1),
    ],
)
def test_an_edited_event_is_named_by_whoever_reads_entries(ledger, path, statement, number):
    assert ledger.verify().events == 6
    edited(path, statement)
    for read in (ledger.entries, ledger.events, lambda: Ledger(path), lambda: ledger.reserve(**reservation())):
        with pytest.raises(LedgerError, match=rf"{path}, event {number}\."):
            read()


def test_a_tail_that_was_cut_off_shows_against_a_head_noted_elsewhere(ledger, path):
    heads = [ledger.verify().chain, "", ""]
    ledger.survivors("r", 1, {0, 1})
    whole = ledger.verify()
    assert ledger.verify(heads[0].upper()) == whole
    edited(path, "DELETE FROM events WHERE sequence > 6")
    assert ledger.verify(heads[0]).events == 6
    with pytest.raises(LedgerError, match=whole.chain):
        ledger.verify(whole.chain)


def test_a_ledger_written_anew_shows_against_a_head_noted_elsewhere(ledger, path, tmp_path):
    noted = ledger.verify().chain
    path.unlink()
    anew = Ledger(path)
    anew.reserve(**reservation())
    for head in (noted, "no head at all"):
        with pytest.raises(LedgerError, match="was noted"):
            anew.verify(head)


@pytest.mark.parametrize(
    ("kind", "position", "body"),
    [
        ("charge", 0, None),
        ("charge", 9, {}),
        ("charge", 9, CHARGE | {"plan": "xy"}),
        ("charge", 9, CHARGE | {"release": {"mechanism": "none"}}),
        ("charge", 9, CHARGE | {"release": CHARGE["release"] | {"scale": -1}}),
        ("survivors", 0, {"parties": [1]}),
        ("survivors", 9, {"parties": [1]}),
        ("survivors", 1, {"parties": 1}),
        ("survivors", 1, []),
        ("unmask", 0, {}),
        ("unmask", 1, {}),
        ("close", 0, {}),
        ("close", 9, {}),
        ("keep", 0, {}),
        ("keep", 1, {}),
        ("end", 1, {"time": ""}),
        ("end", 0, {}),
        ("open", 1, {}),
    ],
)
def test_events_that_do_not_fit_together_though_the_chain_holds(ledger, path, kind, position, body):
    last = ledger.events()[-1]
    text = ledger.events()[0].body if body is None else canonical(body)
    event = seal(last.chain, sequence=7, run="r", position=position, kind=kind, body=text)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("INSERT INTO events VALUES (7, 'r', ?, ?, ?, ?)", (position, kind, text, event.chain))
    with pytest.raises(LedgerError, match="event 7"):
        ledger.entries()


def test_rows_of_another_type_are_no_events():
    with pytest.raises(LedgerError, match="somewhere, event 1"):
        list(follow(b"", [(1, b"run", 0, "close", "{}", b"")], where="somewhere"))


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("DELETE FROM meta", "key"),
        ("INSERT INTO answers VALUES ('r', 0, x'00')", "run r, answer 0"),
        ("INSERT INTO answers VALUES ('s', 0, x'00')", "run s, answer 0"),
        ("DELETE FROM answers", "run r, answer 1"),
    ],
)
def test_what_no_event_explains(ledger, path, statement, where):
    edited(path, statement)
    with pytest.raises(LedgerError, match=f"{path}, {where}"):
        ledger.entries()


def test_a_trigger_that_was_dropped_is_missed(ledger, path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute('DROP TRIGGER "no DELETE ON events"')
    with pytest.raises(LedgerError, match="got version 2"):
        Ledger(path)


def test_a_ledger_of_another_version(ledger, path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 3")
    with pytest.raises(LedgerError, match=r"version 2, .*version 3;"):
        Ledger(path)


def test_another_database_is_left_as_it_is(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE entries (run TEXT)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="another database"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database(path):
    path.write_text("a spreadsheet, perhaps " * 100)
    with pytest.raises(LedgerError, match=str(path)):
        Ledger(path)


def test_a_damaged_file(ledger, path):
    whole = path.read_bytes()
    for page in range(1, len(whole) // 4096):
        damaged = bytearray(whole)
        damaged[page * 4096 : page * 4096 + 8] = b"\xff" * 8
        path.write_bytes(damaged)
        with pytest.raises(LedgerError, match=str(path)):
            Ledger(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LedgerError, match=str(path)):
        Ledger(path)


def test_damage_that_only_the_database_sees(ledger, path):
    """An index without one of its entries: reads of tables go past it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        ((root,),) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_samples_1'")
    content = bytearray(path.read_bytes())
    # In the header of an index page the number of its cells lies at offset 3.
    content[(root - 1) * 4096 + 3 : (root - 1) * 4096 + 5] = bytes(2)
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="is damaged"):
        Ledger(path)


@pytest.mark.parametrize("name", ["no/such/folder/ledger.db", "."])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_path_that_cannot_be_opened(tmp_path, name, read_only):
    with pytest.raises(LedgerError, match=str(tmp_path / name)):
        Ledger(tmp_path / name, read_only=read_only)
    assert list(tmp_path.iterdir()) == []


def test_read_only_neither_makes_nor_writes(ledger, path, tmp_path):
    with pytest.raises(LedgerError, match="be opened"):
        Ledger(tmp_path / "missing.db", read_only=True)
    assert not (tmp_path / "missing.db").exists()
    path.chmod(0o400)
    before = path.read_bytes()
    reader = Ledger(path, read_only=True)
    assert reader.entries() == ledger.entries()
    with pytest.raises(LedgerError, match="be written"):
        reader.reserve(**reservation(run="s"))
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


@pytest.mark.skipif(ROOT, reason="root may write anything")
def test_a_file_of_somebody_else(ledger, path):
    path.parent.chmod(0o500)
    try:
        with pytest.raises(LedgerError, match="cannot be"):
            ledger.reserve(**reservation(run="s"))
    finally:
        path.parent.chmod(0o700)


def test_a_ledger_that_another_process_holds(ledger, path, monkeypatch):
    monkeypatch.setattr(file, "_BUSY_SECONDS", 0)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process"):
            ledger.reserve(**reservation(run="s"))
        assert len(ledger.entries()) == 3
    ledger.reserve(**reservation(run="s"))


def _charge(ledger, times):
    for index in range(times):
        ledger.reserve(**reservation(run="s", index=index))


def test_a_full_disk_charges_nothing_and_raises_before_anything_leaves(ledger, path, monkeypatch):
    entries = ledger.entries()
    with monkeypatch.context() as patch:
        pages = path.stat().st_size // 4096
        patch.setattr(file, "_PRAGMAS", (*file._PRAGMAS, f"max_page_count = {pages}"))
        with pytest.raises(LedgerError, match="is full"):
            _charge(ledger, 100)
        full = ledger.entries()
        with pytest.raises(LedgerError, match="is full"):
            ledger.keep("r", 2, bytes(100_000))
    assert full[: len(entries)] == entries
    assert ledger.entries() == full
    assert ledger.keep("r", 2, ANSWER) == ANSWER


def test_answers_of_runs_that_are_never_closed_do_not_fill_the_disk(ledger, monkeypatch):
    answer = bytes(1000)
    for number in range(4):
        ledger.reserve(**reservation(run=f"open {number}"))
    size = sum(len(entry.answer or b"") for entry in ledger.entries())
    monkeypatch.setattr(ledgers, "MOST_KEPT", size + 3500)
    for number in range(3):
        assert ledger.keep(f"open {number}", 0, answer) == answer
    with pytest.raises(RefusedError, match="open runs;"):
        ledger.keep("open 3", 0, answer)
    ledger.commit("open 0", 0)  # as its run is closed
    assert ledger.keep("open 3", 0, answer) == answer


LIMITED = """
import os, resource, sys
from common.errors import LedgerError
from common.ledger.ledger import Ledger
from tests.support.ledgers import reservation
path = sys.argv[1]
ledger = Ledger(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path), resource.RLIM_INFINITY))
charged = 0
try:
    while True:
        ledger.reserve(**reservation(run="s", index=charged))
        charged += 1
except LedgerError as error:
    print(charged, error)
"""


def test_a_file_that_may_not_grow(ledger, path):
    done = subprocess.run([sys.executable, "-c", LIMITED, path], check=True, capture_output=True, text=True)
    charged, message = done.stdout.split(" ", 1)
    assert "be read" in message
    assert "is full" in message
    assert len(Ledger(path).entries("s")) == int(charged) < 100


def test_a_new_ledger_on_a_full_disk(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(file, "_PRAGMAS", (*file._PRAGMAS, "max_page_count = 3"))
        with pytest.raises(LedgerError, match="is full"):
            Ledger(path)
    assert Ledger(path).verify().events == 0


def test_a_copy_is_the_same_ledger(ledger, path, tmp_path):
    shutil.copy(path, tmp_path / "copy.db")
    assert Ledger(tmp_path / "copy.db").verify(ledger.verify().chain) == ledger.verify()


def test_a_copy_of_a_ledger_in_use_is_whole_closed_and_never_written_over(ledger, path, tmp_path):
    copy = tmp_path / "backup.db"
    with ledger._file.transaction(write=True) as database:
        database.execute("INSERT INTO samples VALUES ('s', 'draw', NULL)")
        assert ledger.copy(copy) == ledger.verify()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert Ledger(copy, read_only=True).entries() == ledger.entries()
    ledger.reserve(**reservation(index=7))
    with pytest.raises(LedgerError, match=f"File exists; at {copy}"):
        ledger.copy(copy)
    assert Ledger(copy, read_only=True).verify().events == 6
    with pytest.raises(LedgerError, match="No such file"):
        ledger.copy(tmp_path / "absent" / "backup.db")


def test_a_copy_for_which_there_is_no_room_is_removed(ledger, tmp_path, monkeypatch):
    class Full(sqlite3.Connection):
        def backup(self, target, **_):
            raise sqlite3.OperationalError("database or disk is full")

    connect = sqlite3.connect
    monkeypatch.setattr(file.sqlite3, "connect", lambda *where, **how: connect(*where, **how, factory=Full))
    with pytest.raises(LedgerError, match="is full"):
        ledger.copy(tmp_path / "backup.db")
    assert not (tmp_path / "backup.db").exists()


def test_a_ledger_is_opened_against_the_head_that_was_noted(ledger, path):
    noted = ledger.head()
    assert noted == ledger.verify()
    assert Ledger(path, head=noted.chain).head() == noted
    with pytest.raises(LedgerError, match="was noted"):
        Ledger(path, head="ab" * 32)


def test_no_power_cut_brings_the_journal_of_a_commit_back(ledger):
    with ledger._file.transaction() as database:
        assert database.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_an_error_of_unknown_cause_names_the_file(ledger, path, monkeypatch):
    def fail(*_args, **_kwargs):
        raise sqlite3.InterfaceError("odd")

    monkeypatch.setattr(file.sqlite3, "connect", fail)
    with pytest.raises(LedgerError, match=f"got odd; at {path}"):
        ledger.entries()


def test_the_error_of_a_broken_chain_says_what_to_do():
    assert "Restore a backup" in str(broken_ledger_error("x"))

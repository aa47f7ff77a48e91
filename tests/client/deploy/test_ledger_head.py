"""A restored old ledger: the party service refuses to start over it until a person has charged what was lost."""

import contextlib
import shutil
import sqlite3

import pytest

from client.command import main
from client.deploy import host
from client.deploy.settings import HospitalSettings
from common.errors import LedgerError
from common.ledger import file
from common.ledger.ledger import Ledger
from common.privacy.accountant import epsilon
from common.system import locks, processes
from tests.support.hospital import change, said
from tests.support.ledgers import reservation


@pytest.fixture
def hospital(made, tmp_path):
    """A hospital's folder whose head is noted elsewhere, with one charge."""
    (tmp_path / "disk").mkdir()
    change(made, ledger_head=str(tmp_path / "disk" / "head"))
    charge(started(made), 0)
    return made


def charge(service, index):
    service._ledger.reserve(**reservation(index=index))
    service._noted_head.write(service._ledger)


def interrupt(path, copy):
    """Leave a ledger and its journal as they are copied in the middle of a write: as a crash leaves them."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO samples VALUES ('s', 'draw', zeroblob(1000000))")
        for suffix in ("", "-journal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
        database.execute("ROLLBACK")
    for suffix in ("", "-journal"):
        shutil.copy(f"{copy}{suffix}", f"{path}{suffix}")


def started(folder):
    return host.service(HospitalSettings.load(folder))


def ledger(folder):
    return Ledger(folder / "private" / "ledger.db", read_only=True)


def test_the_whole_folder_restored_from_a_backup_is_refused_until_what_was_lost_is_charged(tmp_path, hospital, capsys):
    shutil.copytree(hospital, tmp_path / "backup")
    charge(started(hospital), 1)
    shutil.rmtree(hospital)
    shutil.copytree(tmp_path / "backup", hospital)
    with pytest.raises(LedgerError):
        started(hospital)
    before = ledger(hospital).releases()
    assert main(["ledger", "accept", str(hospital), "--lost", "1.5"]) == 0
    out = capsys.readouterr().out
    assert "epsilon 1.5" in out
    assert str(tmp_path / "disk" / "head") in out
    (lost,) = ledger(hospital).entries()[:1]
    assert all(entry.committed for entry in ledger(hospital).entries())  # what was under way is never given again
    assert epsilon([lost.release], 1e-4) == pytest.approx(1.5, rel=1e-3)
    assert sorted(map(repr, ledger(hospital).releases())) == sorted(map(repr, (*before, lost.release)))
    assert started(hospital)


def test_what_the_service_would_start_with_is_not_charged_twice(hospital, capsys):
    for lost, what in (("1", "the ledger has its noted head"), ("-1", "--lost;"), ("nan", "--lost;")):
        assert what in said(capsys, "ledger", "accept", hospital, f"--lost={lost}")
    assert ledger(hospital).head().events == 1


def test_an_interrupted_write_is_undone_and_nothing_is_charged_for_it(hospital, tmp_path, capsys):
    path = hospital / "private" / "ledger.db"
    interrupt(path, tmp_path / "copy.db")
    for command in (("status", hospital), ("ledger", "verify", path), ("ledger", "backup", path, tmp_path / "backup")):
        assert "nothing is" in said(capsys, *command, code=1)
    said(capsys, "ledger", "accept", hospital, "--lost", "inf")
    assert ledger(hospital).head().events == 1
    assert started(hospital)


@pytest.mark.parametrize("code", sorted({*file._CAUSES, sqlite3.SQLITE_ERROR}))
def test_what_no_charge_removes_is_no_ledger_to_accept(code, hospital, monkeypatch, capsys):
    before = ledger(hospital).head()
    with monkeypatch.context() as failing:

        class Failing(sqlite3.Connection):
            def execute(self, *_):
                error = sqlite3.OperationalError("the message")
                error.sqlite_errorcode = code
                raise error

        connect = sqlite3.connect
        failing.setattr(file.sqlite3, "connect", lambda *where, **how: connect(*where, **how, factory=Failing))
        said(capsys, "ledger", "accept", hospital, "--lost", "1", code=1)
    damaged = list((hospital / "private").glob("*.damaged*"))
    assert bool(damaged) is (code in file._DAMAGED)
    assert damaged or ledger(hospital).head() == before


def test_no_ledger_is_accepted_while_a_service_runs(hospital, monkeypatch, capsys):
    (hospital / "private" / "ledger.db").unlink()
    monkeypatch.setattr(locks, "holder", lambda *_: 7)
    said(capsys, "ledger", "accept", hospital, "--lost", "1", code=2)
    assert not (hospital / "private" / "ledger.db").exists()


@pytest.mark.parametrize(("lost", "spent"), [("0", 0.0), ("3", 3.0), ("inf", float("inf"))])
def test_a_ledger_that_is_lost_altogether_begins_with_what_it_held(lost, spent, hospital):
    (hospital / "private" / "ledger.db").unlink()
    with pytest.raises(LedgerError):
        started(hospital)
    assert main(["ledger", "accept", str(hospital), "--lost", lost]) == 0
    assert epsilon(ledger(hospital).releases(), 1e-4) == pytest.approx(spent, rel=1e-3)
    assert started(hospital)


def test_a_backup_of_a_ledger_in_use_is_verified_by_its_head(tmp_path, hospital, capsys):
    service = started(hospital)
    assert main(["ledger", "backup", str(hospital), str(tmp_path / "ledger-monday.db")]) == 0
    out = capsys.readouterr().out
    head = ledger(hospital).head()
    assert out == f"1 events, head {head.chain}\n"
    charge(service, 1)
    arguments = ["ledger", "verify", str(tmp_path / "ledger-monday.db"), "--head"]
    assert main([*arguments, head.chain]) == 0
    assert main([*arguments, (tmp_path / "disk" / "head").read_text().strip()]) == 1
    capsys.readouterr()
    said(capsys, "ledger", "backup", hospital, tmp_path / "ledger-monday.db", code=1)


def test_start_ends_with_the_reason_over_a_ledger_that_the_service_refuses(hospital, tmp_path, monkeypatch, capsys):
    supervised = []
    monkeypatch.setattr(processes, "supervise", lambda *_, **__: supervised.append(1))
    path = hospital / "private" / "ledger.db"
    interrupt(path, tmp_path / "copy.db")
    assert main(["start", str(hospital)]) == 0  # the service undoes that by itself
    older = path.read_bytes()
    charge(started(hospital), 1)
    path.write_bytes(older)
    said(capsys, "start", hospital)
    path.write_bytes(b"no ledger" * 100)
    assert "ledger accept" in said(capsys, "start", hospital)
    path.unlink()
    said(capsys, "start", hospital)
    assert main(["start", str(hospital), "--only", "relay"]) == 0
    assert len(supervised) == 2


def test_show_and_status_of_a_folder_have_one_delta_and_one_figure(hospital, capsys):
    change(hospital, limits={"lifetime_delta": 3e-5})
    output = []
    for command in (["ledger", "show"], ["status"]):
        assert main([*command, str(hospital)]) == 0
        output.append(capsys.readouterr().out)
    table, status = output
    figure = table.split()[-1]
    assert "delta 3e-05" in table
    assert f"3e-05: {float(figure):g}" in status

"""A restored old ledger: the party service refuses to start over it until a person has charged what was lost."""

import shutil

import pytest

from client.command import main
from client.deploy import host
from client.deploy.settings import HospitalSettings
from common.errors import LedgerError
from common.ledger.ledger import Ledger
from common.privacy.accountant import epsilon
from tests.support.hospital import change
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


def started(folder):
    return host.service(HospitalSettings.load(folder))


def ledger(folder):
    return Ledger(folder / "private" / "ledger.db", read_only=True)


def test_a_new_hospital_notes_the_head_in_its_folder(tmp_path, hospital):
    path = hospital / "client.yaml"
    path.write_text(path.read_text().replace("ledger_head:", "# ledger_head:"))
    shutil.copy(tmp_path / "disk" / "head", hospital / "private" / "ledger.head")
    assert HospitalSettings.load(hospital).noted_head.path == hospital / "private" / "ledger.head"
    assert started(hospital)


def test_the_whole_folder_restored_from_a_backup_is_refused_until_what_was_lost_is_charged(tmp_path, hospital, capsys):
    shutil.copytree(hospital, tmp_path / "backup")
    charge(started(hospital), 1)
    shutil.rmtree(hospital)
    shutil.copytree(tmp_path / "backup", hospital)
    with pytest.raises(LedgerError, match="an older copy or another ledger"):
        started(hospital)
    before = ledger(hospital).releases()
    assert main(["ledger", "accept", str(hospital), "--lost", "1.5"]) == 0
    out = capsys.readouterr().out
    assert f"epsilon 1.5 is charged to every record; the head is noted in {tmp_path / 'disk' / 'head'}" in out
    (lost,) = ledger(hospital).entries()[:1]
    assert lost.run.startswith("lost with another ledger, ")
    assert all(entry.committed for entry in ledger(hospital).entries())  # what was under way is never given again
    assert epsilon([lost.release], 1e-4) == pytest.approx(1.5, rel=1e-3)
    assert sorted(map(repr, ledger(hospital).releases())) == sorted(map(repr, (*before, lost.release)))
    assert started(hospital)


def test_what_the_service_would_start_with_is_not_charged_twice(hospital, capsys):
    assert main(["ledger", "accept", str(hospital), "--lost", "1"]) == 2
    assert "expected one that the service refuses; got one that has its noted head" in capsys.readouterr().err
    assert ledger(hospital).head().events == 1


@pytest.mark.parametrize("lost", ["-1", "nan"])
def test_what_was_lost_is_no_negative_number(lost, hospital, capsys):
    assert main(["ledger", "accept", str(hospital), f"--lost={lost}"]) == 2
    assert "--lost; expected a number of at least 0" in capsys.readouterr().err


@pytest.mark.parametrize(("lost", "spent"), [("0", 0.0), ("3", 3.0), ("inf", float("inf"))])
def test_a_ledger_that_is_lost_altogether_begins_with_what_it_held(lost, spent, hospital):
    (hospital / "private" / "ledger.db").unlink()
    with pytest.raises(LedgerError, match="the ledger is missing"):
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
    assert main(["ledger", "backup", str(hospital), str(tmp_path / "ledger-monday.db")]) == 1
    assert "the ledger cannot be copied; got File exists" in capsys.readouterr().err

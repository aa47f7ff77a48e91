"""A hospital whose records are in a database: `init` copies them, `refresh` takes them again."""

import re
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import pytest

from client.approval.entries import Approvals
from client.command import main
from client.deploy.settings import HospitalSettings
from client.session import RefusalError
from common.domain import Record
from tests.support.databases import PASSWORD, QUERY, definition, sqlite_file
from tests.support.federations import CANARY, plan
from tests.support.hospital import change, init_words, said

NOTES = "CREATE TABLE notes (id INTEGER, text TEXT, label TEXT, patient TEXT)"


@pytest.fixture
def query(made):
    """A query of a database with two rows."""
    rows = [f"INSERT INTO notes VALUES ({number}, '{CANARY} {number}', '{'ab'[number]}', 'p1')" for number in range(2)]
    sqlite_file(made.parent, NOTES, *rows)
    return definition(made.parent, url="sqlite:///notes.db", query=QUERY)


def init(made, records, *flags, name="new"):
    return init_words(made.parent / name, *flags, records=records)


@pytest.fixture
def folder(made, query, capsys):
    """A hospital's folder over these rows."""
    assert main(init(made, query)) == 0
    capsys.readouterr()
    return made.parent / "new"


def execute(query, statement):
    with closing(sqlite3.connect(query.parent / "notes.db")) as connection, connection:
        connection.execute(statement)


def test_init_copies_the_rows_into_the_private_folder_and_check_reads_the_copy(made, query, capsys):
    assert main(init(made, query)) == 0
    out = capsys.readouterr().out
    folder = made.parent / "new"
    copy = folder / "private" / "records.jsonl"
    assert f"\n2 records in {query} (" in out
    assert f"caucus-party refresh {folder} {query}" in out
    assert CANARY not in out
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    settings = HospitalSettings.load(folder)
    assert settings.records == copy
    assert settings.read_records() == [Record(f"{CANARY} {number}", "ab"[number], "p1") for number in range(2)]
    (query.parent / "notes.db").unlink()
    query.unlink()
    assert main(["check", str(folder), "--offline"]) == 0
    assert "1 users" in (out := capsys.readouterr().out)
    assert 'AS "user"' in out


def test_a_second_folder_over_one_query_is_warned_of_though_its_rows_have_changed(made, query, folder, capsys):
    execute(query, "DELETE FROM notes WHERE id = 0")
    assert main(init(made, query, name="second")) == 0
    assert f"WARNING: {folder}" in capsys.readouterr().out


def test_records_of_text_alone_stay_so(made, query):
    alone = definition(made.parent, url="sqlite:///notes.db", query="SELECT text FROM notes")
    assert main(init(made, alone, "--unlabelled")) == 0
    assert [record.label for record in HospitalSettings.load(made.parent / "new").read_records()] == ["all texts"] * 2


@pytest.mark.parametrize(
    "records", ["postgresql://reader:p@ss@db.hospital/notes", "sqlite:///notes.db", "mysql+x://r:p@ss@h/n"]
)
def test_an_address_in_place_of_a_file_is_refused_and_not_shown(records, made, capsys):
    error = said(capsys, *init(made, records))
    assert ".sql.yaml" in error
    assert not (made.parent / "new").exists()
    change(made, records=records)
    assert main(["check", str(made), "--offline"]) == 1
    out, err = capsys.readouterr()
    assert not re.search(r"p@ss|notes\.db|db\.hospital", error + out + err)


def test_nothing_is_made_of_a_query_that_fails(made, query, capsys):
    execute(query, "UPDATE notes SET label = NULL")
    assert "wrong label;" in said(capsys, *init(made, query))
    assert not (made.parent / "new").exists()


def test_refresh_takes_the_rows_again_and_a_run_keeps_to_those_that_it_began_with(query, folder, capsys):
    settings = HospitalSettings.load(folder)

    def service():
        return Approvals(settings.private, records=settings.records, key=settings.records_key())

    begun = service()
    begun.admit("r", plan(), automatic=True)
    assert main(["refresh", str(folder), str(query)]) == 0
    capsys.readouterr()
    execute(query, f"INSERT INTO notes VALUES (2, '{CANARY} 2', 'a', 'p2')")
    begun.admit("r", plan(), automatic=True)  # what changes in the database alone changes nothing here
    assert main(["refresh", str(folder), str(query)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"3 records from {query} (")
    assert CANARY not in out
    assert len(settings.read_records()) == 3
    assert stat.S_IMODE(settings.records.stat().st_mode) == 0o600
    for running in (begun, service()):
        with pytest.raises(RefusalError) as caught:
            running.admit("r", plan(), automatic=True)
        assert caught.value.reason.name == "RECORDS"
    service().admit("another", plan(), automatic=True)


def test_refresh_refuses_what_init_refuses_and_leaves_the_copy(query, folder, capsys):
    copy = folder / "private" / "records.jsonl"
    before = copy.read_bytes()
    execute(query, "UPDATE notes SET label = NULL WHERE id = 1")
    assert "got null" in said(capsys, "refresh", folder, query)
    execute(query, "UPDATE notes SET label = 'a'")
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)"
    execute(query, f"{numbers} INSERT INTO notes SELECT i, 'x', 'a', 'p' FROM n")
    assert "1,000" in said(capsys, "refresh", folder, query)
    assert copy.read_bytes() == before


def test_a_folder_over_a_file_has_nothing_to_refresh(made, query, capsys):
    assert "client.yaml;" in said(capsys, "refresh", made, query)


def test_a_password_is_in_no_output(made):
    path = definition(made.parent, url="postgresql://reader@127.0.0.1:1/notes", query=QUERY, password=PASSWORD)
    ended = subprocess.run(
        [sys.executable, "-m", "client.command", *init(made, path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("caucus-party: records:")
    assert PASSWORD not in ended.stdout + ended.stderr
    assert "p@ss" not in ended.stdout + ended.stderr

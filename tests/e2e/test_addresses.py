"""Each form of an address, at each command and in each file that takes one: used, or refused with nothing made.

What is refused is one line with exit code 2, and it names the option or the field.
"""

import errno
import json
import os

import pytest

from client.command import main as party
from client.deploy import create as hospital_create
from client.deploy.settings import HospitalSettings
from server.command import main as coordinator
from server.deploy import create
from server.deploy.settings import CoordinatorSettings
from tests.support.addresses import RIGHT, WRONG
from tests.support.hospital import change


@pytest.fixture(autouse=True)
def no_bundle(monkeypatch):
    """Flower builds no bundle."""
    monkeypatch.setattr(create, "write_bundle", lambda *_: "ab" * 32)


def made(at, address):
    """The coordinator's folder and a hospital's."""
    assert coordinator(["init", str(at / "c"), "--address", address]) == 0
    records = at / "notes.csv"
    records.touch(0o600)
    records.write_text("text,label\nx,a\n")
    given = ("--records", str(records), "--invitation", str(at / "c" / "invitation.json"))
    assert party(["init", str(at / "h"), "--name", "St. Mary", *given]) == 0
    return at / "c", at / "h"


def refused(capsys, main, field, *words):
    assert main(list(map(str, words))) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"{field}; expected " in error
    assert "Traceback" not in error
    assert "secret" not in error


@pytest.mark.parametrize("form", RIGHT)
def test_a_right_address_leads_from_the_coordinator_s_folder_to_a_hospital_s(form, tmp_path):
    host, port = RIGHT[form]
    there, hospital = made(tmp_path, form)
    settings = CoordinatorSettings.load(there)
    assert (settings.host, settings.port, settings.listen) == (host, port, "::" if ":" in host else "0.0.0.0")
    assert coordinator(["renew", str(there)]) == 0
    assert HospitalSettings.load(hospital).coordinator == form


def test_a_wrong_address_is_refused_by_init_which_makes_nothing(tmp_path, capsys):
    for form in WRONG:
        refused(capsys, coordinator, "--address", "init", tmp_path / "c", f"--address={form}")
        assert not (tmp_path / "c").exists()


def test_a_wrong_address_in_a_file_is_refused(tmp_path, capsys):
    """In coordinator.yaml, in an invitation, before and after a hospital has its folder, and in client.yaml."""
    there, hospital = made(tmp_path, "localhost:9443")
    capsys.readouterr()
    known = json.loads((there / "invitation.json").read_text())
    invitation = tmp_path / "wrong.json"
    new = ("init", tmp_path / "h2", "--name", "B", "--records", tmp_path / "notes.csv", "--invitation", invitation)
    for form in WRONG:
        (there / "coordinator.yaml").write_text(f"address: {json.dumps(form)}\n")
        refused(capsys, coordinator, "address", "renew", there)
        invitation.write_text(json.dumps(known | {"address": form}))
        refused(capsys, party, "invitation's address", *new)
        assert not (tmp_path / "h2").exists()
        refused(capsys, party, "invitation's address", "invitation", hospital, invitation)
        change(hospital, coordinator=form)
        refused(capsys, party, "coordinator", "status", hospital)
        change(hospital, coordinator="localhost:9443")


@pytest.mark.parametrize("listen", ["[::]", "0.0.0.0:9443", "any", "", "ü", "https://a"])
def test_a_host_to_listen_on(listen, tmp_path, capsys):
    words = ("init", tmp_path / "c", "--address", "localhost:9443", f"--listen={listen}")
    if listen in {"any", ""}:
        assert coordinator(list(map(str, words))) == 0
    else:
        refused(capsys, coordinator, "--listen", *words)
        assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize("step", ["make_authority", "make_certificate", "write_connection", "write_bundle"])
def test_where_the_coordinator_s_init_fails_late_nothing_is_left(step, was_there, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "c"
    if was_there:
        folder.mkdir()
    monkeypatch.setattr(create, step, no_space)
    assert coordinator(["init", str(folder), "--address", "localhost:9443"]) == 1
    assert "No space" in capsys.readouterr().err
    assert folder.exists() == was_there
    assert not list(folder.glob("*"))


@pytest.mark.parametrize("nth", range(8))
def test_where_a_hospital_s_init_fails_late_nothing_is_left(nth, tmp_path, monkeypatch, capsys):
    """At each of its files."""
    there, _ = made(tmp_path, "localhost:9443")
    written, write = [], hospital_create.write_atomic

    def fails(path, *arguments, **named):
        written.append(path)
        return no_space() if len(written) > nth else write(path, *arguments, **named)

    monkeypatch.setattr(hospital_create, "write_atomic", fails)
    given = ("--records", str(tmp_path / "notes.csv"), "--invitation", str(there / "invitation.json"))
    failed = party(["init", str(tmp_path / "h2"), "--name", "B", *given])
    assert failed == (nth < 7)
    assert (tmp_path / "h2").exists() == (not failed)


def no_space(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

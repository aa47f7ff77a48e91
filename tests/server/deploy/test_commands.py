"""The coordinator's commands without Flower: each bad input is one clear line and an exit code."""

import base64
import json
import os
import socket
import sys
from datetime import timedelta

import pytest

from common.domain import MOST_RECORDS
from common.system import processes
from common.system.enrolment import PartyFile, RosterFile
from server.command import main
from server.deploy import authority, create, enrolment, serve
from server.deploy.settings import CoordinatorSettings
from server.flower.commands import TOKEN, write_connection
from tests.support.enrolment import PARTY, node_key
from tests.support.flower import said
from tests.support.impostors import compared, impostors
from tests.support.locking import locking


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """A coordinator's folder; Flower agrees to everything."""
    monkeypatch.setattr(create, "write_bundle", lambda *_: "ab" * 32)
    monkeypatch.setattr(enrolment, "flwr", lambda *_: {"node-id": 7})
    monkeypatch.setattr(CoordinatorSettings, "check_served", lambda _: None)
    folder = tmp_path / "coordinator"
    assert main(["init", str(folder), "--address", "localhost:9443"]) == 0
    capsys.readouterr()
    return folder


OTHER = {"name": "B", "identity": "cd" * 32, "node_key": node_key()}


def party(path, **change):
    path.write_text(json.dumps(PARTY | change))
    return path


@pytest.fixture
def enrolled(folder, tmp_path, capsys):
    """The folder, with St. Mary enrolled."""
    assert main(["enrol", "--yes", str(folder), str(party(tmp_path / "a.json"))]) == 0
    capsys.readouterr()
    return folder


def test_init_leaves_closed_secrets_and_an_invitation_and_never_overwrites(folder, capsys):
    for name in ("ca.key", "server.key", "superexec.secret"):
        assert (folder / name).stat().st_mode & 0o077 == 0
    invitation = json.loads((folder / "invitation.json").read_text())
    assert invitation["address"] == "localhost:9443"
    assert "PRIVATE" not in json.dumps(invitation)
    said(capsys, "init", folder, "--address", "localhost:9443")
    assert "address;" in said(capsys, "init", folder.with_name("new"), "--address", "localhost")


def test_enrolled_parties_are_numbered_and_on_the_roster(enrolled, tmp_path, capsys):
    folder = enrolled
    assert main(["enrol", "--yes", str(folder), str(party(tmp_path / "b.json", **OTHER))]) == 0
    assert RosterFile.load(folder / "roster.json").names == ("St. Mary", "B")
    identities = json.loads((folder / "identities.json").read_text())
    assert identities == {"max_records": MOST_RECORDS, "0": "ab" * 32, "1": "cd" * 32}
    assert main(["remove", "--yes", str(folder), "St. Mary"]) == 0
    assert RosterFile.load(folder / "roster.json").names == ("B",)
    assert json.loads((folder / "identities.json").read_text()) == {"max_records": MOST_RECORDS, "0": "cd" * 32}
    capsys.readouterr()
    assert "no such hospital is enrolled;" in said(capsys, "remove", folder, "St. Mary")


def test_a_hospital_is_enrolled_and_removed_only_by_a_yes(folder, tmp_path, capsys, monkeypatch):
    file = party(tmp_path / "a.json")
    line = said(capsys, "enrol", folder, file)
    assert "new hospital;" in line
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    for command, what, before, after in (("enrol", file, 0, 1), ("remove", "St. Mary", 1, 0)):
        for reply, code, number in (("", 1, before), ("no", 1, before), ("y", 0, after)):
            monkeypatch.setattr("builtins.input", lambda _, reply=reply: reply)
            assert main([command, str(folder), str(what)]) == code
            assert len(enrolment.enrolled_parties(CoordinatorSettings.load(folder))) == number


@pytest.mark.parametrize("same", ["name", "identity", "node_key"])
def test_two_hospitals_with_one_name_or_key(same, enrolled, tmp_path, capsys):
    second = party(tmp_path / "b.json", **OTHER | {same: PARTY[same]})
    assert f"has the same {same.replace('_', ' ')}. Run" in said(capsys, "enrol", enrolled, second)
    assert len(json.loads((enrolled / "parties.json").read_text())) == 1


def test_no_name_shows_another_fingerprint(folder, tmp_path, capsys):
    assert main(["enrol", "--yes", str(folder), str(party(tmp_path / "a.json"))]) == 0
    genuine, shown = capsys.readouterr().out.splitlines(), 0
    assert compared(genuine) == [("St. Mary", PartyFile(**PARTY).fingerprint)]
    for name in impostors(genuine):
        other = OTHER | {"name": name[:100]}
        if main(["enrol", "--yes", str(folder), str(party(tmp_path / "b.json", **other))]):
            capsys.readouterr()
            continue
        shown += 1
        lines = capsys.readouterr().out.splitlines()
        assert compared(lines) == [(name[:100], PartyFile(**other).fingerprint)]
        assert main(["remove", "--yes", str(folder), name[:100]]) == 0
        capsys.readouterr()
    assert shown > 2


def test_a_name_ends_where_its_quote_ends_whichever_command_shows_it(folder, tmp_path, capsys):
    file = tmp_path / "a.json"

    def shown(name):
        """What each command says that shows the name of the only hospital; nothing if the name is refused."""
        refused, texts = main(["enrol", "--yes", str(folder), str(party(file, name=name))]), []
        capsys.readouterr()
        if refused:
            return []
        for command, *words in (
            ["status"],
            ["remove", name],
            ["remove", "another"],
            ["enrol", str(file)],
            ["remove", "--yes", name],
        ):
            main([command, str(folder), *words])
            texts.append("".join(capsys.readouterr()))
        return texts

    genuine = [line for text in shown("St. Mary") for line in text.splitlines()]
    accepted = [(name[:100], texts) for name in impostors(genuine) if (texts := shown(name[:100]))]
    assert len(accepted) > 10
    for name, texts in accepted:
        quoted = json.dumps(name, ensure_ascii=False)
        for text in texts:
            assert quoted in text
            assert name not in text.replace(quoted, "")


def test_a_name_that_people_take_for_anothers_is_refused_before_its_node_is_registered(
    enrolled, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(enrolment, "flwr", lambda *_: pytest.fail("a node is registered"))
    other = party(tmp_path / "b.json", **OTHER | {"name": "ST. MARY"})
    assert "roster;" in said(capsys, "enrol", "--yes", enrolled, other)


def test_a_name_that_an_earlier_version_took_is_changed_as_the_error_says(enrolled, capsys):
    path, roster = enrolled / "parties.json", (enrolled / "roster.json").read_bytes()
    path.write_text(path.read_text().replace("St. Mary", "St. Mary: A"))
    assert path.name in said(capsys, "invite", enrolled)
    path.write_text(path.read_text().replace("St. Mary: A", "St. Mary A"))
    assert main(["invite", str(enrolled)]) == 0
    assert (enrolled / "roster.json").read_bytes() == roster.replace(b"St. Mary", b"St. Mary A")


def test_a_port_in_use(folder, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (folder / "coordinator.yaml").write_text(f"address: localhost:{port}\nlisten: 127.0.0.1\n")
        line = said(capsys, "serve", folder)
    assert all(fact in line for fact in ("port;", f"at 127.0.0.1:{port}. ", "coordinator.yaml"))


def test_a_coordinator_that_runs_is_not_started_again_and_the_ports_are_not_blamed(folder, capsys):
    with locking(folder, *serve.LOCKS) as process, socket.create_server(("127.0.0.1", 0)) as taken:
        settings = f"address: localhost:{taken.getsockname()[1]}\nlisten: 127.0.0.1\n"
        (folder / "coordinator.yaml").write_text(settings)
        assert main(["serve", str(folder)]) == 2
    out, error = capsys.readouterr()
    assert not out
    for fact in (f"got process {process.pid}; at {folder}.", f"caucus-coordinator stop {folder}\n"):
        assert fact in error


@pytest.mark.parametrize("account", [0, 1000])
def test_serve_as_root_says_what_that_means(account, folder, capsys, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: account)
    monkeypatch.setattr(serve, "_free", lambda *_: None)
    monkeypatch.setattr(processes, "supervise", lambda *_, **__: None)
    assert main(["serve", str(folder)]) == 0
    assert ("as root" in capsys.readouterr().out) == (account == 0)


def test_runs_look_for_models_where_the_operator_does(folder, monkeypatch):
    monkeypatch.setenv("CAUCUS_MODELS", "/srv/models")
    children = serve._children(CoordinatorSettings.load(folder))
    known = {child.name for child in children if child.environment.get("CAUCUS_MODELS") == "/srv/models"}
    assert known == {"executor"}


def test_a_proxy_is_on_the_way_to_a_runs_models_and_not_to_superlink(folder, monkeypatch):
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://user:s3cret@proxy:3128")
    for before, direct in (
        ("", "localhost,127.0.0.1,::1"),
        ("models.example", "models.example,localhost,127.0.0.1,::1"),
    ):
        monkeypatch.setenv("NO_PROXY", before)
        children = serve._children(CoordinatorSettings.load(folder))
        environments = {child.name: child.environment for child in children if "HTTPS_PROXY" in child.environment}
        assert {name: variables["no_proxy"] for name, variables in environments.items()} == {"executor": direct}
        assert "s3cret" not in str([child.command for child in children])


def test_each_start_draws_a_token_that_flowers_commands_send(folder):
    settings = CoordinatorSettings.load(folder)
    seen = set()
    for _ in range(2):
        write_connection(settings.folder, settings.superlink)
        seen.add(token := (folder / TOKEN).read_text())
        stored = json.loads((folder / "flwr" / "credentials.yaml").read_text())
        (sent,) = (value for name, value in stored.items() if name.endswith(f"{settings.superlink}.oidc-access-token"))
        assert base64.b64decode(sent).decode() == token
        assert len(bytes.fromhex(token)) == 32
    assert len(seen) == 2
    for name in (TOKEN, "flwr/credentials.yaml"):
        assert (folder / name).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("address: localhost:1\nlisten: 3\n", ["listen;", "FILE:2"]),
        ("address: localhost:1\nsuperlink: 3\n", ["superlink;", "FILE:2. ", "superlink_port?"]),
        ("listen: 127.0.0.1\n", ["address;", "FILE"]),
        ("address: localhost:1\nsuperlink_port: null\n", ["superlink_port;", "FILE:2"]),
        ("address: localhost:1\nsuperlink_port: 0\n", ["superlink_port;", "[1, 65535]", "FILE:2"]),
        ("", ["address, listen, superlink_port", "FILE"]),
    ],
)
def test_a_wrong_setting_is_named_with_its_line(content, facts, folder, capsys):
    (folder / "coordinator.yaml").write_text(content)
    line = said(capsys, "renew", folder)
    assert [fact for fact in facts if fact.replace("FILE", str(folder / "coordinator.yaml")) not in line] == []


def test_an_invitation_is_written_anew_after_an_upgrade(enrolled, monkeypatch, capsys):
    rosters = {name: (enrolled / name).read_text() for name in ("roster.json", "identities.json")}
    (enrolled / "roster.json").write_text("of an earlier version")
    (enrolled / "identities.json").unlink()
    before = json.loads((enrolled / "invitation.json").read_text())
    monkeypatch.setattr(create, "write_bundle", lambda *_: "cd" * 32)
    assert main(["invite", str(enrolled)]) == 0
    assert str(enrolled / "invitation.json") in capsys.readouterr().out
    assert json.loads((enrolled / "invitation.json").read_text()) == before | {"bundle": "cd" * 32}
    assert {name: (enrolled / name).read_text() for name in rosters} == rosters


def test_status_and_serve_warn_of_a_certificate_that_ends_soon(folder, monkeypatch, capsys):
    monkeypatch.setattr(enrolment, "flwr", lambda *_: {"nodes": []})
    assert main(["status", str(folder)]) == 0
    assert "364 days\n" in capsys.readouterr().out
    authority.make_certificate(folder, "localhost", valid=timedelta(days=20, hours=1))
    assert main(["status", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["certificate_days"] == {"server.crt": 20, "ca.crt": 3649}
    monkeypatch.setattr(serve.processes, "supervise", lambda *_, **__: None)
    monkeypatch.setattr(serve, "_free", lambda *_: None)
    for command in ("status", "serve"):
        assert main([command, str(folder)]) == 0
        assert "WARNING: server.crt " in capsys.readouterr().out


def test_serve_refuses_a_proxy_that_the_models_of_runs_cannot_use(folder, capsys, monkeypatch):
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "socks5://user:secret@proxy:1080")
    error = said(capsys, "serve", folder)
    assert ("HTTPS_PROXY;" in error, "secret" in error) == (True, False)

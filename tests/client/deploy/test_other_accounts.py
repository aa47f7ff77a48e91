"""Root's commands in folders of the relay's account: whatever that puts there, no file outside is changed or shown.

The account owns `node/`, and in containers it may write `run/`. Where the tests do not run as root, no file is really
given away: it is noted whether one outside would have been.
"""

import os
import pwd
import shutil
import signal
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from client.command import main
from client.deploy import host
from client.deploy.settings import HospitalSettings
from common.errors import ConfigError
from common.system import processes
from tests.support.enrolment import invitation
from tests.support.lanes import slow

ACCOUNT = next(account for account in pwd.getpwall() if account.pw_uid not in {0, os.geteuid()})
ROOT = os.geteuid() == 0
OUTSIDE = "ERROR of nobody's concern"
"""The content of a file outside, with a word that makes `status` show a line of SuperNode's log."""
STEPS = ("open", "stat", "unlink", "chown", "fchown", "chmod", "fsync", "replace", "rename")
"""Functions of the module `os` that make, change or name a file."""


class Hospital:
    """A hospital whose relay has an account of its own, and a file outside that is closed to it.

    Args:
        folder: A new one that the account can pass through.
        given: Inodes that were to be given away, where that is only noted.
    """

    def __init__(self, folder, given):
        self.folder, self.here, self._given = folder, folder / "hospital", given
        self.outside, self._records = folder / "outside", folder / "notes.csv"
        for path, content in ((self.outside, OUTSIDE), (self._records, "text,label\none,a\n")):
            path.write_text(content)
            path.chmod(0o600)
        self._invitations = [invitation(folder / name, f"{name}:1", "ab" * 32) for name in ("before", "after")]
        self._whole = self._outside()

    def init(self):
        named = ("--name", "x", "--records", self._records, "--invitation", self._invitations[0])
        return main(["init", *map(str, (self.here, *named, "--relay-user", ACCOUNT.pw_name))])

    def commands(self):
        """Each command that root gives here, as words."""
        invitations = (("invitation", "FOLDER", str(path)) for path in self._invitations[::-1])
        named = [("rotate", "FOLDER"), *invitations, ("check", "FOLDER", "--offline")]
        named += [(name, "FOLDER") for name in ("status", "start", "stop")]
        return [[word.replace("FOLDER", str(self.here)) for word in words] for words in named]

    def names(self):
        """What these commands have left in the account's folders, and where each is written first."""
        paths = [path for folder in ("node", "run", "logs") for path in (self.here / folder).iterdir()]
        return [*paths, *(path.with_name(path.name + ".part") for path in paths)]

    def _outside(self):
        status = self.outside.stat()
        return self.outside.read_text(), status.st_uid, status.st_gid, status.st_mode

    def untouched(self):
        return self._outside() == self._whole and self.outside.stat().st_ino not in self._given

    def owns(self, path):
        """Whether a file was given to the account."""
        status = path.stat()
        return status.st_uid == ACCOUNT.pw_uid if ROOT else status.st_ino in self._given

    def link(self, path):
        path.symlink_to(self.outside)
        os.chown(path, ACCOUNT.pw_uid, ACCOUNT.pw_gid, follow_symlinks=False)

    @contextmanager
    def planted(self, path, plant):
        """What the account puts there; afterwards there is again what there was."""
        aside = path.with_name("aside")
        if there := path.exists():
            path.rename(aside)
        plant(path)
        yield
        path.unlink(missing_ok=True)
        if there:
            aside.rename(path)


@pytest.fixture
def hospital(monkeypatch, capsys):
    given = set()
    if not ROOT:

        def noted(file, *_, **how):
            given.add(os.stat(file, **how).st_ino)  # noqa: PTH116 a path or a descriptor

        monkeypatch.setattr(os, "geteuid", lambda: 0)
        for name in ("chown", "fchown"):
            monkeypatch.setattr(os, name, noted)

    def supervised(_, *, folder, names):
        for half in names:
            processes._write(folder / "run" / f"{half}.json", [])
            processes._start(processes.Child(name="supernode", command=("true",)), folder).wait()

    monkeypatch.setattr(processes, "supervise", supervised)
    monkeypatch.setattr(HospitalSettings, "roster", lambda _: None)
    monkeypatch.setattr(HospitalSettings, "number", lambda *_: 0)
    folder = Path(tempfile.mkdtemp(prefix="caucus-"))
    folder.chmod(0o711)
    try:
        yield Hospital(folder, given)
    finally:
        shutil.rmtree(folder)


def waited(*_):
    raise AssertionError("a command waits for what nobody says")


@pytest.mark.parametrize("kind", ["link", slow("pipe")])
def test_no_command_follows_a_link_or_waits_for_a_pipe(kind, hospital, capsys):
    assert hospital.init() == 0
    for command in hospital.commands():
        main(command)
    names = hospital.names()
    assert {"node.key", "ca.crt", "service.lock", "service.json", "supernode.log"} <= {path.name for path in names}
    capsys.readouterr()
    before = signal.signal(signal.SIGALRM, waited)
    try:
        for path in names:
            for command in hospital.commands():
                with hospital.planted(path, hospital.link if kind == "link" else os.mkfifo):
                    signal.alarm(60)
                    main(command)
                    signal.alarm(0)
                assert hospital.untouched(), (path, command)
                out, err = capsys.readouterr()
                assert OUTSIDE not in out + err, (path, command)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def struck(monkeypatch, when, strike, command):
    """Run a command while the account strikes before and after the step of this number; how many steps there were."""
    steps = 0

    def watched(real):
        def step(*arguments, **how):
            nonlocal steps
            steps += 1
            mine = steps == when
            if mine:
                strike()
            try:
                return real(*arguments, **how)
            finally:
                if mine:
                    strike()

        return step

    with monkeypatch.context() as patched:
        for name in STEPS:
            patched.setattr(os, name, watched(getattr(os, name)))
        command()
    return steps


@pytest.mark.parametrize("name", ["node.key", slow("superexec.secret"), slow("ca.crt")])
def test_no_step_leads_outside_whenever_the_account_puts_a_link_there(name, hospital, monkeypatch):
    assert hospital.init() == 0
    rotate, invite, *_ = hospital.commands()
    path, steps, when = hospital.here / "node" / name, 1, 0
    partial = path.with_name(f"{name}.part")

    def strike():
        for place_of_link in (path, partial):
            if os.path.lexists(place_of_link):
                place_of_link.rename(path.with_name("aside"))
            hospital.link(place_of_link)

    while when < steps:
        for place_of_link in (path, partial):
            place_of_link.unlink(missing_ok=True)
        path.touch(mode=0o600)
        os.chown(path, ACCOUNT.pw_uid, ACCOUNT.pw_gid)
        when += 1
        steps = struck(monkeypatch, when, strike, lambda: main(invite if name == "ca.crt" else rotate))
        assert hospital.untouched(), when
    assert when > 10


def test_init_uses_no_path_that_the_account_can_change(hospital, monkeypatch):
    node, steps, when = hospital.here / "node", 1, 0

    def strike():
        enters = hospital.here.exists() and hospital.here.stat().st_mode & 0o001
        if enters and hospital.owns(node):
            for path in list(node.iterdir()):
                path.rename(node / "aside")
                hospital.link(path)

    while when < steps:
        shutil.rmtree(hospital.here, ignore_errors=True)
        when += 1
        steps = struck(monkeypatch, when, strike, hospital.init)
        assert hospital.untouched(), when
    assert when > 10
    assert hospital.owns(node)
    assert all(hospital.owns(path) for path in node.iterdir())


@pytest.mark.skipif(not ROOT, reason="only root gives folders away")
def test_a_folder_that_the_account_could_replace_as_a_whole_is_refused(hospital, capsys):
    os.chown(hospital.folder, ACCOUNT.pw_uid, ACCOUNT.pw_gid)
    assert hospital.init() == 2
    message = f"{ACCOUNT.pw_name} could replace the folder; got "
    assert message in capsys.readouterr().err
    assert not hospital.here.exists()


def test_the_services_socket_is_given_and_no_link_in_its_place(hospital, monkeypatch):
    assert hospital.init() == 0
    monkeypatch.chdir(hospital.folder)
    monkeypatch.setattr(sys, "argv", ["host", str(hospital.here)])
    monkeypatch.setattr(host, "serve_socket", lambda *_, **__: hospital.link(Path("run/party.sock")))

    def none(_):
        raise ConfigError("no service")

    monkeypatch.setattr(host, "service", none)
    assert host.main() == 1
    assert hospital.untouched()

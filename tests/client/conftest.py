"""A hospital's folder."""

import pytest

from client.command import main
from common.system.enrolment import PartyFile, RosterFile
from tests.support.enrolment import PARTY, invitation
from tests.support.federations import CANARY
from tests.support.hospital import TRUSTING, change, operated


@pytest.fixture
def made(tmp_path, capsys, monkeypatch):
    """A hospital's folder, on the roster as party 1; its account has had no other one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of made"))
    invited = invitation(tmp_path, "localhost:1", "ab" * 32)
    records = tmp_path / "notes.csv"
    records.write_text(f"text,label\n{CANARY},a\nanother,b\n")
    records.chmod(0o600)
    folder = tmp_path / "hospital"
    named = ("--name", "St. Mary #1", "--records", records, "--invitation", invited)
    assert main(["init", str(folder), *map(str, named)]) == 0
    party = PartyFile.load(folder / "party.json")
    other = PartyFile(**PARTY | {"name": "St. Luke"})
    (tmp_path / "roster.json").write_text(RosterFile(parties=(other, party)).to_json())
    assert main(["roster", "--yes", str(folder), str(tmp_path / "roster.json")]) == 0
    capsys.readouterr()
    return folder


@pytest.fixture
def trusting(made):
    """The folder `made`, of a hospital that trusts the coordinator to follow the protocol."""
    change(made, limits=TRUSTING)
    return made


@pytest.fixture
def hospital(tmp_path):
    """A hospital's folder after some answered and refused requests."""
    return operated(tmp_path / "hospital")

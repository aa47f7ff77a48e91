"""`caucus-party roster`: what a person compares, and what has changed."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from client.command import main
from client.deploy.settings import HospitalSettings
from common.system.enrolment import PartyFile, RosterFile
from tests.client.deploy.test_commands import said
from tests.common.system.test_enrolment import GOOD, openssh


@pytest.fixture
def kept(made):
    """The roster that this hospital has: St. Luke, and itself."""
    return HospitalSettings.load(made).roster_file()


def taken(capsys, folder, *parties):
    (folder / "new.json").write_text(RosterFile(parties=parties).to_json())
    assert main(["roster", str(folder), str(folder / "new.json")]) == 0
    assert HospitalSettings.load(folder).roster_file().parties == parties
    return capsys.readouterr().out.splitlines()


def third():
    return PartyFile(name="St. Anne", identity="cd" * 32, node_key=openssh(ec.generate_private_key(ec.SECP384R1())))


def test_each_hospital_has_its_number_name_and_the_fingerprint_that_its_init_printed(made, kept, capsys):
    own = PartyFile.load(made / "party.json")
    lines = taken(capsys, made, *kept.parties)
    assert lines == [
        f"party 0, St. Luke: {kept.parties[0].fingerprint}",
        f"party 1, St. Mary: #1: {own.fingerprint}  (this hospital)",
        "no change",
        f"fingerprint of the roster, to be compared with the other hospitals': {kept.fingerprint}",
    ]


def test_what_has_changed_is_said(made, kept, capsys):
    luke, own = kept.parties
    new = third()
    assert "added: St. Anne" in taken(capsys, made, luke, own, new)
    lines = taken(capsys, made, new, own)
    assert "removed: St. Luke" in lines
    assert not any(line.startswith(("added", "CHANGED", "no change")) for line in lines)
    other = PartyFile(name="St. Anne", identity="ef" * 32, node_key=new.node_key)
    (line,) = [line for line in taken(capsys, made, other, own) if line.startswith("CHANGED KEYS")]
    assert line == f"CHANGED KEYS: St. Anne, before {new.fingerprint}: compare the new fingerprint by telephone"
    assert "only the numbers have changed" in taken(capsys, made, own, other)


def test_the_first_roster_and_one_after_a_broken_one_have_nothing_to_be_compared_with(made, kept, capsys):
    for before in (None, '{"0": "ab"}'):
        (made / "roster.json").unlink()
        if before:
            (made / "roster.json").write_text(before)
        assert len(taken(capsys, made, *kept.parties)) == 3


def test_a_roster_with_another_node_key_for_this_hospital_is_refused_and_the_old_one_stays(made, kept, capsys):
    own = PartyFile.load(made / "party.json")
    false = PartyFile(name=own.name, identity=own.identity, node_key=third().node_key)
    (made / "new.json").write_text(RosterFile(parties=(kept.parties[0], false)).to_json())
    line = said(capsys, "roster", made, made / "new.json")
    assert f"roster; expected this hospital's fingerprint {own.fingerprint}; got {false.fingerprint}" in line
    assert HospitalSettings.load(made).roster_file() == kept


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (json.dumps(GOOD), "roster.json; expected such a file; got the content of party.json"),
        ('{"0": "ab"}', "roster.json.0; expected one of parties; got an unknown key"),
    ],
)
def test_what_is_no_roster_is_named(content, line, made, capsys):
    (made / "new.json").write_text(content)
    assert line in said(capsys, "roster", made, made / "new.json")

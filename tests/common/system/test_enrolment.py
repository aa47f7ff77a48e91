import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from common.errors import ConfigError
from common.system.enrolment import Invitation, PartyFile, RosterFile


def openssh(key):
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


P384 = openssh(ec.generate_private_key(ec.SECP384R1()))
GOOD = {"name": "St. Mary", "identity": "ab" * 32, "node_key": P384}


def test_a_party_file_comes_back(tmp_path):
    party = PartyFile(**GOOD)
    (tmp_path / "party.json").write_text(party.to_json())
    assert PartyFile.load(tmp_path / "party.json") == party
    assert len(party.fingerprint.split()) == 8


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ""}, "party's name"),
        ({"name": "a\nb"}, "party's name"),
        ({"identity": "zz"}, "identity key"),
        ({"node_key": "ssh-rsa AAAA"}, "node key"),
        ({"node_key": openssh(ed25519.Ed25519PrivateKey.generate())}, "NIST P-384"),
        ({"node_key": openssh(ec.generate_private_key(ec.SECP256R1()))}, "NIST P-384"),
        ({"more": 1}, "partyfile"),
    ],
)
def test_what_is_no_party_file_is_refused(change, said, tmp_path):
    (tmp_path / "party.json").write_text(json.dumps(GOOD | change))
    with pytest.raises(ConfigError, match=said):
        PartyFile.load(tmp_path / "party.json")


@pytest.mark.parametrize("content", ["", "[]", '{"address": "a:1"}', '{"address":"a:1","certificate":"","bundle":"x"}'])
def test_what_is_no_invitation_is_refused(content, tmp_path):
    (tmp_path / "invitation.json").write_text(content)
    with pytest.raises(ConfigError, match="invitation"):
        Invitation.load(tmp_path / "invitation.json")


def test_a_roster_file_comes_back_with_names_and_identities(tmp_path):
    other = PartyFile(name="B", identity="cd" * 32, node_key=openssh(ec.generate_private_key(ec.SECP384R1())))
    roster = RosterFile(parties=(PartyFile(**GOOD), other))
    (tmp_path / "roster.json").write_text(roster.to_json())
    assert RosterFile.load(tmp_path / "roster.json") == roster
    assert roster.names == ("St. Mary", "B")
    assert roster.identities == {0: b"\xab" * 32, 1: b"\xcd" * 32}


@pytest.mark.parametrize("same", ["name", "identity", "node_key"])
def test_a_roster_file_with_one_name_or_key_twice_is_refused(same):
    other = {"name": "B", "identity": "cd" * 32, "node_key": openssh(ec.generate_private_key(ec.SECP384R1()))}
    with pytest.raises(ConfigError, match=f"roster; expected a {same.replace('_', ' ')} of its own for each"):
        RosterFile(parties=(PartyFile(**GOOD), PartyFile(**other | {same: GOOD[same]})))


@pytest.mark.parametrize("content", ["", "[]", '{"0": "ab"}', '{"parties": 1}', '{"parties": [1]}'])
def test_what_is_no_roster_file_is_refused(content, tmp_path):
    (tmp_path / "roster.json").write_text(content)
    with pytest.raises(ConfigError, match="roster"):
        RosterFile.load(tmp_path / "roster.json")

import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from common.errors import ConfigError
from common.system.enrolment import Invitation, PartyFile


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

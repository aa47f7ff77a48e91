"""What hospital and coordinator send each other before a run: keys, a party file, an invitation."""

import json

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from server.deploy.authority import make_authority


def openssh(key):
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def node_key():
    """A new public key of a node, as a party file has it."""
    return openssh(ec.generate_private_key(ec.SECP384R1()))


PARTY = {"name": "St. Mary", "identity": "ab" * 32, "node_key": node_key()}
"""Content of a party file."""


def invitation(folder, address, bundle):
    """The file of an invitation by a new coordinator at this address."""
    folder.mkdir()
    make_authority(folder)
    content = {"address": address, "certificate": (folder / "ca.crt").read_text(), "bundle": bundle}
    (folder / "invitation.json").write_text(json.dumps(content))
    return folder / "invitation.json"

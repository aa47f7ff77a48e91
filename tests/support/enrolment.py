"""The files that a hospital and the coordinator exchange before a run: keys, a party file, an invitation."""

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from common.secagg.messages import VERSION
from common.system.enrolment import Invitation
from server.deploy.authority import make_authority


def openssh(key):
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def node_key():
    """Return a new public key of a node, in the form used in a party file."""
    return openssh(ec.generate_private_key(ec.SECP384R1()))


PARTY = {"name": "St. Mary", "identity": "ab" * 32, "node_key": node_key()}
"""Content of a party file."""


def invitation(folder, address, bundle):
    """Write the invitation of a new coordinator at this address; return the file's path."""
    folder.mkdir(exist_ok=True)
    make_authority(folder)
    certificate = (folder / "ca.crt").read_text()
    made = Invitation(address=address, certificate=certificate, bundle=bundle, protocol=VERSION)
    (folder / "invitation.json").write_text(made.to_json())
    return folder / "invitation.json"

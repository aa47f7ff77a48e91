import ssl
import stat

import pytest

from client.flower.loopback import CERTIFICATE, HOST, KEY, make_certificate
from tests.support.handshakes import handshake


@pytest.fixture
def node(tmp_path):
    """The relay's folder."""
    make_certificate(tmp_path)
    return tmp_path


def greeting(server, client):
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(cadata=(client / CERTIFICATE).read_text())
    return handshake(server / CERTIFICATE, server / KEY, trusting, HOST)


def test_the_relay_knows_its_supernode_by_a_certificate_that_is_made_once(node):
    before = (node / CERTIFICATE).read_bytes()
    make_certificate(node)
    assert (node / CERTIFICATE).read_bytes() == before
    assert greeting(node, node) == "TLSv1.3"
    assert stat.S_IMODE((node / KEY).stat().st_mode) == 0o600


def test_one_who_has_taken_the_port_is_not_listened_to(node, tmp_path):
    (tmp_path / "other").mkdir()
    make_certificate(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        greeting(tmp_path / "other", node)

import ssl
import stat

import pytest

from client.flower.loopback import CERTIFICATE, HOST, KEY, make_certificate


@pytest.fixture
def node(tmp_path):
    """The relay's folder."""
    make_certificate(tmp_path)
    return tmp_path


def greeting(server_folder, client_folder):
    """The TLS handshake of two sides in memory."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(server_folder / CERTIFICATE, server_folder / KEY)
    client.load_verify_locations(cadata=(client_folder / CERTIFICATE).read_text())
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=HOST),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for side in sides * 3:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return sides[0].version()


def test_the_relay_knows_its_supernode(node):
    assert greeting(node, node) == "TLSv1.3"
    assert stat.S_IMODE((node / KEY).stat().st_mode) == 0o600


def test_a_certificate_is_made_once(node):
    before = (node / CERTIFICATE).read_bytes()
    make_certificate(node)
    assert (node / CERTIFICATE).read_bytes() == before


def test_one_who_has_taken_the_port_is_not_listened_to(node, tmp_path):
    (tmp_path / "other").mkdir()
    make_certificate(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        greeting(tmp_path / "other", node)

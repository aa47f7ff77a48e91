"""A TLS handshake with each certificate: the right one is accepted, every other is refused with its reason."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest

from common.errors import ConfigError
from server.deploy.authority import VALID, check_certificate, ending_soon, make_authority, make_certificate
from tests.support.handshakes import handshake

NOW = datetime.now(UTC)


def greeting(folder, trusted, host="localhost"):
    trusting = ssl.create_default_context(cafile=trusted / "ca.crt")
    return handshake(folder / "server.crt", folder / "server.key", trusting, host)


@pytest.fixture
def folder(tmp_path):
    make_authority(tmp_path)
    make_certificate(tmp_path, "caucus.example.org")
    return tmp_path


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "caucus.example.org"])
def test_the_right_certificate_is_accepted(host, folder):
    assert greeting(folder, folder, host) == "TLSv1.3"
    check_certificate(folder)
    assert all((folder / name).stat().st_mode & 0o077 == 0 for name in ("ca.key", "server.key"))


def test_another_host_is_refused(folder):
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        greeting(folder, folder, "other.example.org")


def test_another_authority_is_refused(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    make_authority(other)
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        greeting(folder, other)


@pytest.mark.parametrize(
    ("made", "message"), [(NOW - VALID - timedelta(days=1), "expired"), (NOW + timedelta(days=1), "not yet valid")]
)
def test_a_certificate_of_another_time_is_refused_on_both_sides(made, message, folder):
    make_certificate(folder, "localhost", now=made)
    with pytest.raises(ssl.SSLCertVerificationError, match=message):
        greeting(folder, folder)
    with pytest.raises(ConfigError, match=r"^server's certificate"):
        check_certificate(folder)


def test_keys_that_are_open_or_foreign_are_refused(folder, tmp_path_factory):
    (folder / "server.key").chmod(0o644)
    with pytest.raises(ConfigError, match="got 0644"):
        check_certificate(folder)
    other = tmp_path_factory.mktemp("other")
    make_authority(other)
    (folder / "ca.key").write_bytes((other / "ca.key").read_bytes())
    with pytest.raises(ConfigError, match=r"^ca\.key does not fit"):
        make_certificate(folder, "localhost")


def test_a_certificate_that_ends_soon_is_warned_about(folder):
    assert list(ending_soon(folder)) == []
    make_certificate(folder, "localhost", valid=timedelta(days=29, hours=12))
    (warning,) = ending_soon(folder)
    assert all(fact in warning for fact in ("server.crt", "29 days", "caucus-coordinator renew"))
    make_authority(folder, now=NOW - timedelta(days=3650 - 10, hours=12))
    assert len(list(ending_soon(folder))) == 2

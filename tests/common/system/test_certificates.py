from datetime import UTC, datetime, timedelta

import pytest

from common.errors import ConfigError
from common.system.certificates import certificate_of, days_left, only_certificate, validity_in_words
from server.deploy.authority import make_authority, make_certificate


@pytest.mark.parametrize(("days", "words"), [(20, "ends in 20 days"), (0, "ends in 0 days"), (-1, "HAS ENDED")])
def test_the_days_until_a_certificate_ends(days, words, tmp_path):
    make_authority(tmp_path)
    end = timedelta(days=days, hours=12)
    began = datetime.now(UTC) - timedelta(days=90)
    make_certificate(tmp_path, "localhost", now=began, valid=timedelta(days=90) + end)
    assert days_left(tmp_path / "server.crt") == days
    assert validity_in_words(days) == words


def test_a_file_that_is_no_certificate(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        days_left(tmp_path / "ca.crt")
    (tmp_path / "ca.crt").write_text("none")
    with pytest.raises(ConfigError, match="something else"):
        days_left(tmp_path / "ca.crt")


@pytest.mark.parametrize(
    "change",
    [
        lambda pem, other: pem + other,
        lambda pem, other: other + pem,
        lambda pem, other: pem * 2,
        lambda pem, other: b"a comment\n" + pem,
        lambda pem, other: pem + b"\n",
        lambda pem, other: pem.replace(b"\n", b"\r\n"),
        lambda pem, other: pem.replace(b"CERTIFICATE", b"TRUSTED CERTIFICATE"),
        lambda pem, other: pem[:-1],
    ],
)
def test_a_certificate_has_nothing_around_it(change, tmp_path):
    make_authority(tmp_path)
    pem = (tmp_path / "ca.crt").read_bytes()
    make_authority(tmp_path)
    other = (tmp_path / "ca.crt").read_bytes()
    assert only_certificate(pem) != only_certificate(other)
    (tmp_path / "ca.crt").write_bytes(change(pem, other))
    with pytest.raises(ConfigError, match="something else"):
        certificate_of(tmp_path / "ca.crt", do="take it anew")

import hashlib
import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from common.domain import MOST_RECORDS
from common.errors import ConfigError, MembershipError, SignatureError
from common.secagg.identity import Identity, Roster, check_roster, sign, verify
from common.system.enrolment import PartyFile, RosterFile
from tests.support.secagg_rounds import identity, roster, setup

KEYS = {number: identity(number).public for number in (0, 1, 10)}


def test_signing_follows_rfc_8032():
    """Section 7.1, test 2."""
    signer = Identity(bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
    assert signer.public.hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert signer.sign(b"\x72").hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )


def test_private_keys_of_other_sizes_are_refused_and_not_shown():
    with pytest.raises(ConfigError, match="got 31 bytes") as caught:
        Identity(b"\xab" * 31)
    assert "ab" * 4 not in str(caught.value)
    assert "ab" * 4 not in repr(Identity(b"\xab" * 32)).replace("\\x", "")


def test_digest_is_a_hash_of_the_bound_and_of_parties_and_keys_in_order():
    text = (1000).to_bytes(8, "big") + b"".join(number.to_bytes(8, "big") + KEYS[number] for number in (0, 1, 10))
    expected = hashlib.sha256(b"caucus protocol 5|roster|" + text).digest()
    assert Roster(KEYS, 1000).digest == Roster(dict(reversed(KEYS.items())), 1000).digest == expected
    assert Roster(KEYS, 1001).digest != expected


def test_files_are_read_back():
    for bound in (1, 1000, MOST_RECORDS):
        assert Roster.from_json(Roster(KEYS, bound).to_json()) == Roster(KEYS, bound)
    assert Roster.from_json(json.dumps({"0": KEY})).max_records == MOST_RECORDS
    assert list(Roster.from_json(Roster(dict(reversed(KEYS.items()))).to_json()).keys) == [0, 1, 10]


def hospital(number, max_records):
    key = ec.generate_private_key(ec.SECP384R1()).public_key()
    openssh = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
    return PartyFile(name=f"hospital {number}", identity=KEYS[number].hex(), node_key=openssh, max_records=max_records)


# A party file of before there was such a bound declares the most that can be.
@pytest.mark.parametrize(("second", "expected"), [(5, 10), (10, 10), (1000, 1000), (MOST_RECORDS, MOST_RECORDS)])
def test_a_roster_of_hospitals_has_their_keys_and_the_largest_number_that_one_declares(second, expected):
    file = RosterFile(parties=(hospital(0, 10), hospital(1, second)))
    assert Roster.of_hospitals(file) == Roster({0: KEYS[0], 1: KEYS[1]}, expected)


def test_rosters_cannot_be_changed():
    with pytest.raises(TypeError):
        Roster(KEYS).keys[2] = bytes(32)


KEY = "ab" * 32


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        '[["0", "KEY"]]',
        '{"0": "KEY", "0": "KEY"}',
        '{"0": "KEY", "1": "KEY"}',
        '{"00": "KEY"}',
        '{"-1": "KEY"}',
        '{" 1": "KEY"}',
        '{"1_0": "KEY"}',
        '{"x": "KEY"}',
        '{"1048576": "KEY"}',
        '{"99999999999": "KEY"}',
        '{"0": "KEYab"}',
        '{"0": "KEY "}',
        '{"0": ["KEY"]}',
        '{"0": {"1": "KEY"}}',
        '{"0": null}',
        '{"max_records": 0, "0": "KEY"}',
        '{"max_records": "9", "0": "KEY"}',
        '{"max_records": true, "0": "KEY"}',
        '{"max_records": 9, "max_records": 9, "0": "KEY"}',
        '{"max_records": 1048577, "0": "KEY"}',
        "[" * 100_000,
        b"\xff\xfe{",
    ],
    ids=lambda text: str(text)[:24],
)
def test_other_files_are_refused(text):
    text = text if isinstance(text, bytes) else text.replace("KEY", KEY)
    with pytest.raises(ConfigError):
        Roster.from_json(text)


def test_a_party_that_is_named_twice_is_refused():
    with pytest.raises(ConfigError, match="a party twice"):
        Roster.from_json(json.dumps({"0": KEY})[:-1] + f', "0": "{"cd" * 32}"}}')


@pytest.mark.parametrize("keys", [{"0": bytes(32)}, {True: bytes(32)}, {0: bytes(31)}, {0: "x" * 32}], ids=repr)
def test_other_entries_are_refused(keys):
    with pytest.raises(ConfigError):
        Roster(keys)


def test_what_cannot_be_a_signature_is_refused():
    roster_of_parties = Roster(KEYS)
    for signature in (b"", bytes(63), bytes(1 << 20)):
        with pytest.raises(SignatureError):
            verify(roster_of_parties, 0, b"statement", signature, where="test")


def test_a_signature_is_one_party_s_over_one_statement():
    roster_of_parties = Roster(KEYS)
    signature = sign(identity(1), b"statement")
    verify(roster_of_parties, 1, b"statement", signature, where="test")
    for party, statement, given in [
        (0, b"statement", signature),
        (1, b"Statement", signature),
        (1, b"statement", signature[:-1]),
        (1, b"statement", b""),
        (1, b"statement", bytes(64)),
        (1, b"statement", bytes([signature[0] ^ 1]) + signature[1:]),
    ]:
        with pytest.raises(SignatureError, match=rf"party {party} .*at party 4, test"):
            verify(roster_of_parties, party, statement, given, where="party 4, test")


def test_semi_honest_mode_signs_nothing_and_accepts_nothing_else():
    assert sign(None, b"statement") == b""
    verify(None, 1, b"statement", b"", where="test")
    with pytest.raises(SignatureError, match="semi-honest"):
        verify(None, 1, b"statement", bytes(64), where="test")


def test_a_set_up_goes_with_its_roster_alone():
    check_roster(setup(), None)
    check_roster(setup(malicious=True), roster(range(4)))
    with pytest.raises(MembershipError, match=r"got none"):
        check_roster(setup(malicious=True), None)
    with pytest.raises(MembershipError, match=r"got another"):
        check_roster(setup(), roster(range(4)))
    with pytest.raises(MembershipError, match=r"got another"):
        check_roster(setup(malicious=True), roster(range(5)))


def test_parties_that_the_roster_does_not_name_are_listed():
    roster_of_parties = roster((0, 1))
    with pytest.raises(MembershipError, match="party 2, party 3"):
        check_roster(setup(roster_digest=roster_of_parties.digest), roster_of_parties)

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from common.errors import ConfigError
from common.secagg.messages import VERSION
from common.system.enrolment import Invitation, PartyFile, RosterFile
from tests.support.enrolment import PARTY, node_key, openssh


def test_a_party_file_comes_back(tmp_path):
    party = PartyFile(**PARTY)
    (tmp_path / "party.json").write_text(party.to_json())
    assert PartyFile.load(tmp_path / "party.json") == party
    assert len(party.fingerprint.split()) == 8
    assert party.fingerprint != PartyFile(**PARTY, max_records=10).fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "party's name"),
        ({"name": "a\nb"}, "party's name"),
        ({"identity": "zz"}, "identity key"),
        ({"node_key": "ssh-rsa AAAA"}, "node key"),
        ({"node_key": openssh(ed25519.Ed25519PrivateKey.generate())}, "NIST P-384"),
        ({"node_key": openssh(ec.generate_private_key(ec.SECP256R1()))}, "NIST P-384"),
        ({"name": 7}, "party's name"),
        ({"node_key": PARTY["node_key"] + " and a comment"}, "NIST P-384"),
        ({"max_records": 0}, "party's max_records"),
        ({"max_records": 2**20 + 1}, "party's max_records"),
        ({"max_records": "1000"}, "party's max_records"),
        ({"more": 1}, r"^party.json.more;"),
    ],
)
def test_what_is_no_party_file_is_refused(change, message, tmp_path):
    (tmp_path / "party.json").write_text(json.dumps(PARTY | change))
    with pytest.raises(ConfigError, match=message):
        PartyFile.load(tmp_path / "party.json")


@pytest.mark.parametrize(
    "name",
    [
        *("St. Mary's", "Universitätsklinikum Köln", "Hôpital de la Cité (Nord)", "Klinik 12", "Academic Centre"),
        *("Hospital 1895", "St. Mary (E08E)", "Haus West", "Klinik Bad Soden, Haus West", "Good Hope Hospital"),
        *("Болница Света Ана", "Νοσοκομείο Αθηνών", "국립암센터", "国立がん研究センター", "O’Connor’s", "Hôtel-Dieu"),
    ],
)
def test_a_hospital_has_its_own_name(name):
    assert PartyFile(**PARTY | {"name": name}).shown(3)[1].endswith(f'with the name "{name}"')


@pytest.mark.parametrize(
    "name",
    [
        "St. Mary: A",
        "St. Mary\uff1a A",
        "e08e cc8c",
        "St. Mary (E08E/CC8C)",
        "St. Mary \uff11\uff12\uff13\uff14 \uff11\uff12\uff13\uff14",
        "St. Luk\u0435",
        "St. Luk\u0301\u0435",
        "St. J\u0966hn",
        "St. Mary-e08ecc8cbb5418b9",
        "St.  Mary",
        " St. Mary",
        "St. Mary ",
        "St. Mary\u00a0",
        "St. Mary\u2800",
        "St. Mary\u3164",
        "St. Mary\ufe0f",
        "St. Mary\u200b",
        "St. Lu\u200bke",
        "x" * 101,
    ],
)
def test_a_name_that_could_show_a_fingerprint_or_hide_its_end_is_refused_with_what_to_do(name):
    with pytest.raises(ConfigError, match=r"^party's name;"):
        PartyFile(**PARTY | {"name": name})


FINGERPRINTS = ["e08e cc8c bb54 18b9 0163 dead beef a1c7", "1111 2222 3333 4444 5555 6666 7777 8888"]
LOOKS = dict(
    zip(
        "0123456789abcdef",
        [
            *(
                "O\u041e\u039fo\u0966\u3007",
                "lI|\u0406\u0399\u01c0\u0661",
                "Zz",
                "\u0417\u0437\u01b7",
                "\u0427A",
                "Ss\u0405",
            ),
            *("\u0431b", "T\u0413", "B\u0412&", "gq", "\u0430\u03b1\u0251\u00e0", "\u042c\u0412\u0185"),
            *("\u0441\u03f2\u00a9", "\u0501\u217e", "\u0435\u03b5\u1eb9\u212e", "\u0493\u017f"),
        ],
        strict=True,
    )
)
"""Characters that look like each digit of base 16."""


@pytest.mark.parametrize("fingerprint", FINGERPRINTS)
@pytest.mark.parametrize("between", [" ", " - ", " \u00b7 "])
@pytest.mark.parametrize("spoilt", [range(8), range(0, 8, 2), range(1, 8, 2)])
def test_no_name_shows_a_fingerprint_in_characters_that_look_like_it(fingerprint, between, spoilt):
    for nth in range(7):
        groups = fingerprint.split()
        for place in spoilt:
            looks = {digit: LOOKS[digit][nth % len(LOOKS[digit])] for digit in groups[place]}
            first = groups[place][0]
            for changed in (groups[place].translate(str.maketrans(looks)), groups[place].replace(first, looks[first])):
                shown = between.join([*groups[:place], changed, *groups[place + 1 :]])
                with pytest.raises(ConfigError, match="party's name"):
                    PartyFile(**PARTY | {"name": f"St. Luke {shown}"})
            groups[place] = changed
        with pytest.raises(ConfigError, match="party's name"):
            PartyFile(**PARTY | {"name": between.join(groups)})


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *(("St. Luke", other) for other in ("ST. LUKE", "St.Luke", "\uff33t. Luke")),
        ("Haus CMHC", "Haus \u0421\u041c\u041d\u0421"),
        ("Klinik A", "Klinik \u0391"),
    ],
)
def test_a_roster_has_no_two_names_that_people_take_for_one(name, other):
    parties = PARTY | {"name": name}, PARTY | {"name": other, "identity": "cd" * 32, "node_key": node_key()}
    with pytest.raises(ConfigError, match="tell apart"):
        RosterFile(parties=parties)


INVITATION = {"address": "localhost:1", "certificate": "", "bundle": "ab" * 32, "protocol": VERSION}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "invitation.json"),
        ("[" * 100_000, "invitation.json"),
        ('["a patient\'s note"]', "invitation.json"),
        ('{"address": "a:1"}', "invitation.json.certificate"),
        (json.dumps(PARTY), "invitation.json"),
        ('{"parties": []}', "invitation.json"),
        (json.dumps(INVITATION), "invitation's certificate"),
        (json.dumps(INVITATION | {"protocol": "5"}), "invitation's protocol"),
        (json.dumps(INVITATION | {"bundle": "x"}), "invitation's bundle"),
        (json.dumps(INVITATION | {"bundle": 3}), "invitation's bundle"),
    ],
)
def test_what_is_no_invitation_is_refused_and_not_quoted(content, what, tmp_path):
    (tmp_path / "given.json").write_text(content)
    with pytest.raises(ConfigError) as caught:
        Invitation.load(tmp_path / "given.json")
    assert caught.value.what == what
    assert f"; at {tmp_path / 'given.json'}. " in str(caught.value)
    assert "patient" not in str(caught.value)


@pytest.mark.parametrize("kind", [Invitation, PartyFile, RosterFile])
def test_a_file_that_is_missing_or_cannot_be_read_is_no_matter_of_its_kind(kind, tmp_path):
    with pytest.raises(ConfigError, match=f"{kind.FILE};.*missing.json"):
        kind.load(tmp_path / "missing.json")
    with pytest.raises(ConfigError, match=f"{kind.FILE};"):
        kind.load(tmp_path)


def test_what_is_given_in_place_of_a_party_file_is_named(tmp_path):
    (tmp_path / "given.json").write_text(json.dumps(INVITATION))
    with pytest.raises(ConfigError, match=r"invitation.json"):
        PartyFile.load(tmp_path / "given.json")


def test_a_roster_file_comes_back_with_names_and_identities(tmp_path):
    other = PartyFile(name="B", identity="cd" * 32, node_key=node_key())
    roster = RosterFile(parties=(PartyFile(**PARTY), other))
    (tmp_path / "roster.json").write_text(roster.to_json())
    assert RosterFile.load(tmp_path / "roster.json") == roster
    assert roster.names == ("St. Mary", "B")
    again = RosterFile(parties=(other, PartyFile(**PARTY)))
    renamed = RosterFile(parties=(PartyFile(**PARTY | {"name": "A"}), other))
    assert len({roster.fingerprint, again.fingerprint, renamed.fingerprint}) == 3
    assert RosterFile.load(tmp_path / "roster.json").fingerprint == roster.fingerprint


@pytest.mark.parametrize("same", ["name", "identity", "node_key"])
def test_a_roster_file_with_one_name_or_key_twice_is_refused(same):
    other = {"name": "B", "identity": "cd" * 32, "node_key": node_key()}
    with pytest.raises(ConfigError, match=same.replace("_", " ")):
        RosterFile(parties=(PartyFile(**PARTY), PartyFile(**other | {same: PARTY[same]})))


@pytest.mark.parametrize("content", ["", "[]", '{"0": "ab"}', '{"parties": 1}', '{"parties": [1]}', '{"parties": {}}'])
def test_what_is_no_roster_file_is_refused(content, tmp_path):
    (tmp_path / "roster.json").write_text(content)
    with pytest.raises(ConfigError, match=r"roster|party\.json"):
        RosterFile.load(tmp_path / "roster.json")

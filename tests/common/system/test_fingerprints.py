"""What is compared is all that is used: of each file whose fingerprint or digest a person or a peer compares.

Every change of a file's bytes or fields that the file survives changes the fingerprint, or else nothing that is used.
"""

import json
import ssl
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from common.errors import CaucusError
from common.plan.plan import Plan
from common.secagg.identity import Roster
from common.secagg.messages import VERSION
from common.system import enrolment
from common.system.enrolment import Invitation, PartyFile, RosterFile
from server.deploy.authority import make_authority
from tests.support.enrolment import PARTY, node_key
from tests.support.federations import plan

OTHER = {"name": "B", "identity": "cd" * 32, "node_key": node_key(), "max_records": 7}


@dataclass(frozen=True)
class Case:
    """A file: its text, how it is read, what is compared of it, and what its reader goes on to use."""

    text: str
    read: object
    compared: object
    used: object


def of_public(kind, values, used):
    return Case(
        kind(**values).to_json(), lambda text: kind.from_values(json.loads(text)), lambda file: file.fingerprint, used
    )


def trusted(invitation):
    """All that a hospital takes: SuperNode trusts every certificate that TLS reads in the text."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=invitation.certificate)
    certificates = context.get_ca_certs(binary_form=True)
    return invitation.address, invitation.certificate, certificates, invitation.bundle, invitation.protocol


def member(party):
    return party.name, bytes.fromhex(party.identity), party.node_key, load_ssh_public_key(party.node_key.encode())


def members(roster):
    agreed = Roster.of_hospitals(roster)
    return roster.to_json(), list(map(member, roster.parties)), dict(agreed.keys), agreed.max_records


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    pems = []
    for name in ("genuine", "attacker"):
        folder = tmp_path_factory.mktemp(name)
        make_authority(folder)
        pems.append((folder / "ca.crt").read_text())
    invitation = {"address": "a.example:9443", "certificate": pems[0], "bundle": "ab" * 32, "protocol": VERSION}
    parties = [PARTY | {"max_records": 10}, OTHER]
    files = {
        Invitation: of_public(Invitation, invitation, trusted),
        PartyFile: of_public(PartyFile, parties[0], member),
        RosterFile: of_public(RosterFile, {"parties": parties}, members),
        Roster: Case(
            Roster.of_hospitals(RosterFile(parties=parties)).to_json(),
            Roster.from_json,
            lambda roster: roster.digest,
            lambda roster: (dict(roster.keys), roster.max_records),
        ),
        Plan: Case(plan(2).to_json().decode(), Plan.from_json, Plan.digest, lambda agreed: agreed),
    }
    return files, pems[1]


def around(text, foreign):
    """Changes of one text: parts twice, others' texts before and after it, blanks, other cases and line ends."""
    yield from (text * 2, text + foreign, foreign + text, foreign, text + "\n", "\n" + text, " " + text, text + " ")
    yield from (text + "\0", text[:-1], text[1:], text.upper(), text.lower(), text.replace("\n", "\r\n"), text + "#")
    yield from (
        f"{text} comment",
        f"comment\n{text}",
        text.replace("=", ""),
        text + "=",
        text + "\u2800",
        "\ufeff" + text,
    )


def changed_fields(value, foreign):
    """Yield the value with one leaf changed, an entry of a list twice, gone or elsewhere, or a field gone or new."""
    if isinstance(value, str):
        yield from around(value, foreign)
    elif isinstance(value, (int, float)):
        yield from (value + 1, -value, float(value), str(value), [value], value * 2, None, True)
    elif isinstance(value, list):
        yield from (value * 2, value[::-1], value[1:], value[:-1], [*value, {}])
        for place, item in enumerate(value):
            yield from ([*value[:place], other, *value[place + 1 :]] for other in changed_fields(item, foreign))
    elif isinstance(value, dict):
        yield {**value, "more": 1}
        yield dict(reversed(value.items()))
        for name, item in value.items():
            yield {key: kept for key, kept in value.items() if key != name}
            yield from (value | {name: other} for other in changed_fields(item, foreign))


def changed_texts(text, foreign):
    """Yield the file with one byte gone, twice, or another, with a field twice, and with each change of a field."""
    for place in range(len(text)):
        for other in ("", text[place] * 2, chr(ord(text[place]) ^ 1), chr(ord(text[place]) ^ 32)):
            yield text[:place] + other + text[place + 1 :]
    yield from around(text, foreign)
    values = json.loads(text)
    yield from map(json.dumps, changed_fields(values, foreign))
    yield from (text.rstrip()[:-1] + f", {json.dumps(name)}: {json.dumps(values[name])} }}" for name in values)
    yield from (text.replace("{", f'{{ {json.dumps(name)}: "0", ', 1) for name in values)


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")  # of a changed certificate
@pytest.mark.parametrize("kind", [Invitation, PartyFile, RosterFile, Roster, Plan])
def test_no_change_of_a_file_is_used_and_not_compared(kind, cases):
    files, foreign = cases
    case = files[kind]
    genuine = case.read(case.text)
    compared, used, loaded = case.compared(genuine), case.used(genuine), 0
    for text in changed_texts(case.text, foreign):
        try:
            other = case.read(text)
        except (CaucusError, ValueError):
            continue
        loaded += 1
        assert case.compared(other) != compared or case.used(other) == used, text
    assert loaded > 50


def test_each_public_file_has_its_case(cases):
    names = {kind.__name__ for kind in enrolment._Public.__subclasses__()}
    assert names <= {kind.__name__ for kind in cases[0]}

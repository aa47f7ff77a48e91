"""What a hospital takes of the texts that a coordinator sends, and what it refuses, whatever they hold."""

import json
import stat

import pytest

from client import releases as module
from client.approval.entries import approvals, decide
from client.releases import MOST_RELEASES, release, releases
from common import messages as m
from common import wire
from common.errors import ConfigError
from tests.support.federations import CANARY, plan, query, records, service
from tests.support.party_requests import PLAIN, hospital, send

TEXTS = b'{"text": "A <script>alert(1)</script> cough.", "label": "a"}\n{"text": "Another."}\n'


def answered(party, /, **place):
    """Let a party answer a run, and end it."""
    for body in (m.Open(PLAIN.to_json()), m.Ask(query()), m.Close()):
        assert not isinstance(send(party, body, **place), m.Refusal)
    return party


@pytest.fixture
def asked(tmp_path):
    return answered(hospital(tmp_path))


def kept(folder):
    return sorted(path.name for path in (folder / "private" / "releases").glob("*"))


def test_the_texts_of_an_answered_run_are_kept_for_this_account_alone(asked, tmp_path):
    assert send(asked, m.Release(TEXTS)) == m.Received()
    (one,) = releases(tmp_path / "private")
    assert (one.path.read_bytes(), one.run, one.texts) == (TEXTS, "run", 2)
    assert release(tmp_path / "private", "run") == release(tmp_path / "private", one.path.stem) == one
    files = (tmp_path / "private" / "releases").iterdir()
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    lines = (tmp_path / "private" / "audit.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["request"] == "Release"
    assert "cough" not in lines[-1]


def test_the_same_texts_may_come_again_and_others_never_take_their_place(asked, tmp_path):
    send(asked, m.Release(TEXTS))
    before = releases(tmp_path / "private")
    assert send(asked, m.Release(TEXTS)) == m.Received()
    assert send(asked, m.Release(TEXTS + TEXTS)) == m.Refusal(m.Reason.OVER_LIMIT)
    assert releases(tmp_path / "private") == before
    assert before[0].path.read_bytes() == TEXTS


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ({"run": "another"}, m.Reason.UNPLANNED),
        ({"run": "../private/runs"}, m.Reason.UNPLANNED),
        ({"agreed": plan(3, secure=False, threshold=1, purpose="another")}, m.Reason.UNPLANNED),
        ({"party": 1}, m.Reason.MALFORMED),
    ],
)
def test_what_is_not_of_a_run_that_was_answered_here_is_refused(asked, tmp_path, place, reason):
    if other := place.get("agreed"):  # opened, and not answered
        assert isinstance(send(asked, m.Open(other.to_json()), agreed=other), m.Opened)
    assert send(asked, m.Release(TEXTS), **place) == m.Refusal(reason)
    assert kept(tmp_path) == []


def test_a_run_that_was_opened_and_not_answered_has_no_release_here(tmp_path):
    party = hospital(tmp_path)
    send(party, m.Open(PLAIN.to_json()))
    assert send(party, m.Release(TEXTS)) == m.Refusal(m.Reason.UNPLANNED)
    assert isinstance(send(party, m.Ask(query())), m.Answer)  # the open run is as it was
    simulated = answered(service(tmp_path, 1), party=1)
    assert send(simulated, m.Release(TEXTS), party=1) == m.Refusal(m.Reason.UNPLANNED)


def test_a_person_who_refuses_the_plan_afterwards_refuses_its_release(asked, tmp_path):
    (entry,) = approvals(tmp_path / "private")
    decide(tmp_path / "private", entry, approve=False, by="anna")
    assert send(asked, m.Release(TEXTS)) == m.Refusal(m.Reason.DECLINED)


@pytest.mark.parametrize(
    "texts",
    [
        b"",
        b"\n\n",
        b"\x7fELF\x00\xff",
        b"PAR1" + bytes(20),
        b"text\nA cough.\n",
        b'["A cough."]\n',
        b'{"text": 1}\n',
        b'{"text": "\\ud800"}\n',
        b'{"text": "A cough."}\n' + b"[" * 100_000,
        TEXTS + b'{"label": "a"}\n',
    ],
)
def test_what_the_audit_could_not_read_is_refused_and_leaves_nothing(asked, tmp_path, texts):
    assert send(asked, m.Release(texts)) == m.Refusal(m.Reason.MALFORMED)
    assert kept(tmp_path) == []
    assert send(asked, m.Release(TEXTS)) == m.Received()


@pytest.mark.parametrize(
    ("bound", "value"), [("LARGEST_RELEASE", len(TEXTS) - 1), ("MOST_TEXTS", 1), ("LONGEST_LINE", 60)]
)
def test_a_release_has_a_largest_size(asked, tmp_path, monkeypatch, bound, value):
    monkeypatch.setattr(module, bound, value)
    assert send(asked, m.Release(TEXTS)) == m.Refusal(m.Reason.OVER_LIMIT)
    assert kept(tmp_path) == []


def test_no_more_than_a_number_are_kept_until_a_person_makes_room(asked, tmp_path):
    send(asked, m.Release(TEXTS))
    (one,) = releases(tmp_path / "private")
    for number in range(MOST_RELEASES - 1):
        (one.path.parent / f"{number}.json").write_bytes(one.path.with_suffix(".json").read_bytes())
    answered(asked, run="second")
    assert send(asked, m.Release(TEXTS), run="second") == m.Refusal(m.Reason.FULL)
    assert send(asked, m.Release(TEXTS)) == m.Received()
    (one.path.parent / "0.json").unlink()
    assert send(asked, m.Release(TEXTS), run="second") == m.Received()
    assert [entry.run for entry in releases(tmp_path / "private")].count("second") == 1


def test_a_name_that_reads_as_a_path_is_none(tmp_path):
    name = "../../<b>x</b>"
    party = answered(hospital(tmp_path), run=name)
    assert send(party, m.Release(TEXTS), run=name) == m.Received()
    (one,) = releases(tmp_path / "private")
    assert one.run == name
    assert one.path.parent == tmp_path / "private" / "releases"
    assert int(one.path.stem, 16)


def test_a_run_with_the_name_of_another_ones_file_does_not_take_its_place(asked, tmp_path):
    send(asked, m.Release(TEXTS))
    (first,) = releases(tmp_path / "private")
    answered(asked, run=first.path.stem)
    assert send(asked, m.Release(b'{"text": "Harmless."}\n'), run=first.path.stem) == m.Received()
    first.path.with_suffix(".json").write_text(json.dumps({"run": "run", "received": "2000", "texts": 2}))
    assert release(tmp_path / "private", first.path.stem).run == "run"


def test_a_release_that_is_not_there_is_named_with_those_that_are(asked, tmp_path):
    with pytest.raises(ConfigError, match="no such release"):
        release(tmp_path / "private", "run")
    send(asked, m.Release(TEXTS))
    for name in ("other", "../../etc/passwd"):
        with pytest.raises(ConfigError, match="Name one of run"):
            release(tmp_path / "private", name)


def test_a_reply_is_the_same_byte_for_byte_whatever_the_records_are(tmp_path):
    replies = []
    for number, private in enumerate((records(0), records(1)[:1])):
        party = answered(hospital(tmp_path / str(number), private=private))
        place = {"run": "run", "party": 0, "plan_digest": PLAIN.digest()}
        copies = json.dumps({"text": CANARY}).encode()
        requests = [m.Release(copies), m.Release(TEXTS), m.Release(b"{")]
        replies.append([party.handle(wire.pack(m.Envelope(body=body, **place))) for body in requests])
    assert replies[0] == replies[1]
    assert not any(reply.bulk for reply in replies[0])

"""A release looked at on the page: the audit of the command, its verdict in words, and no text of anybody."""

import argparse
import asyncio
import csv
import html
import json
import stat

import pytest

from client.approval.entries import approvals, path_of
from client.deploy import audit
from client.deploy.page import _page
from client.deploy.settings import HospitalSettings
from client.page.app import PAGES
from client.page.release import RECEIVED, _looking, forget, receive
from common.page.access import BYTES, FORM_TOKEN, TOKEN_HEADER
from common.page.address import OPTIONS
from tests.support.browsing import Browser
from tests.support.federations import CANARY, plan
from tests.support.held_back import copied, held_back, unrelated, write
from tests.support.hospital import opened, sent


@pytest.fixture
def browser(made):
    return Browser.entered(made)


def look(browser, texts, control, **fields):
    return browser.post("look", texts=str(texts), control=str(control), **fields)


def test_copies_are_told_with_the_verdict_of_the_command(browser):
    text = browser.get("release").text
    assert PAGES.say.release.before in text
    assert PAGES.say.release.result + "</h2>" not in text
    assert PAGES.say.release.sent not in text
    control = held_back(browser.folder)
    response = look(browser, copied(browser.folder), f" {control} ", epsilon="0.1", delta="1e-6")
    assert response.status_code == 200
    text = html.unescape(response.text)
    assert "the texts disclose records beyond the guarantee" in text
    for sentence in ("rejected", "broken", "unseen"):
        assert getattr(PAGES.say.release, sentence) in text
    assert "30 texts were compared with 40 records and 40 control records" in text
    assert CANARY not in text
    stored = browser.folder / "private" / "disclosures.json"
    assert (str(stored) in text, json.loads(stored.read_text())["texts"]) == (True, 30)


def test_texts_of_nobody_pass_and_the_page_says_that_this_proves_nothing(browser, monkeypatch):
    control, flags = held_back(browser.folder), audit._flags
    untested = ["personal information  not tested: no package"]
    monkeypatch.setattr(audit, "_flags", lambda *arguments: (flags(*arguments)[0], untested))
    text = html.unescape(look(browser, write(browser.folder.parent / "t.csv", unrelated(30)), control).text)
    assert PAGES.say.release.fine in text
    assert PAGES.say.release.unseen_list[-1] in text
    assert 'Not tested:</strong> <span lang="en">personal information' in text
    assert "p if the guarantee holds" not in text


@pytest.mark.parametrize(("code", "name"), [("en", "Mrs Smith"), ("de", "Frau Schmidt"), ("fr", "Mme Petit")])
def test_personal_information_in_the_texts_is_shown_in_the_readers_language(browser, code, name):
    control = held_back(browser.folder)
    texts = write(browser.folder.parent / "t.csv", [*unrelated(29), f"{name} asleep"])
    token = browser.access.form_token(browser.cookie)
    form = {FORM_TOKEN: token, "texts": str(texts), "control": str(control)}
    asked = browser.ask("POST", f"{browser.access.root}/look", headers={"accept-language": code}, form=form)
    text = html.unescape(asked.text)
    said = PAGES.spoken[code].release
    assert said.personal.format(1, 30) in text
    assert said.personal_note in text
    assert "asleep" not in text


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"texts": "synthetic.csv"}, "synthetic texts; expected the whole path of a file on this machine"),
        ({"control": ""}, "control records; expected the whole path of a file on this machine; got none"),
        ({"epsilon": "four"}, "epsilon; expected a number, or nothing"),
        ({"epsilon": "4"}, "the guarantee to test lacks epsilon or delta"),
        ({"texts": "/no/such/file.csv"}, "/no/such/file.csv"),
    ],
)
def test_a_wrong_form_is_told(fields, wrong, browser):
    chosen = {"texts": copied(browser.folder), "control": held_back(browser.folder)} | fields
    response = look(browser, **chosen)
    assert response.status_code == 400
    assert wrong in html.unescape(response.text)
    assert not (browser.folder / "private" / "disclosures.json").exists()


@pytest.mark.parametrize("why", ["no end", "size"])
def test_file_without_end_or_of_any_size_is_not_read(why, browser, monkeypatch):
    texts = browser.folder.parent / "synthetic.txt"
    if why == "no end":
        texts.symlink_to("/dev/zero")
    else:
        texts = copied(browser.folder)
        monkeypatch.setattr("client.page.release.MOST_BYTES", 10)
    response = look(browser, texts, held_back(browser.folder))
    assert response.status_code == 400
    assert "synthetic texts;" in response.text


def test_one_release_is_looked_at_at_a_time(browser):
    with _looking:
        response = look(browser, copied(browser.folder), held_back(browser.folder))
    assert response.status_code == 400
    assert "another release is still being looked at" in response.text
    assert look(browser, copied(browser.folder), held_back(browser.folder)).status_code == 200


def test_the_release_that_the_coordinator_sent_is_offered_and_looked_at_and_stays(browser):
    control, texts = held_back(browser.folder), lines(browser.folder) + b'{"text": "<script>alert(1)</script>"}\n'
    name = sent(browser.folder, "first-<b>x</b>", texts)
    page = browser.get("release").text
    offered = PAGES.say.release.sent_one.format("first-&lt;b&gt;x&lt;/b&gt;", "2026-01-02 10:00:00", 30)
    assert f'<option value="{name}" selected>{offered}</option>' in page
    assert "<b>x" not in page
    answer = look(browser, "", control, sent=name).text
    assert "the texts disclose records" in answer
    assert "alert(1)" not in answer
    assert (browser.folder / "private" / "releases" / f"{name}.jsonl").read_bytes() == texts
    both = look(browser, copied(browser.folder), control, sent=name)
    assert (both.status_code, "both a file and a release that was sent are given" in both.text) == (400, True)
    other = look(browser, "", control, sent="../runs/x")
    assert (other.status_code, "no such release was sent here;" in other.text) == (400, True)


def test_the_guarantee_of_a_sent_run_is_that_of_its_plan(browser):
    opened(browser.folder, plan(2))
    (entry,) = approvals(browser.folder / "private")
    name = path_of(browser.folder / "private", entry.run, entry.plan_digest).stem
    sent(browser.folder, entry.run, lines(browser.folder), name)
    answer = look(browser, "", held_back(browser.folder), sent=name).text
    assert PAGES.say.release.promise.format("4", "1e-05") in answer
    assert PAGES.say.release.promise_sent in answer
    own = look(browser, "", held_back(browser.folder), sent=name, epsilon="0,5", delta="1e-6").text
    assert PAGES.say.release.promise.format("0.5", "1e-06") in own


def send(browser, content):
    """Send a file as the page's script does."""
    headers = {"content-type": BYTES, TOKEN_HEADER: browser.access.form_token(browser.cookie)}
    return browser.ask("POST", f"{browser.access.root}/receive", headers=headers, content=content)


def lines(folder):
    """Synthetic texts that copy the hospital's records, as the run's own file has them."""
    with copied(folder).open(encoding="utf-8", newline="") as file:
        return "".join(json.dumps(row) + "\n" for row in csv.DictReader(file)).encode()


def test_texts_that_a_browser_sends_are_private_and_gone_after_they_were_looked_at(browser):
    control, texts = held_back(browser.folder), lines(browser.folder)
    send(browser, b"an earlier file")
    response = send(browser, texts)
    received = browser.folder / "private" / RECEIVED
    assert (response.status_code, response.text, received.read_bytes()) == (200, str(received), texts)
    assert stat.S_IMODE(received.stat().st_mode) == 0o600
    assert "the texts disclose records" in look(browser, response.text, control).text
    assert not received.exists()
    assert look(browser, send(browser, b"{").text, control).status_code == 400
    assert not received.exists()


def test_what_is_sent_is_bounded_and_waits_for_an_audit(browser, monkeypatch):
    monkeypatch.setattr("client.page.release.MOST_BYTES", 10)
    response = send(browser, b"x" * 11)
    assert (response.status_code, "a file of at most 10 bytes;" in response.text) == (400, True)
    with _looking:
        assert "another release is still being looked at" in send(browser, b"x").text
    assert not (browser.folder / "private" / RECEIVED).exists()


def test_what_was_sent_is_gone_after_the_log_out_and_when_the_page_begins_or_ends(browser, monkeypatch):
    private = browser.folder / "private"
    assert send(browser, b"x").status_code == 200
    assert browser.post("leave").status_code == 200
    assert not list(private.glob(f"{RECEIVED}*"))
    (private / RECEIVED).touch()
    monkeypatch.setattr("common.page.app.serve_page", lambda *_: iter([str(list(private.glob(f"{RECEIVED}*")))]))
    options = dict.fromkeys(OPTIONS)
    shown = _page(argparse.Namespace(folder=browser.folder, port=0, **options))
    assert next(shown) == "[]"
    (private / f"{RECEIVED}.part").touch()
    assert list(shown) == []
    assert not list(private.glob(f"{RECEIVED}*"))


def test_a_stalled_upload_holds_up_neither_an_audit_nor_another_upload(browser):
    settings = HospitalSettings.load(browser.folder)

    async def other():
        yield b"other"

    async def stalled():
        yield b"the first part"
        assert (await receive(settings, other())).read_bytes() == b"other"
        assert not _looking.locked()
        forget(browser.folder)  # as at the log out

    with pytest.raises(FileNotFoundError):
        asyncio.run(receive(settings, stalled()))
    assert not list((browser.folder / "private").glob(f"{RECEIVED}*"))

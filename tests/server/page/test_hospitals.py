"""Hospitals on the page: who is online since when, fingerprints, and what is wrong between them and here."""

import html

import pytest

from common.system.enrolment import RosterFile
from server.command import main
from server.documents.hospitals import HospitalVersion, HospitalVersions
from server.page import app
from server.page.app import PAGES

SAY = PAGES.say.hospitals


@pytest.fixture
def door(monkeypatch):
    """A front door that answers."""
    monkeypatch.setattr(app, "fault", lambda _: None)


def text_of(browser):
    response = browser.get("hospitals")
    assert response.status_code == 200
    return html.unescape(response.text)


def test_each_hospital_is_shown_with_its_attendance_and_its_fingerprint(browser, flower, door):
    flower.online = {"8"}
    text = text_of(browser)
    roster = RosterFile.load(flower.folder / "roster.json")
    for party in roster.parties:
        assert party.name in text
        assert party.fingerprint in text
    assert roster.fingerprint in text
    since = f'<td class="words whole"><span class="named">{SAY.since} </span>'
    assert f"<strong>{SAY.offline}</strong></td>{since}2026-01-02 11:00:00<" in text
    assert f"{SAY.online}</td>{since}2026-01-02 10:00:00<" in text
    assert SAY.works in text
    assert all(sentence in text for sentence in vars(SAY.parts).values())


def test_the_version_that_a_hospital_reported_last_is_shown_with_its_time(browser, flower, door):
    (folder := flower.folder / "runs" / "first").mkdir()
    mary = HospitalVersion(caucus="0.2.0", at="2026-01-03 10:00:00Z")
    HospitalVersions(
        versions={"St. Mary": mary, "St. Luke": HospitalVersion(caucus="", at="2026-01-04 10:00:00Z")}
    ).save(folder)
    text = text_of(browser)
    for version, day in (("0.2.0", "2026-01-03 10:00:00"), (SAY.unknown, "2026-01-04 10:00:00")):
        assert f'{version}<br><span class="soft small">{SAY.reported.format(day)}</span>' in text


def test_where_nothing_serves_nobody_is_asked_and_the_page_says_what_to_do(browser, flower):
    flower.serve = None
    text = text_of(browser)
    assert SAY.stopped_do.format(flower.folder) in text
    assert text.count(f"{SAY.unknown}</td>") == text.count(f"{SAY.version_unknown}</td>") == 2
    assert flower.asked == []


def test_what_waits_to_start_again_and_a_door_that_is_shut_are_told(browser, flower):
    flower.serve = {"children": {"front_door": {"process": None, "restarts": 3}}}
    text = text_of(browser)
    assert SAY.waits.format(3) in text
    assert f'{SAY.problem} <span lang="en">the front door does not answer' in text


def test_a_superlink_that_fails_leaves_the_attendance_unknown(browser, flower, door):
    flower.fails = {"supernode list"}
    text = text_of(browser)
    assert f'{SAY.problem} <span lang="en">Flower; got a stand-in' in text
    assert f"{SAY.unknown}</td>" in text


def test_a_certificate_that_ends_is_warned_of(browser, door, monkeypatch):
    monkeypatch.setattr(app, "days_left", lambda _: 3)
    assert SAY.certificate_soon in text_of(browser)


def test_without_a_hospital_the_page_says_how_one_is_enrolled(browser, flower, door):
    for name in ("St. Mary", "St. Luke"):
        assert main(["remove", "--yes", str(flower.folder), name]) == 0
    text = text_of(browser)
    assert SAY.none_do.format(flower.folder) in text
    assert SAY.roster not in text

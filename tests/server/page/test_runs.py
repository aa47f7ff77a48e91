"""Runs on the page: their state, costs, log, rounds and report, and what can be done about them."""

import html
import json
import os
from pathlib import Path

import pytest
import yaml

from common.page.access import HEADERS, SANDBOXED
from common.page.words import sentences
from common.phrases import group_by_four
from server.deploy.run_state import DIED
from server.documents.run import Weakness, WeaknessCode
from server.failure import lock_folder
from server.page.app import PAGES
from server.page.runs import MOST_LINES
from tests.support.browsing import forms
from tests.support.federations import CANARY
from tests.support.flower import under_way

SAY = PAGES.say.run


def text_of(browser, path="run?name=first", status=200):
    response = browser.get(path)
    assert response.status_code == status
    assert CANARY not in response.text
    return html.unescape(response.text)


def actions(browser):
    """What the page of the run offers to do."""
    text = browser.get("run?name=first").text
    assert all(form["name"] == "first" for form in forms(text))
    return [verb for verb in ("cancel", "resume", "send") if f'action="{verb}"' in text]


def test_without_a_run_the_page_says_what_comes_next(browser):
    text = text_of(browser, "")
    assert PAGES.say.runs.none_do in text
    assert forms(text) == []


def test_runs_are_listed_newest_first_with_their_states(browser, flower):
    for age, name in enumerate(("new", "old", "damaged")):
        folder = under_way(flower, name)
        os.utime(folder / "config.yaml", (1e9 - age, 1e9 - age))
    (folder / "run.json").write_text("{")
    (flower.folder / "runs" / "empty").mkdir()
    (flower.folder / "runs" / "old" / "awaiting.txt").write_text("St. Mary\nSt. Luke")
    text = text_of(browser, "")
    assert text.index("new</a>") < text.index("old</a>") < text.index("damaged</a>")
    assert "awaiting approval</strong> · St. Mary, St. Luke" in text
    assert "run folder;" in text
    assert "empty" not in text.partition("<main")[2].partition("</main")[0]


def test_what_is_poor_about_a_complete_run_is_said(browser, flower):
    folder = under_way(flower)
    for name, content in {**flower.leaves, "lock": "", "synthetic.jsonl": CANARY}.items():
        (folder / name).write_text(content)
    weakness = Weakness(code=WeaknessCode.NO_CLEAR_GAIN, what="accuracy 0.2", do="Write more texts")
    (folder / "report.json").write_text(json.dumps({"weaknesses": [weakness.to_json()]}))
    assert "caucus-coordinator steer" not in text_of(browser)
    (folder / "census.json").touch()
    for path in ("", "run?name=first"):
        assert str(weakness) in text_of(browser, path)
    text = text_of(browser)
    assert actions(browser) == ["send"]
    for command in (f"publish {folder} --license", f"steer {folder} llm=", f"evaluate {folder} --test"):
        assert f"caucus-coordinator {command}" in text


def test_a_run_under_way_shows_its_costs_its_rounds_and_the_end_of_its_log(browser, flower):
    folder = under_way(flower)
    with lock_folder(folder):
        text = text_of(browser)
        assert actions(browser) == ["cancel"]
    assert SAY.rounds_of.format(2, 5) in text
    assert SAY.epsilon_of.format("1.5", "4", "1e-5") in text
    assert f'<dd class="digest">{group_by_four("ab" * 32)}</dd>' in browser.get("run?name=first").text
    assert SAY.cost_of.format(1, 5) in text
    assert SAY.tokens_of.format("2\u202f000", "100\u202f000") in text
    assert SAY.rest_time.format("6.0 s") in text  # three rounds of two seconds
    assert SAY.rest_money.format("1.5") in text
    assert 'id="plot-round-epsilon"' in text
    assert "round 2 of 5 <b>?" in text
    assert text.count("early") == MOST_LINES - 1
    assert "\x1b" not in text
    assert flower.command("cancel") in text


def test_without_caps_prices_and_rounds_the_page_says_so(browser, flower):
    folder = under_way(flower, "first", "llm.max_cost=null", "llm.max_tokens=null")
    settings = yaml.safe_load((folder / "config.yaml").read_text())
    settings["method"] = {"_target_": "somebody.s.Method", "name": "own"}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    text = text_of(browser)
    assert SAY.rounds_only.format(2) in text
    assert SAY.cost_only.format(1) in text
    assert SAY.tokens_only.format("2\u202f000") in text
    (folder / "spending.jsonl").write_text((folder / "spending.jsonl").read_text().replace("1.0", "null"))
    (folder / "rounds.jsonl").unlink()
    (folder / "privacy.json").unlink()
    (folder / "run.log").unlink()
    text = text_of(browser)
    assert SAY.cost_unknown in text
    assert SAY.rest not in text
    assert SAY.log_none in text
    assert SAY.epsilon_asked.format("4", "1e-5") in text
    (folder / "spending.jsonl").unlink()
    text = text_of(browser)
    assert SAY.cost_none in text
    assert SAY.tokens_only.format(0) not in text


def test_files_that_cannot_be_read_are_named(browser, flower):
    folder = under_way(flower)
    (folder / "rounds.jsonl").write_text(f'{{"{CANARY}\n')
    (folder / "privacy.json").write_text(f"{CANARY}")
    text = text_of(browser)
    assert "rounds.jsonl: 1 of 1 lines cannot be read" in text
    assert "privacy.json is not valid JSON" in text


def test_the_page_loads_itself_only_if_a_person_wants_it_and_the_run_goes_on(browser, flower):
    folder = under_way(flower)
    with lock_folder(folder):
        assert "refresh" not in browser.get("run?name=first").headers
        response = browser.get("run?name=first&follow=yes")
        assert response.headers["refresh"] == "10"
        assert SAY.follow_not in response.text
    assert "refresh" not in browser.get("run?name=first&follow=yes").headers


def test_what_a_run_waits_for_and_what_can_be_done(browser, flower):
    folder = under_way(flower)
    assert actions(browser) == ["resume"]  # it was never begun
    (folder / "awaiting.txt").write_text("St. Mary")
    assert SAY.waits_do in text_of(browser)
    assert actions(browser) == ["cancel", "resume"]
    (folder / "awaiting.txt").unlink()
    (folder / "error.txt").write_text("too few parties")
    assert 'failed</strong> · <span lang="en">too few parties' in text_of(browser)
    assert actions(browser) == ["resume"]
    (folder / "rejected.txt").touch()
    assert SAY.rejected in text_of(browser)
    assert actions(browser) == []


def test_too_few_hospitals_are_one_line_and_a_list(browser, flower):
    folder = under_way(flower)
    (folder / "error.txt").write_text("too few (St. Mary is ill)")
    absent = {"problem": "too few", "absent": {"St. Mary": "is ill"}, "advice": "Wait"}
    (folder / "absent.json").write_text(json.dumps(absent))
    text = text_of(browser)
    assert 'failed</strong> · <span lang="en">too few</span>' in text
    assert '<dd class="small">St. Mary: <span lang="en">is ill</span></dd>' in text
    assert '<dd lang="en">Wait.</dd>' in text
    assert "is ill" not in text_of(browser, "")


def test_the_log_is_that_of_the_present_attempt(browser, flower):
    folder = under_way(flower)
    flower.leaves = {}
    before = (folder / "run.log").write_text("ERROR of the attempt before\n")
    assert browser.post("resume", name="first").status_code == 200
    assert json.loads((folder / "flower.json").read_text())["log"] == before
    with (folder / "run.log").open("a") as log:
        log.write("begun again\n")
    text = text_of(browser)
    assert "begun again" in text
    assert "the attempt before" not in text


def test_cancel_and_resume_are_those_of_the_commands(browser, flower):
    folder = under_way(flower)
    (folder / "awaiting.txt").write_text("St. Mary")
    response = browser.post("cancel", name="first")
    text = html.unescape(response.text)
    assert (response.status_code, "caucus-coordinator resume" in text) == (200, True)
    assert flower.command("cancel") in text
    assert text_of(browser).count('cancelled</strong> · <span lang="en">20') == 1
    flower.online = {"7"}
    assert "hospitals online;" in browser.post("resume", name="first").text
    response = browser.post("resume", name="first", wait="on")
    assert (response.status_code, PAGES.say.acted.title.resume in response.text) == (200, True)
    assert flower.asked.count("run") == 1


@pytest.fixture
def complete(flower):
    """The folder of a complete run, whose texts can be sent."""
    folder = under_way(flower)
    for name, content in {**flower.leaves, "synthetic.jsonl": CANARY}.items():
        (folder / name).write_text(content)
    return folder


def test_texts_are_sent_as_by_the_command_and_the_page_says_who_has_them(browser, flower, complete):
    delivery = {"texts": "ab", "sent_at": "1", "received": {"St. Mary": "2026-01-02 10:00:00Z"}}
    delivery["missing"] = {"St. Luke": "is <offline>"}
    assert SAY.sending not in text_of(browser)
    flower.leaves = {"lock": "17", "sent.json": json.dumps(delivery)}
    response = browser.post("send", name="first")
    assert response.status_code == 200
    assert PAGES.say.acted.sent in (text := html.unescape(response.text))
    assert flower.command("send") in text
    assert flower.given[-2].endswith("/runs/first/sending/run.toml")
    text = browser.get("run?name=first").text
    assert f"<dt>St. Mary</dt><dd>{SAY.has_since.format('2026-01-02 10:00:00')}</dd>" in text
    assert f'{SAY.has_not}</strong> <span lang="en">is &lt;offline&gt;</span>' in text
    assert actions(browser) == ["send"]
    flower.leaves = {"lock": "17", "error.txt": "no hospital"}
    browser.post("send", name="first")
    assert f'{SAY.sending_failed} <span lang="en">no hospital' in text_of(browser)
    flower.leaves, flower.says = {}, "pending"
    browser.post("send", name="first")
    assert SAY.sending_now in text_of(browser)
    assert actions(browser) == []


@pytest.mark.parametrize(("leaves", "reason"), [({"lock": "18"}, DIED), ({}, "No heartbeat")])
def test_a_sending_that_ends_without_a_word_is_told_beside_who_has_the_texts_from_before(
    leaves, reason, browser, flower, complete
):
    delivery = {"texts": "ab", "sent_at": "1", "received": {"St. Mary": "2026-01-02 10:00:00Z"}, "missing": {}}
    flower.leaves = {"lock": "17", "sent.json": json.dumps(delivery)}
    browser.post("send", name="first")
    assert SAY.sending_failed not in text_of(browser)
    flower.leaves = leaves
    for _ in range(2):
        browser.post("send", name="first")
        text = text_of(browser)
        assert SAY.sending_failed in text
        assert reason in text
        assert "<dt>St. Mary</dt>" in text
    for name in ("before.json", "sent.json"):
        (complete / "sending" / name).write_text("{")
        assert f"{name} is not valid JSON" in text_of(browser)
        assert actions(browser) == ["send"]


@pytest.mark.parametrize("verb", ["cancel", "resume", "send"])
def test_a_run_that_another_process_steers_is_left_to_it(verb, browser, flower):
    folder = under_way(flower, "first", "method=class_sums", "method.rounds=2", "method.census=census.json")
    if verb == "send":
        for name, content in flower.leaves.items():
            (folder / name).write_text(content)
    assert SAY.steered in text_of(browser)
    assert actions(browser) == []
    response = browser.post(verb, name="first")
    assert response.status_code == 400
    assert ("got one that asked none" if verb == "send" else "one that caucus-coordinator steer makes") in response.text


def test_a_run_that_goes_on_is_not_begun_twice(browser, flower):
    folder = under_way(flower)
    with lock_folder(folder):
        response = browser.post("resume", name="first")
    assert response.status_code == 400
    assert "expected one that has ended; got one that is running" in response.text
    flower.leaves, flower.says = {}, "pending"
    assert browser.post("resume", name="first").status_code == 200
    assert "got one that is starting" in browser.post("resume", name="first").text
    assert flower.asked.count("run") == 1


@pytest.mark.parametrize("name", ["config.yaml", "run.json", "spending.jsonl"])
def test_a_run_with_a_damaged_file_is_one_clear_line(name, browser, flower):
    (under_way(flower) / name).write_text("{}" if name == "spending.jsonl" else "{")
    assert "got one that was changed or cut" in text_of(browser, status=400)


@pytest.mark.parametrize("name", ["", "no-such", "../coordinator", ".", "/etc", "first/../first"])
def test_no_other_folder_than_a_run_s_is_read(name, browser, flower):
    folder = under_way(flower)
    (folder / "report.html").write_text("the report")
    (flower.folder / "report.html").write_text("the wrong one")
    (flower.folder / "config.yaml").write_text("{}")
    for path in ("run", "report"):
        response = browser.ask("GET", f"{browser.access.root}/{path}", params={"name": name})
        assert (response.status_code, "run; expected" in response.text) == (400, True)
        assert "wrong one" not in response.text
    for verb in ("cancel", "resume", "send"):
        assert browser.post(verb, name=name).status_code == 400


def test_a_report_is_served_in_a_sandbox_and_every_other_page_is_not(browser, flower):
    folder = under_way(flower)
    missing = browser.get("report?name=first")
    assert (missing.status_code, "caucus-coordinator report" in missing.text) == (400, True)
    assert missing.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
    (folder / "report.html").write_text("the report")
    assert SAY.report in browser.get("run?name=first").text
    response = browser.get("report?name=first")
    assert (response.status_code, response.text) == (200, "the report")
    assert {name: response.headers[name] for name in HEADERS} == HEADERS | SANDBOXED
    assert SANDBOXED["Content-Security-Policy"].startswith("sandbox allow-scripts; default-src 'none'; ")
    assert "same-origin" not in SANDBOXED["Content-Security-Policy"]
    (folder / "report.html").unlink()
    (folder / "report.html").symlink_to("/etc/hostname")
    assert browser.get("report?name=first").status_code == 400


def test_no_file_but_the_report_and_the_log_reaches_the_page(browser, flower):
    folder = under_way(flower)
    (folder / "state").mkdir()
    for name in ("state/traceback.txt", "synthetic.jsonl", "error.txt.part", "zero_shot.jsonl"):
        (folder / name).write_text(CANARY)
    for path in ("", "run?name=first", "hospitals", "plan"):
        text_of(browser, path)


def test_an_unexpected_error_is_told_by_its_kind_alone(browser, monkeypatch):
    def fails(_):
        raise ValueError(CANARY)

    monkeypatch.setattr("server.page.app.all_runs", fails)
    assert "ValueError" in text_of(browser, "", status=500)


def test_a_folder_that_is_gone_is_told(browser, flower):
    (flower.folder / "coordinator.yaml").unlink()
    assert "expected coordinator.yaml; got none" in text_of(browser, "", status=400)


@pytest.mark.parametrize(("language", "code"), [("de-AT,en;q=0.5", "de"), ("fr", "fr")])
def test_a_browser_gets_its_language_around_what_the_engine_says_in_english(language, code, browser, flower):
    folder = under_way(flower)
    (folder / "error.txt").write_text("too few parties")
    say, headers = sentences("server.page")[code], {"accept-language": language}
    for path in ("", "run?name=first", "hospitals", "plan"):
        text = html.unescape(browser.get(path, headers=headers).text)
        assert f'<html lang="{code}">' in text
        assert say.footer in text
    assert f"<strong>{say.run.states.FAILED}</strong>" in browser.get(headers=headers).text
    text = html.unescape(browser.get("plan", headers=headers).text)
    assert '<p class="soft small under" lang="en" id="epsilon-note">' in text
    assert say.plan.more_task.format(Path.cwd()) in text
    assert f'<html lang="{code}">' in browser.get("plan", headers=headers, cookie="").text
    text = html.unescape(browser.get("run?name=first", headers=headers).text)
    assert say.run.epsilon_of.format("1,5", "4", "1e-5") in text
    assert say.run.rest_time.format("6,0 s") in text

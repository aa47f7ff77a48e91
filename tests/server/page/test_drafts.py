"""A run drafted in a form: its overrides, what `plan` says of them, and the run that it starts."""

import html
import json
import re
import shlex

import pytest
import yaml

from server.command import main
from server.page import app, drafts
from server.page.app import PAGES
from server.page.drafts import MADE, NOTES, SETTINGS, Draft
from server.prepare.compose import compose_settings
from tests.support.browsing import forms

SAY = PAGES.say.plan
SMALL = {"method": "fusegen", "more": "secagg=none"}
TEXTS = ["a trial", 'a "b" \\', "\\", 'c\\"', "it's, x=1 {a: b} [c]", "true", "2026", "null"]
TEXTS += ["${oc.env:HOME}", "a ${privacy.epsilon} b", r"\${x}", r"\\${x}", "$5 and {no}"]  # they fill in nothing


def commands(text):
    """The command lines of ours on a page, as words."""
    lines = re.findall(r"^(?:.*>)?(caucus-coordinator (?:plan|run) .*?)(?:</pre>)?$", html.unescape(text), re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_methods_of_a_coordinator_and_fields_have_a_note():
    assert {"wasp", "class_sums", "aug_pe_plus"} < set(MADE)
    assert not {"only_private", "private_exemplars"} & set(MADE)
    assert NOTES["methods"].keys() == set(MADE)
    assert NOTES["fields"].keys() == SETTINGS.keys() - {"method"}


def test_figures_are_those_of_the_plan_and_nothing_is_loaded(browser, monkeypatch):
    monkeypatch.setattr("server.prepare.components.build_components", lambda *_: 1 / 0)
    form = {"method": "class_sums", "epsilon": "2", "records": "300", "samples": "50"}
    text = html.unescape(browser.post("figures", **form).text)
    assert SAY.cost.format("2", "1e-5") in text
    assert SAY.records_of.format("300") in text
    assert "<table>" in text
    assert "<html" not in text
    assert "privacy.epsilon;" in browser.post("figures", epsilon="four").text
    with app._acting:
        assert browser.post("figures").status_code == 204


@pytest.mark.parametrize("text", TEXTS)
def test_words_reach_the_run_as_they_were_typed(text):
    (override,) = Draft.of({"purpose": text}).overrides()
    assert compose_settings([override], "server").purpose == text


def test_empty_fields_keep_their_defaults_and_others_become_overrides():
    assert Draft.of({"epsilon": " ", "more": "\n"}).overrides() == []
    form = {"method": "class_sums", "epsilon": " 2 ", "rounds": "auto", "more": "task=csv\r\n'task.labels={a: b}' ~x"}
    assert Draft.of(form).overrides() == [
        *("method=class_sums", "privacy.epsilon=2", "method.rounds=auto"),
        *("task=csv", "task.labels={a: b}", "~x"),
    ]


def test_a_field_of_ones_own_task_makes_it_one_of_files_and_paths_may_have_spaces():
    labels = "{flu: influenza, cold: a common cold}"
    form = {"labels": labels, "public_text": "my texts.txt"}
    task = compose_settings(Draft.of(form).overrides(), "server").task
    assert task.labels == {"flu": "influenza", "cold": "a common cold"}
    assert task.public_text.endswith("/my texts.txt")
    assert Draft.of({**form, "more": "task=mine"}).overrides()[2:] == ["task=mine"]


def test_a_plan_of_the_demo_or_without_a_purpose_is_warned_of_above_its_start(browser, unplanned):
    text = html.unescape(browser.post("planned").text)
    places = [text.index(said) for said in (SAY.warnings.demo, SAY.warnings.not_stated, SAY.start_title)]
    assert places == sorted(places)
    own = {"labels": "{flu: influenza}", **dict.fromkeys(drafts.STATED, "a statement")}
    text = html.unescape(browser.post("planned", **own).text)
    assert "task=csv" in text
    assert SAY.warnings.demo not in text
    assert SAY.warnings.not_stated not in text


def test_the_page_has_what_plan_says_and_the_commands_that_say_it(browser, flower, capsys):
    form = {"method": "wasp", "epsilon": "4", "samples": "200", "records": "300", "purpose": "a trial"}
    response = browser.post("planned", **form)
    assert response.status_code == 200
    text = html.unescape(response.text)
    assert SAY.cost.format("4", "1e-5") in text
    assert SAY.records_of.format("300") in text
    assert "nearest and furthest votes will be weak" in text
    plan, run = commands(response.text)
    assert main(plan[1:]) == 0
    said = json.loads(capsys.readouterr().out)
    (query,) = said["queries"]
    assert f'>{query["signal"]["signal"]:.4g} <span lang="en">{query["signal"]["unit"]}</span></td>' in text
    assert json.dumps(query["signal"]["ratio"]) in text
    assert run == ["caucus-coordinator", "run", str(flower.folder), "NAME", *plan[5:]]
    start, draft = forms(response.text)
    assert {name: value for name, value in start.items() if value} == form | {"form_token": draft["form_token"]}


def test_a_plan_without_an_estimate_or_a_question_says_so(browser, unplanned):
    text = browser.post("planned").text
    assert SAY.records_none in text
    assert SAY.advice_none not in text
    assert SAY.no_queries in text
    unplanned["queries"] = [{"name": "q", "times": 1, "signal": {"not_estimated": "why", "clear_from_records": None}}]
    text = browser.post("planned").text
    assert '<td colspan="3" class="words" lang="en">why</td>' in text
    assert SAY.advice_none in text


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ({"more": "'task.labels={a"}, "other settings;"),
        ({"more": "loose words"}, "got 'loose'."),
        ({"more": "no.such=1"}, "no.such;"),
        ({"epsilon": "1,2"}, "privacy.epsilon;"),
        ({"more": "federation.parties=5"}, "federation.parties; expected 2"),
    ],
)
def test_a_wrong_draft_is_told_in_one_line_and_can_be_mended(form, wrong, browser):
    response = browser.post("planned", **form)
    assert response.status_code == 400
    text = html.unescape(response.text)
    (problem,) = re.findall(r'<p class="banner" role="alert" lang="en">(.*)</p>', text)
    assert wrong in problem
    (value,) = form.values()
    assert value in text
    assert 'action="start"' not in text


def test_a_run_is_started_as_the_command_starts_it(browser, flower, unplanned):
    planned = browser.post("planned", **SMALL, purpose="it's a trial")
    start = forms(planned.text)[0]
    response = browser.post("start", token=start.pop("form_token"), **start | {"purpose": "it's a trial"}, name="first")
    assert response.status_code == 200
    text = html.unescape(response.text)
    assert PAGES.say.acted.title.start in text
    assert PAGES.say.acted.next in text
    assert "fusegen with 2 hospitals" in text
    ((_, *words),) = commands(response.text)
    settings = yaml.safe_load((flower.folder / "runs" / "first" / "config.yaml").read_text())
    assert settings["purpose"] == "it's a trial"
    assert flower.asked.count("run") == 1
    draft = Draft.again(flower.folder / "runs" / "first")
    filled_in = {name: value for name, value in draft.fields.items() if value}
    assert (draft.name, draft.more) == ("", "secagg=none")
    assert filled_in == {"method": "fusegen", "purpose": "it's a trial"}
    assert "it&#39;s a trial" in browser.get("plan?again=first").text
    assert "plan?again=first" in browser.get("run?name=first").text
    again = browser.post("start", **SMALL, name="first")
    assert (again.status_code, "name of the run;" in again.text) == (400, True)
    words[2] = "second"
    assert main(words) == 0
    other = yaml.safe_load((flower.folder / "runs" / "second" / "config.yaml").read_text())
    assert other | {"run": ""} == settings | {"run": ""}


def test_hospitals_that_are_offline_are_named_and_can_be_waited_for(browser, flower):
    flower.online = {"7"}
    response = browser.post("start", **SMALL, name="first")
    assert response.status_code == 400
    assert "St. Luke&#34; is offline" in response.text
    assert 'name="name" value="first"' in response.text
    response = browser.post("start", **SMALL, name="first", wait="on")
    assert response.status_code == 200
    assert "first --wait method=fusegen" in html.unescape(response.text)


def test_the_name_of_a_run_is_asked_for_once(browser, unplanned):
    asked = r'<input name="name"'
    assert len(re.findall(asked, browser.get("plan").text)) == 0
    assert len(re.findall(asked, browser.post("planned").text)) == 1


def test_one_plan_is_composed_at_a_time(browser, monkeypatch):
    monkeypatch.setattr(app, "plan_draft", lambda *_: app._acting.locked() or 1 / 0)
    browser.post("planned")
    assert not app._acting.locked()

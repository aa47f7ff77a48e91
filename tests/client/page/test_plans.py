"""Plans on the page: the sheet of `approve`, and decisions that are its decisions."""

import html
import json
import math
import re
import shutil
from dataclasses import fields
from types import SimpleNamespace

import pytest

from client.approval import fit
from client.approval.entries import Approvals, approvals, decide, end_all
from client.approval.facts import round_up
from client.audit_log import AuditLog
from client.command import main
from client.deploy.audit_reading import accepted_ledgers
from client.deploy.settings import HospitalSettings
from client.page.app import PAGES
from client.page.budget import budget
from client.page.plans import list_plans
from common.page.words import catalogue
from common.phrases import capital, group_by_four
from common.plan.guesses import scale
from common.system.log_lines import utc
from tests.support.browsing import Browser, forms
from tests.support.federations import CANARY, plan
from tests.support.hospital import TRUSTING, change, opened
from tests.support.ledgers import RELEASE, reservation
from tests.support.sheets import SAY

RUN = "pilot-1a2b3c4d"


@pytest.fixture
def browser(trusting, monkeypatch):
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_name="anna", pw_gecos=""))
    return Browser.entered(trusting)


def only(folder):
    (entry,) = approvals(folder / "private")
    return entry


def send(browser, number=0, path="", **fields):
    """Send a form of a page as it stands there, with what a person adds."""
    form = forms(browser.get(path).text)[number]
    return browser.post("decide", token=form.pop("form_token"), **form | fields)


def main_points(text):
    """Return the short list of the only plan on a page."""
    return text.partition('<dl class="short">')[2].partition("</dl>")[0]


def followed(browser, response):
    """Return the page that a decision leads to."""
    return html.unescape(browser.get(response.headers["location"].removeprefix("./")).text)


def approved(browser, agreed):
    """Approve a plan on the page; return the page that follows, and the address of the plan's own."""
    opened(browser.folder, agreed, RUN)
    text = followed(browser, send(browser, decision="approve"))
    return text, f"plan?run={RUN}&digest={only(browser.folder).plan_digest}"


def answered(browser):
    """Charge two answers of the run, and log that one left, as the party service does."""
    noted = HospitalSettings.load(browser.folder).noted_head
    ledger = noted.opened(browser.folder / "private" / "ledger.db")
    for index in range(2):
        digest = plan(2).digest()
        ledger.reserve(**reservation(run=RUN, index=index) | {"plan_digest": digest})
    noted.write(ledger)
    AuditLog(browser.folder / "private").note(run=RUN, plan_digest=digest, request="Ask", index=0)


def test_a_plan_beyond_the_limits_is_apart_with_the_reason_and_cannot_be_approved(browser):
    opened(browser.folder, plan(2, epsilon=9.0), RUN)
    text = html.unescape(browser.get().text)
    summary = text.partition(PAGES.say.plans.by_limits)[2].partition("<summary>")[2].partition("</summary>")[0]
    assert summary.startswith(f"{RUN}: <span")
    assert "plan's epsilon; expected at most 8.0; got 9.0" in summary
    assert capital(SAY.here.beyond.format("plan's epsilon; expected at most 8.0; got 9.0")) in text
    assert PAGES.say.plans.none not in text
    assert 'value="approve"' not in text
    response = send(browser, decision="approve")
    assert response.status_code == 400
    assert f"not approved: run {RUN} is beyond" in response.text
    assert only(browser.folder).decision == "awaiting"
    followed(browser, send(browser, decision="refuse"))
    page = f"plan?run={RUN}&digest={only(browser.folder).plan_digest}"
    assert forms(browser.get(page).text) == []  # nor reconsidered
    change(browser.folder, limits=TRUSTING | {"max_epsilon": 9.0})
    assert PAGES.say.plans.done.approved in followed(browser, send(browser, path=page, decision="approve"))
    change(browser.folder, limits=TRUSTING)
    for said in (browser.get().text, browser.get(page).text):
        assert "refused even when approved: plan's epsilon" in html.unescape(said)
    assert 'value="refuse"' in browser.get(page).text


def test_after_a_withdrawal_what_was_answered_and_paid_for_is_said(browser):
    _, page = approved(browser, plan(2))
    answered(browser)
    text = followed(browser, send(browser, path=page, decision="refuse"))
    status = text.partition('role="status">')[2].partition("</p>")[0]
    spent = HospitalSettings.load(browser.folder).party.limits.spent([RELEASE] * 2)
    assert capital(SAY.given.counts.format(1, 2)) in status
    assert capital(SAY.given.cost.format(round_up(spent), 0.0001)) in status
    assert capital(SAY.given.completed) in status
    assert SAY.given.completed in html.unescape(browser.get(page).text)


def test_a_run_that_ended_shows_what_it_spent_and_cannot_be_withdrawn(browser):
    _, page = approved(browser, plan(2))
    answered(browser)
    folder = browser.folder / "private"
    Approvals(folder, records=browser.folder.parent / "notes.csv", key=b"k").note_end(RUN)
    text = browser.get(page).text
    assert forms(text) == []
    ended = capital(SAY.over.ended.format(utc(only(browser.folder).ended)))
    assert ended in html.unescape(text)
    assert SAY.given.counts.format(1, 2) in text
    assert ended in html.unescape(browser.get().text)


def test_what_is_asked_and_who_is_trusted_is_said_first_and_few_records_are_a_warning(browser):
    empty = browser.get().text
    assert PAGES.say.plans.none in empty
    assert forms(empty) == []
    opened(browser.folder, plan(2), RUN)
    text = html.unescape(browser.get().text)
    short = main_points(text)
    assert SAY.plan.numbers.format(2) in short
    assert 'role="note"' not in text
    assert "MUST be trusted" in short
    assert SAY.trust.other not in text  # the only other hospital is not enough
    opened(browser.folder, plan(3), "three")
    text = html.unescape(browser.get().text)
    assert SAY.trust.others.format(2, 2) in text
    unprotected = SAY.cost.strength.format("No protection")
    assert unprotected not in text
    opened(browser.folder, plan(2, epsilon=float("inf")), "no noise")
    assert unprotected in browser.get().text
    opened(browser.folder, plan(2, epsilon=9.0), "by limits", beyond=True)
    text = html.unescape(browser.get().text)
    by_limits, _, refused = text.partition(PAGES.say.plans.by_limits)[2].partition(PAGES.say.plans.refused_none)
    assert ("run by limits: refused by limits" in by_limits, "run by limits" in refused) == (True, False)
    HospitalSettings.load(browser.folder).records.write_text("text,label\n" + "x,z\n" * 60)
    text = html.unescape(browser.get().text)
    assert SAY.here.few.format(0, 60) in text.partition('<dl class="short">')[0]


def test_a_german_page_has_decimal_commas(browser):
    opened(browser.folder, plan(2), RUN)
    text = browser.get(headers={"accept-language": "de"}).text
    assert "höchstens 67,82\u00a0%" in text
    assert "<dd>Mittlerer Schutz gegenüber Lesern der Texte</dd>" in text
    assert "von Epsilon 10 sind 10,000 übrig" in text
    assert not {"67.82", "98.21"} & set(re.findall(r"\d+\.\d+", text))


def test_persons_and_epsilon_of_their_records_are_among_the_main_points(browser):
    records = HospitalSettings.load(browser.folder).records
    opened(browser.folder, plan(2), RUN)
    assert "persons, each with" not in browser.get().text
    records.write_text("text,label,user\n" + "x,a,ann\n" * 2)
    short = main_points(html.unescape(browser.get().text))
    assert SAY.here.users.format(1, 2) in short
    assert short.count("for all 2 records of one person together") == 3  # a word for the protection, and two figures
    records.write_text("text,label,user\nx,a,ann\n")
    short = main_points(html.unescape(browser.get().text))
    assert SAY.here.users.format(1, 1) in short
    assert "of one user together" not in short


def test_a_plan_that_protects_persons_is_said_to_in_all_its_figures(browser):
    opened(browser.folder, plan(2, unit="user"), RUN)
    text = html.unescape(browser.get().text)
    assert SAY.cost.each_user.format(1) in main_points(text)
    assert "a user's records took part" in main_points(text)
    assert "a record took part" not in text


def test_a_card_has_the_whole_sheet_and_its_main_points_first(browser, capsys):
    opened(browser.folder, plan(2, purpose="triage", recipient="University Hospital"), RUN)
    text = html.unescape(browser.get().text)
    assert main(["approve", str(browser.folder), "--list"]) == 0
    for line in capsys.readouterr().out.splitlines():
        assert all(word in text for word in line[21:].split())
    short = main_points(text)
    for point in (
        "triage",
        "University Hospital",
        "MUST be trusted",
        "at most 67.82% of cases",
        "is used by other runs",
    ):
        assert point in short
    for point in ("triage", "University Hospital", "MUST be trusted", "a: 1", "% is left", "is used by other runs"):
        assert text.count(point) == 1  # nothing is said twice
    assert group_by_four(plan(2).digest().hex()) not in text  # purpose and recipient are in the digest
    assert group_by_four(only(browser.folder).plan_digest) in text
    assert CANARY not in text


def test_the_page_says_who_may_help_the_coordinator_and_what_other_beliefs_become(browser):
    opened(browser.folder, plan(2), RUN)
    assert "for the coordinator: a right guess in at most 67.82%" in main_points(browser.get().text)
    change(browser.folder, limits={"malicious_coordinator": False, "corrupt": 0.3})
    text = html.unescape(browser.get().text)
    assert "for the coordinator and 1 colluder: a right guess in at most" in main_points(text)
    assert scale().rstrip(".") in text
    assert "98.21% of cases" in text
    assert "a belief of 1 in 100 that a record took part becomes, if it is true, 2.26% on average" in text


def test_a_run_that_may_be_over_is_apart_from_those_that_wait(browser):
    opened(browser.folder, plan(2), "over-1")
    (entry,) = approvals(browser.folder / "private")
    Approvals(browser.folder / "private", records=browser.folder.parent / "notes.csv", key=b"k").note_end("over-1")
    opened(browser.folder, plan(2), "waits-1")
    before, _, after = html.unescape(browser.get().text).partition(PAGES.say.plans.quiet)
    assert ("waits-1" in before, "over-1" in before) == (True, False)
    assert "The coordinator ended this run on " in after
    assert entry.plan_digest in after  # it can still be decided about


def test_what_fits_and_what_is_left_is_shown_in_figures(browser, monkeypatch):
    monkeypatch.setattr(fit, "SECONDS", math.inf)  # a busy machine takes longer
    opened(browser.folder, plan(2, epsilon=9.0), RUN)
    text = html.unescape(browser.get().text)
    assert "The same plan would fit at epsilon 7.9" in text
    assert "of epsilon 10, 10.000 is left and this run adds at most 8.0" in text
    opened(browser.folder, plan(2, epsilon=9.0), "another")
    text = html.unescape(browser.get().text)
    assert text.count(capital(SAY.here.fits_unknown)) == 2  # of several plans it would take too long


def test_a_run_that_the_limits_refused_at_its_opening_is_named_though_nobody_was_asked(browser):
    opened(browser.folder, plan(2), "r-asked")
    assert PAGES.say.plans.unasked not in html.unescape(browser.get().text)
    log = AuditLog(browser.folder / "private")
    got = "epsilon of all runs; expected at most 5.0; got 5.25"
    for run, reason in (("r-asked", "OVER_LIMIT"), ("r-moved", "AWAITING"), *2 * [("r-beyond", "OVER_LIMIT")]):
        log.note(run=run, plan_digest=bytes(32), request="Open", index=0, reason=reason, detail=got)
    text = html.unescape(browser.get().text).partition(PAGES.say.plans.unasked)[2]
    assert text.count("r-beyond") == 1
    assert PAGES.say.now.reasons.OVER_LIMIT in text
    assert got in text
    assert "r-asked" not in text
    assert "r-moved" not in text


def test_approve_refuse_reconsider_withdraw(browser):
    opened(browser.folder, plan(2), RUN)
    response = send(browser, decision="refuse", reason=" no  purpose\n")
    assert response.status_code == 303
    text = followed(browser, response)
    assert PAGES.say.plans.done.refused in text
    assert f"run {RUN}: refused by anna, {utc(only(browser.folder).decided)} UTC: no purpose" in text
    entry = only(browser.folder)
    again = f"plan?run={entry.run}&digest={entry.plan_digest}"
    assert html.escape(again) in text or again in html.unescape(text)
    assert 'value="approve"' in browser.get(again).text
    approved = followed(browser, send(browser, path=again, decision="approve"))
    assert PAGES.say.plans.done.approved in approved
    assert 'value="refuse"' in browser.get(again).text
    send(browser, path=again, decision="refuse", reason="a new officer")
    lines = map(json.loads, (browser.folder / "private" / "audit.jsonl").read_text().splitlines())
    assert [(entry["by"], entry["from"], entry["to"], entry["reason"]) for entry in lines] == [
        ("anna", "awaiting", "refused", "no purpose"),
        ("anna", "refused", "approved", ""),
        ("anna", "approved", "refused", "a new officer"),
    ]


def test_a_plan_that_somebody_else_decided_meanwhile_is_left_as_it_is(browser):
    opened(browser.folder, plan(2), RUN)
    (form,) = forms(browser.get().text)
    assert main(["approve", str(browser.folder), "--no", "--reason", "by hand"]) == 0
    response = browser.post("decide", token=form.pop("form_token"), **form, decision="approve")
    assert response.status_code == 400
    assert f"got run {RUN}: refused by anna" in html.unescape(response.text)
    assert (only(browser.folder).decision, only(browser.folder).reason) == ("refused", "by hand")


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"decision": "maybe"}, "decision; expected approve or refuse"),
        ({"decision": "approve", "run": "another"}, "the coordinator has not opened this plan here"),
        ({"decision": "approve", "digest": "00"}, "the coordinator has not opened this plan here"),
        ({"decision": "refuse", "reason": "x" * 201}, "reason; expected 1 to 200 printable characters"),
        ({"decision": "refuse", "reason": "a\x1b[2J"}, "reason; expected 1 to 200 printable characters"),
    ],
)
def test_a_wrong_form_decides_nothing(fields, wrong, browser):
    opened(browser.folder, plan(2), RUN)
    response = send(browser, **fields)
    assert response.status_code == 400
    assert wrong in response.text
    assert only(browser.folder).decision == "awaiting"


def test_words_of_the_coordinator_are_shown_and_not_run(browser):
    opened(browser.folder, plan(2, purpose="<script>alert(1)</script>"), "<b>run\x07")
    text = browser.get().text
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "<b>" not in text
    assert not {"\x1b", "\x07"} & set(text.replace(html.escape("<b>run\x07"), ""))


def test_an_error_is_told_without_a_record_s_text(browser):
    HospitalSettings.load(browser.folder).records.write_text(f"text,label\n{CANARY}\n")
    opened_before = browser.get()
    assert opened_before.status_code == 200
    opened(browser.folder, plan(2), RUN)
    response = browser.get()
    assert response.status_code == 400
    assert "This did not work" in response.text
    assert CANARY not in response.text
    (browser.folder / "client.yaml").unlink()
    assert "expected client.yaml; got none" in browser.get().text


def test_a_refusal_is_in_the_browsers_language(browser):
    refused = browser.get(headers={"accept-language": "fr"}, cookie="").text
    assert '<html lang="fr">' in refused
    assert "Vous n’avez pas accès" in refused


def test_an_unexpected_error_is_told_by_its_kind_alone(browser, monkeypatch):
    def fails(*_):
        raise ValueError(CANARY)

    monkeypatch.setattr("client.page.app.list_plans", fails)
    response = browser.get()
    assert response.status_code == 500
    assert "ValueError" in response.text
    assert CANARY not in response.text


@pytest.mark.parametrize(
    ("code", "button"), [("en", "Approve this plan"), ("de", "Diesen Plan genehmigen"), ("fr", "")]
)
def test_the_sheet_is_in_the_readers_language(browser, code, button):
    opened(browser.folder, plan(2))
    text = html.unescape(browser.get(headers={"accept-language": f"{code};q=0.9,it"}).text)
    assert f'<html lang="{code}">' in text
    assert button in text
    say = catalogue("client.approval", code)
    for sentence in (
        say.titles.purpose,
        say.plan.compare,
        say.purpose.word_alone,
        say.sight.no_helper,
        say.cost.each_record,
        say.asks.votes,
    ):
        assert sentence in text
    assert ("compare it by telephone" in text) == (code == "en")


def _warned(capsys, folder):
    """Return whether `ledger show`, with and without JSON, and `ledger verify` say that charges may be lost."""
    said = []
    for command in (["show", str(folder)], ["show", "--json", str(folder)], ["verify", str(folder)]):
        capsys.readouterr()
        assert main(["ledger", *command]) == 0
        said.append("head" in capsys.readouterr().out.replace("events, head", "").replace('"problem": ""', ""))
    return said


def test_of_a_run_whose_charge_is_lost_the_page_says_what_was_answered(browser, capsys):
    private = browser.folder / "private"
    opened(browser.folder, plan(2), "before")  # the service has started, and notes the head
    shutil.copy(private / "ledger.db", browser.folder / "copy.db")
    opened(browser.folder, plan(2), RUN)
    (entry,) = (entry for entry in approvals(private) if entry.run == RUN)
    decide(private, entry, approve=True, by="anna")
    page = f"plan?run={RUN}&digest={entry.plan_digest}"
    answered(browser)
    shutil.copy(browser.folder / "copy.db", private / "ledger.db")
    for path, shown in ((page, str), ("", capital)):
        text = html.unescape(browser.get(path).text)
        assert shown(SAY.given.counts.format(1, 0)) in text
        assert shown(SAY.given.cost).partition("{}")[0] not in text
        assert shown(SAY.given.lost.format(1)) in text
    assert PAGES.say.budget.lost.format(RUN) in html.unescape(browser.get("budget").text)
    assert PAGES.say.budget.left_unknown in browser.get("budget").text
    assert main(["approve", str(browser.folder), "--run", RUN, "--list"]) == 0
    before = [budget(HospitalSettings.load(browser.folder)).spending.uncharged, _warned(capsys, browser.folder)]
    assert main(["ledger", "accept", str(browser.folder)]) == 0
    assert [*before, _warned(capsys, browser.folder)] == [(RUN,), [True] * 3, [False] * 3]
    (line, *_) = [json.loads(line) for line in (private / "audit.jsonl").read_text().splitlines() if '"Ask"' in line]
    (spent,) = budget(HospitalSettings.load(browser.folder)).runs
    assert (spent.answers, spent.first, spent.last) == (2, line["when"], line["when"])  # not those of `accept`
    text = html.unescape(browser.get(page).text)
    assert SAY.given.counts.format(1, 2) in text
    assert forms(text) == []
    (entry,) = (entry for entry in approvals(private) if entry.run == RUN)
    assert capital(SAY.over.closed.format(utc(entry.closed))) in text
    assert PAGES.say.budget.lost.format(RUN) not in html.unescape(browser.get("budget").text)
    (line,) = accepted_ledgers(private)
    assert PAGES.say.budget.accepted.format(utc(line.when)) in html.unescape(browser.get("budget").text)
    assert all(line.detail in html.unescape(browser.get(path).text) for path in ("budget", "now"))


@pytest.mark.parametrize("before", ["awaiting", "approved", "refused", "refused by the limits"])
def test_a_run_that_ended_for_good_is_ended_wherever_it_is_told(before, browser, capsys):
    folder, private = browser.folder, browser.folder / "private"
    opened(folder, plan(2), RUN, beyond=before == "refused by the limits")
    (entry,) = approvals(private)
    if before in {"approved", "refused"}:
        decide(private, entry, approve=before == "approved", by="anna")
    Approvals(private, records=browser.folder.parent / "notes.csv", key=b"k").note_end(RUN)
    end_all(private)
    (entry,) = approvals(private)
    assert (entry.state, bool(entry.ended)) == ("ended", True)
    shown = list_plans(HospitalSettings.load(folder))
    everywhere = {field.name: len(getattr(shown, field.name)) for field in fields(shown)}
    assert {name for name, number in everywhere.items() if number} == {"ended"}
    assert main(["approve", str(folder), "--refused", "--list"]) == 0
    assert main(["approve", str(folder), "--list"]) == 0
    assert RUN not in capsys.readouterr().out
    assert main(["approve", str(folder), "--run", RUN]) == 0  # nothing is asked
    ended = capsys.readouterr().out.splitlines()[0]
    assert "ended by this hospital for good" in ended
    assert main(["approve", str(folder), "--run", RUN, "--yes"]) != 0
    assert "one that ended for good" in capsys.readouterr().err
    for text in (browser.get().text, browser.get(f"plan?run={RUN}&digest={entry.plan_digest}").text):
        assert capital(SAY.over.ended_before.format(utc(entry.ended))) in html.unescape(text)
        assert ended in html.unescape(text)
    assert main(["status", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["awaiting"] == 0

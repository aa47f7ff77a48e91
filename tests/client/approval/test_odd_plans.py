"""Whatever plan a coordinator sends, a person can see that it is there, and refuse it; no plan takes another down."""

import json
from dataclasses import asdict

import pytest

from client.approval.entries import PlanApproval, approvals, decide, path_of
from client.approval.facts import PlanFacts
from client.command import main
from client.deploy.settings import HospitalSettings
from client.page.app import PAGES
from client.page.plans import list_plans
from common.errors import CaucusError
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.histograms import LabelHistogramSpec
from common.queries.votes import VotesSpec
from tests.support.browsing import Browser, forms
from tests.support.federations import plan
from tests.support.hospital import opened
from tests.support.odd_plans import odd_plans

GOOD = "good-1a2b3c4d"
QUERIES = (
    PlannedQuery(name="votes", spec=VotesSpec(top=4), share=0.5),
    PlannedQuery(name="sizes", spec=LabelHistogramSpec(labels=2), mechanism="laplace", share=0.5),
)


@pytest.fixture
def hospital(trusting):
    """A hospital with one good plan that waits."""
    opened(trusting, plan(2), GOOD)
    return trusting


def stored(folder, number, plain):
    """Store a plan as it came, whether or not this version reads it; return its entry."""
    text = json.dumps(plain)
    try:
        digest = Plan.from_json(text).digest().hex()
    except CaucusError:
        digest = f"{number:064x}"
    now = "2026-01-02T10:00:00+00:00"
    entry = PlanApproval(run=f"odd-{number}", plan_digest=digest, plan=text, first_seen=now, asked=now)
    path_of(folder / "private", entry.run, digest).write_text(json.dumps(asdict(entry)))
    return entry


def some_odd_plans():
    """All odd plans that the parser takes, and one of each place that it does not."""
    refused = {}
    for place, _, plain in odd_plans(plan(2, queries=QUERIES).to_dict()):
        try:
            Plan.from_dict(plain)
        except CaucusError:
            refused.setdefault(place, plain)
        else:
            yield plain
    yield from refused.values()


def test_every_odd_plan_is_listed_shown_refused_and_logged(hospital, capsys):
    odd = [stored(hospital, number, plain) for number, plain in enumerate(some_odd_plans())]
    readable = sum(entry.read_plan() is not None for entry in odd)
    assert readable > 15
    assert len(odd) - readable > 25
    settings = HospitalSettings.load(hospital)
    shown = list_plans(settings)
    assert len(shown.unreadable) == len(odd) - readable
    assert len(shown.waiting) + len(shown.quiet) + len(shown.beyond) == readable + 1
    for arguments in (["approve", "--list"], ["approve", "--json"], ["status"], ["approve", "--run", GOOD, "--list"]):
        assert main([arguments[0], str(hospital), *arguments[1:]]) == 0
        printed = capsys.readouterr().out
        assert not {"\x1b", "\u202e"} & set(printed)
        assert "\u2800" not in printed or "--json" in arguments
        printed.encode()
        if arguments == ["approve", "--list"]:
            assert all(f"run {entry.run}: awaiting" in printed for entry in (*odd, *approvals(hospital / "private")))
    browser = Browser.entered(hospital)
    for path in ("", "limits", "budget", "now", "release"):
        page = browser.get(path)
        assert page.status_code == 200
        assert "\x1b" not in page.text
    for number, entry in enumerate(odd):
        if number % 4:
            assert main(["approve", str(hospital), "--run", entry.run, "--no"]) == 0
            assert capsys.readouterr().out == f"refused: run {entry.run}\n"
            continue
        page = browser.get(f"plan?run={entry.run}&digest={entry.plan_digest}")
        assert page.status_code == 200
        (form,) = forms(page.text)
        token = form.pop("form_token")
        if entry.read_plan() is None:
            assert PAGES.say.plans.unreadable in page.text
            assert browser.post("decide", token=token, **form, decision="approve").status_code == 400
        assert browser.post("decide", token=token, **form, decision="refuse").status_code == 303
    decisions = {entry.run: entry.decision for entry in approvals(hospital / "private")}
    assert decisions == {GOOD: "awaiting", **{entry.run: "refused" for entry in odd}}
    lines = map(json.loads, (hospital / "private" / "audit.jsonl").read_text().splitlines())
    assert [line["run"] for line in lines if line.get("to") == "refused"] == [entry.run for entry in odd]
    assert browser.get().status_code == 200


def test_a_plan_that_breaks_what_shows_it_takes_no_other_down(hospital, monkeypatch, capsys):
    opened(hospital, plan(3), "breaks")
    gather = PlanFacts.gather

    def fails(entry, *given, **how):
        if entry.run == "breaks":
            raise AttributeError("a secret text")
        return gather(entry, *given, **how)

    monkeypatch.setattr(PlanFacts, "gather", fails)
    assert main(["approve", str(hospital), "--list"]) == 0
    printed = capsys.readouterr().out
    assert "run breaks: awaiting; this plan cannot be read here (AttributeError); you can refuse it\n" in printed
    assert f"run {GOOD}: awaiting\n" in printed
    shown = list_plans(HospitalSettings.load(hospital))
    assert [sheet.problem for sheet in (*shown.waiting, *shown.unreadable)] == ["", "AttributeError"]


def test_to_refuse_needs_neither_the_records_nor_the_roster_nor_the_ledger(hospital, capsys):
    HospitalSettings.load(hospital).records.unlink()
    (hospital / "roster.json").unlink()
    (hospital / "private" / "ledger.db").write_bytes(b"damaged")
    assert main(["approve", str(hospital), "--no"]) == 0
    assert capsys.readouterr().out.endswith(f"refused: run {GOOD}\n")
    (entry,) = approvals(hospital / "private")
    assert decide(hospital / "private", entry, approve=False, by="anna").by == "anna"

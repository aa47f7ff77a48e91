"""The budget on the page: spent by run and over time, as the limits count it; the ledger checked, and exported."""

import html
import json
import math

from client.deploy.settings import HospitalSettings
from client.page.app import PAGES
from client.page.budget import BOTTOM, LEFT, MOST_STEPS, RIGHT, TOP, budget, step_plot
from common.ledger.ledger import Ledger
from tests.support.browsing import Browser
from tests.support.hospital import change, spend
from tests.support.ledgers import RELEASE, edited, reservation


def test_a_hospital_that_answered_nothing_is_told_what_comes_next(made):
    text = Browser.entered(made).get("budget").text
    assert "Nothing was spent yet." in text
    assert "There is no ledger yet." in text
    assert "<svg" not in text
    exported = Browser.entered(made).get("ledger.jsonl")
    assert (exported.status_code, exported.text) == (200, "")


def test_spending_is_that_of_the_limits_by_run(hospital):
    spend(hospital, "second")
    spend(hospital, "r", 1)
    limits = HospitalSettings.load(hospital).party.limits
    found = budget(HospitalSettings.load(hospital))
    assert [(run.number, run.run, run.answers) for run in found.runs] == [(1, "r", 2), (2, "second", 1)]
    assert found.spending.epsilon == limits.spent([RELEASE] * 3)
    assert found.spending.left == 10.0 - found.spending.epsilon
    assert [run.epsilon for run in found.runs] == [limits.spent([RELEASE] * 2), limits.spent([RELEASE])]
    text = Browser.entered(hospital).get("budget").text
    assert "of 10</p>" in text
    assert "<svg" in text
    assert "2 · second" in text


def test_a_step_for_each_stretch_and_never_too_many(hospital, monkeypatch):
    monkeypatch.setattr("client.page.budget.MOST_STEPS", 2)
    for number in range(3):
        spend(hospital, f"run {number}")
    found = budget(HospitalSettings.load(hospital))
    assert [number for _, _, number in found.plot.marks] == [2, 4]
    assert MOST_STEPS > 2


def test_without_a_limit_there_is_no_rest(hospital):
    change(hospital, limits={"lifetime_epsilon": None, "separate_data_sets": True})
    found = budget(HospitalSettings.load(hospital))
    assert (found.spending.left, found.plot.limit) == (None, None)
    text = Browser.entered(hospital).get("budget").text
    assert "There is no limit on all runs together." in text
    assert "These figures are of all data sets." in text
    assert "whether a record took part" in text
    change(hospital, limits={"unit": "user"})
    text = Browser.entered(hospital).get("budget").text
    assert ("whether a person took part" in text, "a record took part" in text) == (True, False)


def test_the_ledger_is_checked_and_its_head_compared(hospital):
    ledger = Ledger(hospital / "private" / "ledger.db", read_only=True)
    head = ledger.head().chain
    grouped = " ".join(head[place : place + 4] for place in range(0, 64, 4))
    text = Browser.entered(hospital).get("budget").text
    assert grouped in text
    assert f"noted in {hospital}/private/ledger.head, on the ledger&#39;s file system: this whole folder" in text
    assert "an answer is charged" in text
    Ledger(hospital / "private" / "ledger.db").reserve(**reservation(run="behind the note"))
    unknown = PAGES.say.budget.guess_unknown.partition("{}")[0]
    text = html.unescape(Browser.entered(hospital).get("budget").text)
    assert (grouped in text, unknown in text) == (True, False)  # now it is the note's
    (hospital / "private" / "ledger.head").unlink()
    text = html.unescape(Browser.entered(hospital).get("budget").text)
    assert unknown in text
    assert "none is noted" in text
    assert "The party service does not start with this ledger: no head of this ledger was noted" in text
    assert "nothing was changed, removed or moved" not in text
    assert "it is not known to be the whole ledger" in text


def test_the_export_has_all_events(hospital):
    response = Browser.entered(hospital).get("ledger.jsonl")
    assert response.headers["content-disposition"] == 'attachment; filename="ledger.jsonl"'
    events = [json.loads(line) for line in response.text.splitlines()]
    assert [(event["sequence"], event["kind"]) for event in events] == [(1, "charge")]
    edited(hospital / "private" / "ledger.db", "UPDATE events SET run = 'x'")
    for path in ("budget", "ledger.jsonl"):
        response = Browser.entered(hospital).get(path)
        assert (response.status_code, "This did not work" in response.text) == (400, True)


def test_steps_stay_in_the_frame_and_rise_with_the_sum():
    steps = [("2026-01-01T00:00:00+00:00", 1, 1.0), ("2026-01-03T00:00:00+00:00", 2, 4.0)]
    plot = step_plot(steps, 10.0)
    (x1, y1, one), (x2, y2, two) = plot.marks
    assert (one, two) == (1, 2)
    assert LEFT < x1 < x2 < RIGHT
    assert TOP < plot.limit < y2 < y1 < BOTTOM
    assert [text for _, text in plot.y_ticks] == ["0", "5", "10"]
    assert [text for _, text, _ in plot.x_ticks] == ["2026-01-01", "2026-01-03"]
    assert plot.path == f"M{LEFT} {float(BOTTOM)}H{x1}V{y1}H{x2}V{y2}H{RIGHT}"
    assert [text for _, text, _ in step_plot(steps[:1], None).x_ticks] == ["2026-01-01"]
    for nothing in ([], [("2026-01-01T00:00:00+00:00", 1, math.inf)]):
        assert step_plot(nothing, 10.0) is None

"""The coordinator's page in a real browser: a run drafted, started and cancelled, readable by everybody.

The browser is what `CHROMIUM` names, or a `chromium` on the path; none is downloaded.
"""

import shutil
import urllib.parse

import pytest

from server.failure import lock_folder
from server.page.app import coordinator_page
from server.report.write import write_report
from tests.support.browsing import opened_here
from tests.support.chromium import MARKS, ZOOMED, barriers, visiting, width
from tests.support.documents import write_run
from tests.support.flower import under_way

pytestmark = MARKS
PATHS = ("", "run?name=first", "run?name=whole", "hospitals", "plan")


@pytest.fixture
def coordinator(flower):
    """One run under way, and a complete one with a report."""
    under_way(flower)
    folder = under_way(flower, "whole")
    write_run(flower.folder / "simulated")
    for name in ("synthetic.jsonl", "metrics.json", "run.json"):
        shutil.copyfile(flower.folder / "simulated" / name, folder / name)
    write_report(folder)
    with lock_folder(flower.folder / "runs" / "first"):
        yield flower


@pytest.fixture
def visit(chromium, coordinator):
    """Open the link as a person does, and watch the page: what it asks for, and what it complains of."""
    with opened_here(coordinator.folder, coordinator_page) as link, visiting(chromium, link) as entered:
        yield entered


def test_a_run_is_drafted_started_and_cancelled_by_keyboard(visit, coordinator):
    page = visit()
    page.get_by_role("link", name="Draft a new run").press("Enter")
    page.get_by_role("combobox").focus()
    page.keyboard.type("fuse")
    page.get_by_label("Synthetic texts").focus()
    page.keyboard.type("50")
    page.get_by_label("All other settings").focus()
    page.keyboard.type("secagg=none")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/planned")
    assert "This plan asks the hospitals nothing." in page.inner_text("main")
    coordinator.leaves = {"awaiting.txt": "St. Mary"}
    page.get_by_label("The name of the run").fill("by hand")
    page.get_by_label("The name of the run").press("Enter")
    page.wait_for_url("**/start")
    assert "fusegen with 2 hospitals" in page.get_by_role("status").inner_text()
    page.get_by_role("link", name="Look at the run").press("Enter")
    page.wait_for_url("**/run?name=by+hand")
    assert "St. Mary" in page.inner_text("dl")
    page.get_by_role("button", name="Cancel this run").press("Enter")
    page.wait_for_url("**/cancel")
    assert "by hand is cancelled" in page.get_by_role("status").inner_text()
    assert page.said == []
    assert all(url.startswith(page.root) for url in page.asked)


def test_the_figures_follow_while_somebody_types(visit):
    page = visit()
    page.goto(f"{page.root}plan")
    page.get_by_label("A guess of the number").fill("300")
    page.get_by_label("ε (privacy").press_sequentially("2")
    page.get_by_text("ε 2 at δ 1e-5 for all answers together").wait_for()
    assert page.locator("#figures table").is_visible()
    assert barriers(page) == ""
    page.get_by_label("ε (privacy").press_sequentially("x")
    page.get_by_text("privacy.epsilon; expected a number").wait_for()
    assert page.said == []


def test_a_report_runs_its_own_script_and_can_reach_nothing(visit):
    page = visit()
    page.goto(f"{page.root}run?name=whole")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the report").click()
    report = opened.value
    report.wait_for_url("**/report?name=whole")
    assert report.evaluate("() => window.opener") is None
    page.asked.clear()
    page.goto(report.url)
    assert page.evaluate("() => window.origin") == "null"
    page.locator("#words").fill("fever")
    assert page.locator("#found li").count() > 0
    with pytest.raises(Exception, match=r"(?i)security|sandbox|denied"):
        page.evaluate("() => document.cookie")
    away = f"fetch({page.root!r}).then(() => 'reached', () => 'refused')"
    assert page.evaluate(f"() => {away}") == "refused"
    assert not page.asked or all(urllib.parse.urlsplit(url).hostname == "127.0.0.1" for url in page.asked)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_check_passes_on_every_page(visit, scheme):
    page = visit(color_scheme=scheme)
    for path in PATHS:
        page.goto(page.root + path)
        assert barriers(page) == ""
    page.get_by_label("A guess of the number").fill("300")
    page.get_by_label("Synthetic texts").fill("100")
    page.get_by_role("button", name="What would it cost?").click()
    page.wait_for_url("**/planned")
    assert page.locator("table").is_visible()
    assert barriers(page) == ""


@pytest.mark.parametrize("pixels", [ZOOMED, 390])
def test_a_phone_and_400_percent_scroll_down_only(visit, unplanned, pixels):
    page = visit()
    page.set_viewport_size({"width": pixels, "height": 740})
    for language in ("fr", "de", "en"):
        page.set_extra_http_headers({"accept-language": language})
        for path in PATHS:
            page.goto(page.root + path)
            assert page.locator("html").get_attribute("lang") == language
            assert width(page) <= pixels, (path, language)
    unplanned["statement"] = "x" * 500
    page.get_by_role("button", name="What would it cost?").click()
    page.wait_for_url("**/planned")
    assert width(page) <= pixels

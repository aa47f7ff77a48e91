"""The page in a real browser: decisions by keyboard, readable by everybody, and nothing asked of any other address.

The browser is what `CHROMIUM` names, or a `chromium` on the path; none is downloaded.
"""

import json

import pytest

from client.approval.entries import approvals
from tests.support.browsing import opened_here
from tests.support.chromium import MARKS, ZOOMED, barriers, visiting, width
from tests.support.federations import plan
from tests.support.held_back import copied, held_back
from tests.support.hospital import opened, sent, spend

pytestmark = MARKS
PATHS = ("", "budget", "limits", "now", "coordinator", "release")


@pytest.fixture
def hospital(trusting):
    """One plan that waits, one that was refused, and a run that spent."""
    opened(trusting, plan(2, purpose="triage"), "pilot-1")
    spend(trusting, "pilot-0")
    return trusting


@pytest.fixture
def visit(chromium, hospital):
    """Open the link as a person does, and watch the page: what it asks for, and what it complains of."""
    with opened_here(hospital) as link, visiting(chromium, link) as entered:
        yield entered


def only(folder):
    (entry,) = approvals(folder / "private")
    return entry


def test_a_person_refuses_reconsiders_and_withdraws_by_keyboard(visit, hospital):
    page = visit()
    assert page.locator(".plan h2").inner_text() == "pilot-1"
    page.get_by_label("Why").focus()
    page.keyboard.type("no purpose")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?done=refused*")
    assert page.get_by_role("status").inner_text().startswith("The plan is refused.")
    assert (only(hospital).decision, only(hospital).reason) == ("refused", "no purpose")
    page.get_by_role("link", name="Look at it again").click()
    page.get_by_role("button", name="Reconsider").click()
    page.wait_for_url("**/?done=approved*")
    assert only(hospital).decision == "approved"
    page.get_by_role("link", name="Look at it again").click()
    page.get_by_role("button", name="Withdraw").click()
    page.wait_for_url("**/?done=refused*")
    assert only(hospital).decision == "refused"
    assert page.said == []
    assert all(url.startswith(page.root) for url in page.asked)


def test_return_in_the_field_for_the_reason_decides_nothing(visit, hospital):
    page = visit()
    page.get_by_label("Why").press("Enter")
    page.get_by_role("button", name="Refuse this plan").click()
    page.wait_for_url("**/?done=refused*")
    (line,) = map(json.loads, (hospital / "private" / "audit.jsonl").read_text().splitlines())
    assert (line["from"], line["to"]) == ("awaiting", "refused")


def test_a_second_browser_cannot_use_the_link_and_knows_no_page(visit, chromium):
    page = visit()
    other = chromium.new_context().new_page()
    assert other.goto(page.root).status == 403
    assert other.get_by_role("heading").inner_text() == "This page is not open to you"
    other.context.close()
    assert page.goto(page.root).status == 200


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_check_passes_on_every_page(visit, hospital, scheme):
    page = visit(color_scheme=scheme)
    for path in PATHS:
        page.goto(page.root + path)
        assert barriers(page) == ""
    control = held_back(hospital)
    page.get_by_label("Synthetic texts: whole path").fill(str(copied(hospital)))
    page.get_by_label("Control records").fill(str(control))
    page.get_by_role("button", name="Look at the texts").click()
    page.wait_for_url("**/look")
    assert "the texts disclose records" in page.get_by_role("alert").inner_text()
    assert barriers(page) == ""


def test_a_file_on_the_browser_s_own_computer_is_sent_looked_at_and_deleted(visit, hospital, tmp_path):
    page = visit()
    page.goto(f"{page.root}release")
    chosen = tmp_path / "synthetic.jsonl"
    chosen.write_text("".join(json.dumps({"text": f"a note of nobody {number}"}) + "\n" for number in range(30)))
    page.get_by_label("Choose synthetic.jsonl").set_input_files(chosen)
    page.get_by_label("Control records").fill(str(held_back(hospital)))
    page.get_by_role("button", name="Look at the texts").click()
    page.wait_for_url("**/look")
    assert "30 texts were compared" in page.inner_text("main")
    assert not (hospital / "private" / "received.jsonl").exists()
    assert page.said == []


@pytest.mark.parametrize("pixels", [ZOOMED, 390])
def test_a_phone_and_400_percent_scroll_down_only(visit, hospital, pixels):
    sent(hospital, "a-run-of-many-hospitals-with-a-long-name-1a2b3c4d5e6f", b'{"text": "a note of nobody"}\n')
    page = visit()
    page.set_viewport_size({"width": pixels, "height": 740})
    for path in PATHS:
        page.goto(page.root + path)
        assert width(page) <= pixels, path


def test_without_scripts_everything_is_there(visit):
    page = visit(java_script_enabled=False)
    page.goto(f"{page.root}budget")
    assert page.locator("svg .stroke").count() == 2
    assert page.get_by_role("link", name="Download all events").is_visible()


def test_the_table_of_limits_is_whole_on_a_phone(visit, hospital):
    page = visit()
    page.set_viewport_size({"width": 390, "height": 740})
    page.goto(f"{page.root}limits")
    hidden = page.evaluate(
        "() => { const t = document.querySelector('.scroll'); return t.scrollWidth - t.clientWidth }"
    )
    assert hidden <= 0
    assert page.locator("td .named").first.is_visible()


def test_a_person_chooses_a_language_and_stays_on_the_page(visit):
    page = visit(locale="en-GB")
    page.goto(f"{page.root}limits")
    page.get_by_role("button", name="DE Deutsch").click()
    page.wait_for_url("**/limits")
    assert page.get_by_role("heading", level=1).inner_text() == "Geltende Grenzen"
    page.goto(page.root)
    assert page.locator("html").get_attribute("lang") == "de"
    assert barriers(page) == ""
    page.get_by_role("button", name="EN English").click()
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.said == []


def test_a_printed_plan_has_its_sheet_and_nothing_to_press(visit):
    page = visit()
    page.get_by_role("link", name="Only this plan").click()
    page.wait_for_url("**/plan?run=pilot-1*")
    page.emulate_media(media="print")
    assert [button for button in page.get_by_role("button").all() if button.is_visible()] == []
    assert not page.get_by_role("navigation").is_visible()
    assert page.locator(".sheet .digest").first.is_visible()
    assert page.get_by_text("All plans").is_hidden()

"""The pages of a coordinator and of three hospitals over real nodes, in a real browser: from a draft to a spent budget.

Nobody types a command but the second hospital, which approves by `caucus-party approve`, as one without a browser does.
`make pictures` makes this walk to take the pictures of both pages for their READMEs.
"""

import json
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from common.versions import CAUCUS
from simulations.laboratory.nodes.deployment import PATIENCE, wait
from tests.support.browsing import served
from tests.support.chromium import MARKS, visiting
from tests.support.deployed import ROOT, Deployment, party
from tests.support.faults import measured, read_run
from tests.support.runs import lines

pytestmark = [pytest.mark.deployment, *MARKS]

SHORT = (
    "method.top=3 method.shots=4 evaluation.metrics=[] "
    "task.records_per_party=16 task.test_records=24 task.public_notes=120"
)
"""The settings of a short run for which the form has no field."""
BUDGET = 5.0
"""The third hospital's lifetime budget: enough for one run, not for two."""


@pytest.fixture(scope="module")
def deployed():
    """Three hospitals with the limits of `init`, in which a person decides; the third has little left to spend."""
    with Deployment(Path(tempfile.mkdtemp(prefix="caucus-"))) as made:
        for number in range(3):
            made.set(number, approval="manual")
        made.set(2, lifetime_epsilon=BUDGET)
        made.up()
        yield made


@pytest.fixture(scope="module")
def pages(deployed, chromium):
    """The pages of the coordinator, the first hospital and the third, each entered by its own link."""
    programs = (
        (deployed.here, "server.command"),
        (deployed.at(0), "client.command"),
        (deployed.at(2), "client.command"),
    )
    with ExitStack() as stack:
        links = [stack.enter_context(served(*program)) for program in programs]
        entered = [stack.enter_context(visiting(chromium, link))() for link in links]
        for page in entered:
            page.set_default_timeout(1000 * PATIENCE)  # it answers a form once Flower has done its part
        yield entered


def begun(page, name):
    """Draft a short run on the coordinator's page, and start it."""
    page.goto(page.root)
    page.get_by_role("link", name="Draft a new run").click()
    for label, value in (("ε (privacy", "4"), ("Synthetic texts", "60"), ("Rounds, or auto", "2"), ("A guess", "48")):
        page.get_by_label(label).fill(value)
    page.get_by_label("What for").fill("a test of triage by texts of no patient")
    page.get_by_label("For whom").fill("University Hospital, department of informatics")
    page.get_by_label("All other settings").fill(SHORT)
    page.get_by_role("button", name="What would it cost?").click()
    page.wait_for_url("**/planned")
    page.get_by_label("The name of the run").fill(name)
    page.get_by_role("button", name="Start this run").click()
    page.wait_for_url("**/start")
    page.get_by_role("link", name="Look at the run").click()


def resumed(page, name):
    page.goto(f"{page.root}run?name={name}")
    page.get_by_role("button", name="Resume this run").click()
    page.wait_for_url("**/resume")
    page.get_by_role("link", name="Look at the run").click()


def ended(page):
    """Load the page of a run again until it is over; return what it says of it."""

    def over():
        page.reload()
        said = page.inner_text("main")
        return said if "Load this page again" not in said else ""

    return wait(over, "the run has ended", every=1)


def decided(page, button, reason=""):
    page.goto(page.root)
    if button == "Reconsider":
        page.get_by_role("link", name="Look at it again").click()
    page.get_by_label("Why").fill(reason)
    page.get_by_role("button", name=button).click()
    page.wait_for_url("**/?done=*")


def pictured(page, file):
    """Store the top of a page as a README's picture, if `make pictures` wants it."""
    if os.environ.get("PICTURES"):
        page.screenshot(path=ROOT / file, clip={"x": 0, "y": 0, "width": 1280, "height": 680})


def decisions(deployed, number, run):
    """Return what a hospital's audit log has of decisions about a run: from what, to what, why."""
    audit = (deployed.at(number) / "private" / "audit.jsonl").read_text().splitlines()
    found = [line for line in map(json.loads, audit) if "request" not in line and line["run"] == run]
    assert all(line["by"] and line["when"] for line in found)
    return [(line["from"], line["to"], line["reason"]) for line in found]


def test_a_run_is_planned_decided_and_made_on_pages_until_a_budget_is_spent(deployed, pages):
    begin = time.monotonic()
    coordinator, first, third = pages

    begun(coordinator, "pilot")
    assert "Hospital 0, Hospital 1" in ended(coordinator)
    first.goto(first.root)
    pictured(first, ".github/hospital.png")
    decided(first, "Approve")
    assert "approved:" in party("approve", deployed.at(1), "--yes")
    decided(third, "Refuse this plan", "no purpose of ours")
    resumed(coordinator, "pilot")
    said = ended(coordinator)
    assert "Ask Hospital 2" in said
    assert "no purpose of ours" not in said  # the reason is the hospital's own

    # A second run is within the third hospital's budget until the first one is answered.
    begun(coordinator, "another")
    assert "awaiting approval" in ended(coordinator)
    third.goto(third.root)
    assert third.locator(".plan .banner").count() == 0

    decided(third, "Reconsider", "it has one")
    resumed(coordinator, "pilot")
    assert "2 of 2" in ended(coordinator)
    pictured(coordinator, ".github/coordinator.png")
    assert len(lines(deployed.result("pilot"), "synthetic.jsonl")) == 60
    pilot = read_run(deployed, "pilot")
    assert decisions(deployed, 0, pilot) == decisions(deployed, 1, pilot) == [("awaiting", "approved", "")]
    changed_its_mind = [("awaiting", "refused", "no purpose of ours"), ("refused", "approved", "it has one")]
    assert decisions(deployed, 2, pilot) == changed_its_mind

    deployed.coordinator("send", deployed.here, "pilot")
    first.goto(f"{first.root}release")
    offered = first.get_by_label("The release of a run").inner_text()
    assert pilot in offered
    assert "60 texts" in offered
    coordinator.get_by_role("link", name="Hospitals").click()
    assert coordinator.inner_text("table").count(CAUCUS) == 3
    coordinator.goto(coordinator.root)

    third.goto(third.root)
    third.locator("details.beyond > summary").click()
    assert third.get_by_role("button", name="Approve").count() == 0
    resumed(coordinator, "another")
    said = ended(coordinator)
    assert "awaiting approval" in said  # the coordinator does not learn which limit, nor that there is one

    coordinator.get_by_role("link", name="All runs").click()
    coordinator.get_by_role("link", name="pilot").click()
    with coordinator.expect_popup() as beside:
        coordinator.get_by_role("link", name="Open the report").click()
    assert "a test of triage by texts of no patient" in beside.value.inner_text("body")
    assert [page.said for page in pages] == [[], [], []]
    measured("a run drafted, decided and made on pages, and another beyond a budget", begin)

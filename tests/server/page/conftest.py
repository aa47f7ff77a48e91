"""The coordinator's page, in a folder with two hospitals."""

import pytest

from server.page import drafts
from server.page.app import coordinator_page
from tests.support.browsing import Browser


@pytest.fixture
def browser(flower):
    """A browser that has entered the page."""
    entered = Browser(flower.folder, coordinator_page)
    entered.enter()
    return entered


@pytest.fixture
def unplanned(monkeypatch):
    """The facts of a plan that was not made, since it takes seconds."""
    facts = {
        "planned_epsilon": 4.0,
        "adjacency": {"unit": "sample"},
        "party_epsilon": 5.0,
        "released_guesses": {"right": 67.82},
        "delta": 1e-5,
        "expected_records": None,
        "advice": [],
        "queries": [],
        "forecast": {"texts": 1, "model_calls": 2, "input_tokens": 3, "output_tokens": 4, "cost": None},
    }
    monkeypatch.setattr(drafts, "forwards", lambda _: (None, facts))
    return facts

"""The coordinator's page, in a folder with two hospitals."""

import pytest

from server.page.app import coordinator_page
from tests.support.browsing import Browser


@pytest.fixture
def browser(flower):
    """A browser that has entered the page."""
    entered = Browser(flower.folder, coordinator_page)
    entered.enter()
    return entered

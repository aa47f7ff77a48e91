"""The coordinator's page, in a folder with two hospitals."""

import pytest

from server.page.app import coordinator_page
from tests.support.browsing import Browser
from tests.support.flower import coordinated


@pytest.fixture
def flower(tmp_path, monkeypatch, capsys):
    """A coordinator with two hospitals, by its Flower."""
    made = coordinated(tmp_path / "coordinator", monkeypatch)
    capsys.readouterr()
    return made


@pytest.fixture
def browser(flower):
    """A browser that has entered the page."""
    entered = Browser(flower.folder, coordinator_page)
    entered.enter()
    return entered

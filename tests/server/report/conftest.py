"""The folder of a run whose report is written."""

import pytest

from tests.support.documents import write_run


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run")

"""Real models that were fetched on this machine."""

import pytest

from common.errors import ConfigError
from common.models import catalogue


def fetched(name):
    """Return the folder of a model of the catalogue; skip the test without it."""
    try:
        return catalogue.folder(name)
    except ConfigError:
        pytest.skip(f"the model {name} is not on this machine: make models")

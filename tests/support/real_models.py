"""Real models that have been fetched to this machine."""

import pytest

from common.errors import ConfigError
from common.models import catalogue


def fetched(name):
    """Return the folder of a model in the catalogue; skip the test if the model has not been fetched."""
    try:
        return catalogue.folder(name)
    except ConfigError:
        pytest.skip(f"the model {name} is not on this machine: make models")

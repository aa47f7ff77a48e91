"""`caucus-coordinator models`: fetch language models and encoders."""

from common.models.catalogue import PURPOSES
from common.models.fetch import add_models
from common.system.commands import Commands


def register(commands: Commands) -> None:
    """Add the `models` command."""
    add_models(commands, program="caucus-coordinator", purposes=PURPOSES)

"""`caucus-party models`: fetch the encoder of real runs, and other models by name."""

from common.models.catalogue import ENCODER
from common.models.fetch import add_models
from common.system.commands import Commands


def register(commands: Commands) -> None:
    """Add the `models` command."""
    add_models(commands, program="caucus-party", purposes=(ENCODER,))

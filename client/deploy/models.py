"""`caucus-party models`: fetch the encoder of real runs, and other models by name."""

import argparse

from common.models.catalogue import ENCODER
from common.models.command import add_models


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the `models` command."""
    add_models(commands, program="caucus-party", purposes=(ENCODER,))

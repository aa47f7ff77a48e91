"""`caucus-coordinator models`: fetch language models and encoders."""

import argparse

from common.models.catalogue import PURPOSES
from common.models.command import add_models


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the `models` command."""
    add_models(commands, program="caucus-coordinator", purposes=PURPOSES)

"""Both command lines import what a command needs, and no more."""

import argparse
from importlib import import_module

import pytest

from client import command as party
from server import command as coordinator


@pytest.mark.parametrize("command", [party, coordinator])
def test_each_module_adds_the_commands_that_it_is_listed_with(command):
    for module, names in command.MODULES.items():
        commands = argparse.ArgumentParser().add_subparsers()
        import_module(module).register(commands)
        assert tuple(commands.choices) == names

"""The three command lines: they import what a command needs and no more, and share exit codes and `--version`."""

import argparse
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest
from hydra.errors import HydraException, InstantiationException

from client import command as party
from common import errors
from common.secagg.messages import VERSION
from common.system.commands import exit_code
from server import command as coordinator
from server.failure import WRONG_SETTINGS
from tests.support.requirements import PROJECT

PROGRAMS = PROJECT["scripts"]
WRONG = {
    errors.ConfigError,
    errors.MissingPackageError,
    errors.DataError,
    errors.PlanError,
    errors.CheckpointError,
    errors.FolderInUseError,
}


@pytest.mark.parametrize("command", [party, coordinator])
def test_each_module_adds_the_commands_that_it_is_listed_with(command):
    for module, names in command.MODULES.items():
        commands = argparse.ArgumentParser().add_subparsers()
        import_module(module).register(commands)
        assert tuple(commands.choices) == names


def every(kind):
    return [kind, *(subclass for below in kind.__subclasses__() for subclass in every(below))]


@pytest.mark.parametrize("kind", every(errors.CaucusError))
def test_wrong_input_ends_with_2_a_coordinator_that_was_not_reached_with_3_and_every_other_error_with_1(kind):
    if kind.__module__ == "common.errors":
        assert exit_code(kind("x")) == (2 if kind in WRONG else 3 if kind is errors.UnreachedError else 1)


def test_an_error_that_hydra_wrapped_ends_with_its_own_code():
    assert exit_code(HydraException("x"), WRONG_SETTINGS) == 2
    assert exit_code(OSError("x"), WRONG_SETTINGS) == 1
    for cause, code in ((errors.ConfigError("x"), 2), (errors.ProviderError("x"), 1)):
        wrapped = InstantiationException("x")
        wrapped.__cause__ = cause
        assert exit_code(wrapped, WRONG_SETTINGS) == code


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        *(
            (party, arguments)
            for arguments in (
                "init NEW --name x --records NONE --invitation NONE",
                "init NEW --name x --records NONE --invitation FILE",
                "roster NONE FILE",
                "check NONE",
                "check NONE --offline --json",
                "start NONE",
                "status NONE",
                "approve NONE",
                "audit NONE FILE --control FILE",
                "ledger show NONE",
                "ledger verify NONE",
                "ledger export NONE",
            )
        ),
        *(
            (coordinator, arguments)
            for arguments in (
                "init NEW --address nowhere",
                "init NEW --address localhost:1 --superlink-port 0",
                "renew NONE",
                "serve NONE",
                "enrol NONE FILE",
                "remove NONE name",
                "run NONE name",
                "resume NONE name",
                "status NONE",
                "evaluate NONE --test FILE",
                "report NONE",
                "plan no.such=1",
                "plan federation.parties=0",
                "plan federation.timeout=null",
                "check no.such=1",
                "plan --folder NONE",
                "steer NONE",
                "steer NONE privacy.epsilon=1",
                "steer NONE --resume",
            )
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_what_is_missing_or_wrong_on_the_command_line_is_one_line_and_the_code_2(command, arguments, tmp_path, capsys):
    (tmp_path / "file").write_text("{}")
    paths = {"NONE": tmp_path / "none", "NEW": tmp_path / "new", "FILE": tmp_path / "file"}
    assert command.main([str(paths.get(word, word)) for word in arguments.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{'caucus-party' if command is party else 'caucus-coordinator'}: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert "Errno" not in err


@pytest.mark.parametrize("command", [party, coordinator])
@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["status"], ["status", "--no-such-flag", "x"]])
def test_wrong_usage_ends_with_2(command, arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert "usage: " in capsys.readouterr().err


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_says_its_versions_at_once(name):
    module, function = PROGRAMS[name].split(":")
    script = f"""
import sys
from {module} import {function}
sys.argv = ["{name}", "--version"]
try:
    code = {function}()
except SystemExit as ended:
    code = ended.code
print(code or 0, sorted({{"torch", "flwr", "scipy", "transformers", "ray"}} & set(sys.modules)))
"""
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    versions = f"caucus {version(PROJECT['name'])}, protocol {VERSION}, flwr {version('flwr')}"
    assert completed.stdout == f"{name}: {versions}\n0 []\n"
    assert completed.stderr == ""

import sys

import pytest

from common.errors import ConfigError
from common.system import extras
from common.system.extras import how_to_install, needs, program_needs


def test_what_is_installed_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    needs("sound", "wave", extra="transformers")
    assert "wave" not in sys.modules


def test_the_first_package_that_is_missing_is_named_with_the_command_that_installs_it():
    with pytest.raises(ConfigError) as error:
        needs("the encoder", "json", "no_such_package", "nor_this_one", extra="transformers")
    assert error.value.what == "the encoder"
    assert "package no_such_package;" in str(error.value)
    assert error.value.do.endswith("make coordinator EXTRAS=[transformers]")


def test_a_program_ends_with_that_line_and_the_code_of_wrong_input(capsys):
    program_needs("caucus-party", "json", extra="transformers")
    with pytest.raises(SystemExit) as ended:
        program_needs("caucus-party", "no_such_package", extra="transformers")
    assert ended.value.code == 2
    assert "package no_such_package" in capsys.readouterr().err


@pytest.mark.parametrize("side", ["hospital", "coordinator"])
def test_an_extra_is_installed_by_the_command_of_the_installation_that_is_there(side, monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: (name == "hydra" and side == "coordinator") or None)
    assert how_to_install("parquet").endswith(f": make {side} EXTRAS=[parquet]")
    assert how_to_install("coordinator").endswith(": make coordinator")

import importlib
import sys
import threading

import pytest

from common.errors import ConfigError
from common.system import extras
from common.system.extras import blocked_import, how_to_install, needs, program_needs


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


NAME = "caucus_test_of_an_optional_package"


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield NAME
    sys.modules.pop(NAME, None)


def test_a_package_is_missing_within_and_there_afterwards(package):
    finders = list(sys.meta_path)
    with blocked_import(package):
        with pytest.raises(ModuleNotFoundError, match=NAME):
            importlib.import_module(package)
        importlib.import_module("colorsys")  # others are found
    assert sys.meta_path == finders
    importlib.import_module(package)


def test_a_package_that_is_loaded_stays(package):
    loaded = importlib.import_module(package)
    with blocked_import(package):
        assert importlib.import_module(package) is loaded


def test_other_threads_find_it(package):
    modules = []
    with blocked_import(package):
        other = threading.Thread(target=lambda: modules.append(importlib.import_module(package)))
        other.start()
        other.join()
    assert [module.__name__ for module in modules] == [NAME]

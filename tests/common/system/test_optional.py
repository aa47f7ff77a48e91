import importlib
import sys
import threading

import pytest

from common.system.optional import blocked_import

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

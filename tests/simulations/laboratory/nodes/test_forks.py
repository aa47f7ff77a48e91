import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulations.laboratory.nodes.forks import Forks
from simulations.laboratory.nodes.usage import proportional_set


@pytest.fixture(scope="module")
def forks():
    """A process that has imported one command of the standard library."""
    with Forks("base64:main") as started:
        yield started


@pytest.fixture
def run(forks, tmp_path):
    return lambda *arguments, **environment: forks.run(
        "base64:main", *arguments, folder=tmp_path, environment=environment
    )


def test_a_forked_command_has_its_own_arguments_folder_and_output(run, tmp_path):
    (tmp_path / "file").write_text("aaa")
    assert run("-e", "file") == "YWFh\n"


def test_a_command_that_fails_is_an_error_with_what_it_said(run):
    with pytest.raises(subprocess.CalledProcessError) as error:
        run("-e", "missing")
    assert error.value.returncode == 1
    assert "FileNotFoundError" in error.value.output
    with pytest.raises(subprocess.CalledProcessError) as error:
        run("--unknown")
    assert error.value.returncode == 2


REMEMBERED = []


def remember():
    REMEMBERED.append(str(os.getpid()))


def recall():
    sys.stdout.write(REMEMBERED[0])


def test_what_the_first_function_leaves_in_memory_is_there_in_all_forks(tmp_path):
    with Forks(f"{__name__}:recall", first=f"{__name__}:remember") as forks:
        outputs = {forks.run(f"{__name__}:recall", folder=tmp_path, environment={}) for _ in range(2)}
        assert outputs == {str(forks.process)}


def test_the_end_of_the_process_is_that_of_its_children(tmp_path):
    with Forks("signal:pause") as forks:
        waiting = forks.start("signal:pause", folder=tmp_path, environment={}, log=tmp_path / "log")
        assert Path(f"/proc/{waiting}").exists()
        assert 0 < proportional_set([waiting]) < 2**26
    assert not Path(f"/proc/{waiting}").exists()

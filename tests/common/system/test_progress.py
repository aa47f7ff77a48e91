"""Long work moves on a terminal by itself, does not mix with the log, and leaves nothing in pipes."""

import io
import logging
import time
from functools import partial
from types import SimpleNamespace

import pytest
from tqdm import tqdm

from common.system import progress as module
from common.system.progress import Console, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Standard error as a terminal, on which a second passes fast."""
    shown = Terminal()
    monkeypatch.setattr(module, "SECONDS", 0.02)
    monkeypatch.setattr(module, "tqdm", partial(tqdm, disable=False, file=shown))
    module.tqdm.external_write_mode = tqdm.external_write_mode
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=shown))
    return shown


def wait(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_work_without_steps_has_a_clock_that_moves(terminal):
    with progress("loading the encoder"):
        wait(lambda: terminal.getvalue().count("\rloading the encoder 00:0") > 3)
    assert terminal.getvalue().rpartition("\r")[0].rpartition("\r")[2].strip() == ""  # nothing is left there


def test_work_with_steps_has_a_bar(terminal):
    with progress("embedding", 8) as advance:
        advance(2)
        wait(lambda: "| 2/8 [" in terminal.getvalue())
        advance(6)
        wait(lambda: "| 8/8 [" in terminal.getvalue())


def test_short_work_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 60.0)
    with progress("embedding", 8) as advance:
        advance(8)
    assert terminal.getvalue() == ""


def test_a_pipe_and_a_worker_of_a_sweep_get_nothing(terminal, monkeypatch):
    monkeypatch.setattr(module.multiprocessing, "parent_process", lambda: "the sweep")
    with progress("at work"):
        time.sleep(0.1)
    assert terminal.getvalue() == ""
    pipe = io.StringIO()
    monkeypatch.setattr(module.sys, "stderr", pipe)
    monkeypatch.setattr(module.multiprocessing, "parent_process", lambda: None)
    with progress("at work"):
        time.sleep(0.1)
    assert pipe.getvalue() == ""


def test_an_error_passes_through(terminal):
    with pytest.raises(KeyError), progress("at work"):
        raise KeyError("x")


def test_a_line_of_the_log_begins_where_no_bar_is(terminal):
    console = Console(terminal)
    with progress("at work"):
        wait(lambda: "at work" in terminal.getvalue())
        console.emit(logging.makeLogRecord({"msg": "round 1"}))
    before, _, _ = terminal.getvalue().partition("round 1\n")
    assert before.rpartition("\r")[2].strip() == ""

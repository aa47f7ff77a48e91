"""A long step moves on a terminal by itself, does not mix with the log, and is one line of the log elsewhere."""

import io
import logging
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest
from tqdm import tqdm

from common.system import progress as module
from common.system.progress import EVENTS, Console, progress, shown_without_a_log, warned_once


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Standard error as a terminal, on which a second passes fast."""
    screen = Terminal()
    monkeypatch.setattr(module, "SECONDS", 0.02)
    monkeypatch.setattr(module, "tqdm", partial(tqdm, disable=False, file=screen))
    module.tqdm.external_write_mode = tqdm.external_write_mode
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=screen))
    return screen


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


@pytest.fixture(params=["a pipe", "a worker of a sweep"])
def pipe(request, terminal, monkeypatch):
    """Standard error that gets no bar; a step is long after a moment."""
    monkeypatch.setattr(module, "LONG", 0.02)
    screen = io.StringIO() if request.param == "a pipe" else terminal
    monkeypatch.setattr(module.sys, "stderr", screen)
    monkeypatch.setattr(module.multiprocessing, "parent_process", lambda: None if screen is not terminal else "sweep")
    return screen


def test_without_a_terminal_a_long_step_is_one_line_of_the_log(pipe, caplog):
    caplog.set_level(logging.INFO, "caucus.progress")
    with progress("at work", logged=False), progress("embedding 3,000 texts", 3000) as advance:
        wait(lambda: caplog.messages)
        advance(3000)
    assert caplog.messages == ["embedding 3,000 texts"]
    assert pipe.getvalue() == ""


def test_without_a_terminal_a_short_step_and_a_single_text_leave_nothing(pipe, caplog, monkeypatch):
    caplog.set_level(logging.INFO, "caucus.progress")
    with progress("embedding", 1):
        time.sleep(0.1)
    monkeypatch.setattr(module, "LONG", 60.0)
    with progress("embedding", 3):
        pass
    assert not caplog.messages
    wait(lambda: not any(isinstance(thread, threading.Timer) for thread in threading.enumerate()))


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


@pytest.fixture
def logs():
    """Two logs with one filter."""
    streams = [io.StringIO(), io.StringIO()]
    handlers = [logging.StreamHandler(stream) for stream in streams]
    logger = logging.getLogger("caucus")
    for handler in handlers:
        logger.addHandler(handler)
    with warned_once(*handlers):
        yield streams
    assert not any(handler.filters for handler in handlers)
    for handler in handlers:
        logger.removeHandler(handler)


def test_each_sentence_is_in_each_log_once(logs):
    for party in (1, 1, 2):
        logging.getLogger("caucus.party").warning("party %d has unknown labels", party)
    assert [log.getvalue().splitlines() for log in logs] == [
        ["party 1 has unknown labels", "party 2 has unknown labels"]
    ] * 2


@pytest.mark.parametrize("name", EVENTS)
def test_what_happened_twice_is_told_twice(name, logs):
    for _ in range(2):
        logging.getLogger(name).warning("no reply within 30 s")
        logging.getLogger("caucus.run").error("failed")
    assert [log.getvalue().count("no reply") for log in logs] == [2, 2]
    assert [log.getvalue().count("failed") for log in logs] == [2, 2]


def test_a_command_without_a_log_shows_each_warning_once(capsys, monkeypatch):
    monkeypatch.setattr(logging.root, "handlers", [])
    before = logging.lastResort
    with shown_without_a_log():
        for _ in range(2):
            logging.getLogger("caucus.planning").warning("delta 0.5")
            logging.getLogger("caucus.planning").info("chosen")
    assert logging.lastResort is before
    assert capsys.readouterr().err == "delta 0.5\n"

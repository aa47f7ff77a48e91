"""A warning appears once in a run, in each of its logs; what has another text, or happened again, appears again."""

import io
import logging

import pytest

from common.system.warned_once import EVENTS, WarnedOnce, shown_without_a_log, warned_once


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


def test_the_next_run_warns_again():
    record = logging.makeLogRecord({"name": "py.warnings", "levelno": logging.WARNING, "msg": "no convergence"})
    again = logging.makeLogRecord(record.__dict__)
    one_run = WarnedOnce()
    assert [one_run.filter(record), one_run.filter(again)] == [True, False]
    assert WarnedOnce().filter(again)


def test_a_command_without_a_log_shows_each_warning_once(capsys, monkeypatch):
    monkeypatch.setattr(logging.root, "handlers", [])
    before = logging.lastResort
    with shown_without_a_log():
        for _ in range(2):
            logging.getLogger("caucus.planning").warning("delta 0.5")
            logging.getLogger("caucus.planning").info("chosen")
    assert logging.lastResort is before
    assert capsys.readouterr().err == "delta 0.5\n"

"""What a deployed run leaves in its folder, by the hospitals' names."""

import json
import logging
import os
import stat
import sys
import threading

import pytest

from common.errors import AwaitingError, CheckpointError, DropoutError, RejectedError
from common.phrases import NumberedParty, Phrase, Turnout
from server import failure
from server.failure import is_at_work, lock_folder, logging_to

NAMES = ("St. Mary", "party 0", "St. Luke")


def test_log_and_last_words_have_the_names(tmp_path):
    def work():
        assert (tmp_path / "lock").read_text() == str(os.getpid())
        logging.getLogger("caucus.network").warning("%s: no reply", NumberedParty(2))
        raise DropoutError("too few parties", got=Phrase("2 (", NumberedParty(0), " did not answer)"))

    with pytest.raises(DropoutError), logging_to(tmp_path, NAMES):
        work()
    said, log = (tmp_path / "error.txt").read_text(), (tmp_path / "run.log").read_text()
    assert "(St. Mary " in said
    assert said in log
    assert "St. Luke: " in log


def test_what_each_absent_hospital_did_is_kept_by_its_name(tmp_path):
    with pytest.raises(DropoutError), logging_to(tmp_path, NAMES):
        raise DropoutError("too few", expected="at least 3", got=Turnout(1, {2: "is away", 0: "is ill"}), do="Wait")
    facts = json.loads((tmp_path / failure.ABSENT).read_text())
    assert facts.keys() == {"problem", "absent", "advice"}
    assert (facts["absent"], facts["advice"]) == ({"St. Mary": "is ill", "St. Luke": "is away"}, "Wait")
    assert "(" not in facts["problem"]
    assert all(f"{name} {did}" in (tmp_path / "error.txt").read_text() for name, did in facts["absent"].items())


@pytest.mark.parametrize(("kind", "rejected"), [(DropoutError, False), (RejectedError, True)])
def test_a_run_that_a_hospital_rejects_leaves_a_note_that_to_resume_does_not_help(kind, rejected, tmp_path):
    with pytest.raises(kind), logging_to(tmp_path, NAMES):
        raise kind("too few parties")
    assert (tmp_path / failure.REJECTED).exists() == rejected


def test_a_run_that_awaits_approval_has_not_failed(tmp_path):
    with logging_to(tmp_path, NAMES):
        raise AwaitingError({2, 0})
    assert (tmp_path / "awaiting.txt").read_text().splitlines() == ["St. Mary", "St. Luke"]
    assert not (tmp_path / "error.txt").exists()
    log = (tmp_path / "run.log").read_text()
    assert "INFO caucus:" in log
    assert "ERROR" not in log


def test_a_run_that_flower_ends_says_so(tmp_path):
    with pytest.raises(SystemExit), logging_to(tmp_path):
        sys.exit(1)  # as Flower does on a signal
    assert "Flower" in (tmp_path / "error.txt").read_text()


def test_the_text_of_a_library_s_error_is_kept_from_others(tmp_path):
    with pytest.raises(RuntimeError), logging_to(tmp_path):
        raise RuntimeError("401 for key sk-ant-abc")
    kept = tmp_path / failure.TRACEBACK
    assert "sk-ant-abc" in kept.read_text()
    assert "sk-ant-abc" not in (tmp_path / "run.log").read_text() + (tmp_path / "error.txt").read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_one_process_at_a_time_works_in_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(failure, "PATIENCE", 0.0)
    assert not is_at_work(tmp_path)
    with logging_to(tmp_path):
        assert is_at_work(tmp_path)
        with pytest.raises(CheckpointError), logging_to(tmp_path):
            pass
    assert not is_at_work(tmp_path)


def test_a_lock_that_is_held_for_a_moment_is_waited_for(tmp_path):
    held = lock_folder(tmp_path)
    assert lock_folder(tmp_path) is None
    threading.Timer(0.1, held.close).start()
    lock = lock_folder(tmp_path, patience=30.0)
    assert lock is not None
    lock.close()

"""Ctrl-C and SIGTERM while a run or a sweep works: one line, an exit code, and what is needed to go on."""

import os
import signal
import subprocess
import sys

import pytest

from server import run as loop
from server.llm.builtin.model import BuiltinModel
from simulations import launch
from simulations import run as simulation
from simulations.command import Terminated, exit_code, stoppable
from tests.support.lanes import slow
from tests.support.runs import SMALL, command, read, texts, tiny, warm

SHORT = [*SMALL, "privacy.epsilon=.inf"]


@pytest.fixture(autouse=True)
def heard():
    """A test run in the background ignores Ctrl-C, and its children would, too."""
    warm()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def signals(monkeypatch, owner, name, number, *, call=1):
    """Send this process a signal at the call of a function, counted from 1."""
    inner, calls = getattr(owner, name), []

    def wrapped(*args, **kwargs):
        calls.append(name)
        if len(calls) == call:
            os.kill(os.getpid(), number)
        return inner(*args, **kwargs)

    monkeypatch.setattr(owner, name, wrapped)


@pytest.mark.parametrize(
    ("place", "number", "message"),
    [
        ((BuiltinModel, "generate", 1), signal.SIGINT, "stopped before the end of round 1"),
        slow((loop, "track", 2), signal.SIGINT, "stopped; rounds done: 2"),
        ((loop, "track", 2), signal.SIGTERM, "stopped; rounds done: 2"),
        slow((loop.small_model, "metrics", 1), signal.SIGINT, "stopped; rounds done: 3"),
        slow((simulation, "compare", 1), signal.SIGTERM, "stopped; rounds done: 3"),
    ],
    ids=["round 1", "round 2", "SIGTERM", "evaluation", "comparison"],
)
def test_a_run_that_is_stopped_says_where_and_how_it_goes_on(place, number, message, tmp_path, monkeypatch):
    owner, name, call = place
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        signals(patch, owner, name, number, call=call)
        ended, output = command(tmp_path, *SHORT, f"hydra.run.dir={run}")
    assert ended == 128 + number
    said = output.splitlines()[-1]
    assert said.startswith(f"caucus-simulate: {message}; ")
    assert said.endswith(f"caucus-simulate --resume {run} goes on")
    assert "Traceback" not in output
    if name == "track":
        ended, output = command(tmp_path, "--resume", str(run))
        assert ended == 0, output
        assert read(run, "run.json")["status"] == "complete"
        assert texts(run) == texts(tiny(tmp_path / "undisturbed", *SHORT))


def test_before_anything_was_written_there_is_nothing_to_go_on_with(tmp_path, monkeypatch):
    signals(monkeypatch, launch, "typed_settings", signal.SIGINT)
    ended, output = command(tmp_path, *SHORT, f"hydra.run.dir={tmp_path}/run")
    assert (ended, output.splitlines()[-1]) == (130, "caucus-simulate: stopped before the run began")


@pytest.mark.slow
def test_a_sweep_says_which_runs_are_done_and_goes_on_with_the_others(tmp_path, monkeypatch):
    sweep, short = tmp_path / "sweep", [*SMALL, "method.rounds=2"]
    with monkeypatch.context() as patch:
        signals(patch, loop, "track", signal.SIGINT, call=4)  # two a run, and one after its last round
        ended, output = command(tmp_path, "--multirun", *short, "privacy.epsilon=1,2,3", f"hydra.sweep.dir={sweep}")
    assert ended == 130
    assert any(
        "run 2 of 3: " in line and line.endswith(f"privacy.epsilon=2 → {sweep}/1") for line in output.splitlines()
    )
    said = output.splitlines()[-1]
    assert said.startswith("caucus-simulate: stopped: run 1 of 3 done; ")
    assert said.endswith(f"caucus-simulate --resume {sweep} goes on")
    assert "Traceback" not in output
    before = (sweep / "0" / "run.json").read_bytes(), read(sweep / "1", "run.json")["run"]
    ended, output = command(tmp_path, "--resume", str(sweep))
    assert ended == 0, output
    assert "complete" in output
    assert ((sweep / "0" / "run.json").read_bytes(), read(sweep / "1", "run.json")["run"]) == before
    assert [read(sweep / str(number), "privacy.json")["epsilon"] for number in range(3)] == [1, 2, 3]
    assert len(read(sweep, "table.json")["rows"]) == 3


def test_a_parallel_sweep_stops_too(tmp_path):
    arguments = ["--multirun", *SMALL, "privacy.epsilon=1,2", f"hydra.sweep.dir={tmp_path}/sweep"]
    arguments += ["hydra/launcher=joblib", "hydra.launcher.n_jobs=1"]
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script += "from simulations.command import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "run 1 of 2: " in line:
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it as well
    assert process.returncode == 130, lines
    assert lines[-1] == f"caucus-simulate: stopped: no run is done; caucus-simulate --resume {tmp_path}/sweep goes on\n"
    assert "Traceback" not in "".join(lines)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_second_signal_is_the_system_s_and_handlers_come_back(number, code):
    earlier = signal.getsignal(number)
    with stoppable():
        assert signal.getsignal(number) is not earlier
    assert signal.getsignal(number) is earlier
    try:
        with pytest.raises(KeyboardInterrupt) as stop, stoppable():
            os.kill(os.getpid(), number)
        assert exit_code(stop.value) == code
        assert isinstance(stop.value, Terminated) == (number == signal.SIGTERM)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, earlier if signal_number == number else signal.default_int_handler)


def test_what_was_ignored_from_the_start_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stoppable():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

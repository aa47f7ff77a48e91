import json
import sys
from pathlib import Path

from simulations.laboratory.benchmarks import startup


def test_the_times_of_a_run_are_those_at_its_lines(monkeypatch, tmp_path, capsys):
    clock = iter([1.0, 4.0, 9.0])

    def run():
        for line in ("reading", "round 1 of 2: 1 candidate", "evaluating 2 texts", "done: report.html"):
            (sys.stderr if "round" in line else sys.stdout).write(f"{line}\n")

    monkeypatch.setattr("simulations.command.main", run)
    monkeypatch.setattr(startup.time, "process_time", lambda: next(clock))
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(getattr(sys, name), "write", getattr(sys, name).write)  # as it was, afterwards
    startup.probe(str(tmp_path / "noted.json"))
    assert json.loads((tmp_path / "noted.json").read_text()) == {
        "round 1 of ": 1.0,
        "evaluating ": 4.0,
        "done: ": 9.0,
    }
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_ratios_are_to_the_import_of_torch(monkeypatch, capsys):
    seconds = {startup._PYTHON: 0.5, startup._HELP: 1.0, startup._TORCH: 2.0, startup._PLAN: 6.0}
    calls = []

    def cpu(arguments):
        if arguments in seconds:
            return seconds[arguments]
        calls.extend(arguments[3:])
        noted = {startup.ROUND: 8.0, startup.EVALUATION: 20.0, startup.DONE: 30.0}
        Path(arguments[2]).write_text(json.dumps(noted))
        return 31.0

    monkeypatch.setattr(startup, "cpu", cpu)
    ratios = {ratio.name: ratio for ratio in startup.main(["method.samples=3"])}
    assert {name: ratio.value for name, ratio in ratios.items()} == {
        "--help": 2,
        "plan": 3,
        "round 1": 4,
        "evaluation": 5,
        "demo": 15,
    }
    assert ratios["--help"].to == "bare Python"
    assert all(ratio.goal for ratio in ratios.values())
    assert calls[0] == "method.samples=3"
    assert "10.00 s" in capsys.readouterr().out

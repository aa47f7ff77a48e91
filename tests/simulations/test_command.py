"""`caucus-simulate` before anything heavy: its help, its first line, and what these import."""

import io
import json
import os
import subprocess
import sys

import pytest

from simulations import command
from tests.support import runs
from tests.support.lanes import slow

HEAVY = ("torch", "numpy", "hydra", "flwr", "omegaconf", "argparse")


@pytest.mark.parametrize("argument", ["--help", "-h"])
def test_help_has_examples_and_options_and_imports_nothing(argument):
    script = f"""
import sys
sys.argv = ["caucus-simulate", "method=wasp", "{argument}"]
from simulations.command import main
main()
print(sorted(set({HEAVY}) & set(sys.modules)))
"""
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert completed.stderr == ""
    text, imported = completed.stdout.rsplit("\n", 2)[:2]
    assert imported == "[]"
    for named in ("--resume FOLDER", "--multirun", "--config-dir DIR", "--cfg job", "--version", "examples:", "130"):
        assert named in text


def launched(monkeypatch, capsys, *arguments):
    """What is on standard error when the heavy part begins."""
    seen = []

    def begun(_):
        seen.append(capsys.readouterr())

    monkeypatch.setattr("simulations.launch.launch_command", begun)
    monkeypatch.setattr(sys, "argv", ["caucus-simulate", *arguments])
    command.main()
    return seen[0]


def test_the_first_line_comes_before_what_takes_long(monkeypatch, capsys):
    assert launched(monkeypatch, capsys, "--cfg", "job") == ("", "")  # what only prints settings says nothing else
    captured = launched(monkeypatch, capsys, "method=wasp")
    assert (captured.out, captured.err.count("\n")) == ("", 1)


def test_only_its_owner_can_open_what_the_command_makes(monkeypatch, tmp_path):
    monkeypatch.setattr("simulations.launch.launch_command", lambda _: (tmp_path / "run").mkdir())
    monkeypatch.setattr(sys, "argv", ["caucus-simulate"])
    before = os.umask(0o022)
    command.main()
    assert os.umask(before) == 0o022
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_settings_are_composed_and_checked_without_anything_heavy(tmp_path):
    script = """
import sys
sys.argv = ["caucus-simulate", "method.sampels=3"]
from simulations.command import main
try:
    main()
except SystemExit as ended:
    print(ended.code, sorted({"torch", "flwr", "scipy", "sklearn", "transformers", "ray"} & set(sys.modules)))
"""
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert completed.stdout == "2 []\n"
    assert completed.stderr.splitlines()[-1].endswith("method.samples?")


def test_a_run_begins_without_what_its_evaluation_needs_loads_no_torch_and_multiplies_in_one_thread(tmp_path):
    script = f"""
import os, sys
late = {{"sklearn", "pandas", "transformers", "sentence_transformers", "spacy", "presidio_analyzer", "ot", "mauve"}}
begun, early = "{tmp_path}/run/config.yaml", set()
sys.addaudithook(
    lambda event, words: event == "import" and words[0] in late and not os.path.exists(begun) and early.add(words[0])
)
from simulations.command import main
main()
from threadpoolctl import threadpool_info
heavy = {{"torch", "transformers", "networkx", "ray", "openai", "anthropic"}} & set(sys.modules)
pools = {{pool["num_threads"] for pool in threadpool_info() if pool.get("threading_layer") == "pthreads"}}
print(os.path.exists(begun), sorted(early), "sklearn" in sys.modules, sorted(heavy), pools)
"""
    settings = ["method.samples=40", "method.rounds=2", "task.public_notes=100", "task.records_per_party=20"]
    command = [sys.executable, "-c", script, *settings, "task.test_records=40", f"hydra.run.dir={tmp_path}/run"]
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    completed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert completed.stdout.splitlines()[-1] == "True [] True [] {1}"
    figures = json.loads((tmp_path / "run/metrics.json").read_text())
    for group, name in (("fidelity", "mauve"), ("fidelity", "sinkhorn"), ("privacy", "personal_information")):
        assert figures[group][name]["value"] is not None


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        ("a=1 --config-dir mine b=2", "--config-dir mine a=1 b=2"),
        ("a=1 --config-dir=mine b=2 -m", "--config-dir=mine -m a=1 b=2"),
        ("--multirun a=1,2 --config-dir mine ~b c=3", "--multirun --config-dir mine a=1,2 ~b c=3"),
        ("a=1 --cfg job --resolve a=1", "--cfg job --resolve a=1 a=1"),
    ],
)
def test_settings_and_options_come_in_any_order(arguments, passed, monkeypatch):
    from hydra._internal.utils import get_args_parser

    from simulations import launch

    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    monkeypatch.setattr(sys, "argv", ["caucus-simulate"])
    monkeypatch.setattr(launch, "_composed", lambda: None)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    launch.launch_command(arguments.split())
    assert sys.stdout.errors == "json"
    assert sys.argv[1:] == passed.split()
    get_args_parser().parse_args()  # it refuses settings on both sides of an option


@pytest.mark.parametrize("wrong", ["client.limits.max_top=0", "task.test=/no/such.csv"])
def test_a_start_that_fails_leaves_no_folder_that_was_not_there(wrong, tmp_path):
    settings = [*runs.labelled(tmp_path), wrong]
    new = tmp_path / "made" / "run"
    assert runs.command(tmp_path, *settings, f"hydra.run.dir={new}")[0] == 2
    assert not new.parent.exists()
    (tmp_path / "run").mkdir()
    assert runs.command(tmp_path, *settings, f"hydra.run.dir={tmp_path}/run")[0] == 2
    assert (tmp_path / "run" / "run.log").exists()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["method=null"], "method;"),
        (["hydra.run.dir=file/x"], "hydra.run.dir;"),
        slow(["hydra.run.dir=file"], "hydra.run.dir;"),
        (["--multirun", "hydra.sweep.dir=file/x", "privacy.epsilon=1,4"], "hydra.sweep.dir;"),
    ],
)
def test_what_hydra_ends_with_a_traceback_is_one_line(wrong, named, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    code, output = runs.command(tmp_path, *wrong)
    assert code == 2
    _, last = output.splitlines()
    assert last.startswith(f"caucus-simulate: {named}")

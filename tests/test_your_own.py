"""`server/methods/YOUR_OWN.md` works as written: its files and commands, in a folder outside the repository."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from server.command import main as coordinator
from simulations import Result, simulate
from tests.support.runs import LOSES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "server" / "methods" / "YOUR_OWN.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [line for kind, block in BLOCKS if not kind for line in block.replace("\\\n", " ").splitlines()]
SMALL = ["task.records_per_party=16", "task.test_records=24", "task.public_notes=120", "evaluation.metrics=[]"]


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """The files of the page, in a folder that is the working one and on the path, as `PYTHONPATH=.` says."""
    for kind, block in BLOCKS:
        if kind:
            path = tmp_path / re.fullmatch(r"# (\S+)", block.splitlines()[0])[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("mine", None)


def test_the_last_command_runs_as_typed_and_has_the_method_the_model_and_the_metric(outside):
    typed = COMMANDS[-1].replace("PYTHONPATH=.", f"PYTHONPATH=.:{ROOT}")  # what is installed may be another checkout
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    more = " ".join([*SMALL, "method.samples=40", "hydra.run.dir=run"])
    ended = subprocess.run(
        ["bash", "-c", f"{typed} {more}"],
        env=os.environ | {"PATH": path},
        cwd=outside,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    result = Result.load(outside / "run")
    assert (result.status, set(result.texts.model), len(result.texts)) == ("complete", {"phrases"}, 40)
    assert result.privacy["queries"][0]["kind"] == "votes"
    assert result.privacy["spent"]["queries_asked"] == 1
    words = [len(text.split()) for text in result.texts.text]
    assert result.metrics["own"]["mean_words"]["value"] == pytest.approx(sum(words) / len(words))
    assert "mean words" in (result.folder / "report.html").read_text("utf-8")


def test_the_method_is_planned_and_runs_from_python(outside, capsys):
    words = COMMANDS[0].replace("'", "").split()[2:]
    assert coordinator([*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [(query["name"], query["times"]) for query in facts["queries"]] == [("votes", 1)]
    assert facts["expected_records"] == 900
    assert facts["queries"][0]["signal"]["ratio"] > 0
    assert facts["forecast"]["model_calls"] > 0
    result = simulate(method="nearest", config_dir="conf", overrides=[*SMALL, LOSES], folder="run")
    assert len(result.texts) == 100
    assert result.texts.label.value_counts().tolist() == [25, 25, 25, 25]


def test_a_metric_that_fails_is_reported_and_the_run_whose_epsilon_is_spent_is_complete(outside):
    (outside / "broken.py").write_text("def metric(texts, labels):\n    raise KeyError(texts[0])\n")
    override = "+evaluation.own.broken={_target_: broken.metric, _partial_: true}"
    result = simulate(
        method="nearest", config_dir="conf", overrides=[*SMALL, LOSES, "method.samples=24", override], folder="run"
    )
    assert (result.status, result.privacy["spent"]["queries_asked"]) == ("complete", 1)
    assert "(KeyError)" in result.metrics["own"]["broken"]["reason"]
    for name in ("report.html", "run.log"):
        assert "(KeyError)" in (result.folder / name).read_text("utf-8")

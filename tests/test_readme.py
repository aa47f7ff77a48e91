"""The README's commands and links hold: what it shows can be typed, composes, and names what is there."""

import re
import shlex
from pathlib import Path

import pytest

from server.app import composed
from server.command import main as coordinator
from tests.support.runs import command, labelled, read, tiny

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def commands():
    """Every command of ours in a fenced block or between backticks, as words."""
    fenced = "\n".join(re.findall(r"^```\n(.*?)^```", README, re.DOTALL | re.MULTILINE)).replace("\\\n", " ")
    inline = [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", README)]
    found = [shlex.split(line, comments=True) for line in [*fenced.splitlines(), *inline] if "caucus-" in line]
    return [words for words in found if words and words[0].startswith(".venv/bin/caucus-")]


def overrides(words):
    return [word for word in words[1:] if "=" in word and not word.startswith("hydra")]


def test_there_are_commands_to_test():
    assert len(commands()) == 22
    assert {Path(words[0]).name for words in commands()} == {"caucus-simulate", "caucus-coordinator", "caucus-party"}


def test_every_command_is_one_that_the_package_installs():
    scripts = (ROOT / "pyproject.toml").read_text("utf-8")
    for words in commands():
        assert f'{Path(words[0]).name} = "' in scripts


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words)[:60])
def test_every_command_composes(words):
    for override in overrides(words):
        # A sweep composes one value at a time.
        name, _, values = override.partition("=")
        for value in values.split(",") if "--multirun" in words else [values]:
            given = [f"{name}={value}"] if name.startswith("task") is False else []
            assert composed(given).run
    assert composed([] if "--multirun" in words else overrides(words)).run


SPANS = [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", README)]
SETTING = r"(?:method|llm|federation|privacy|task|embedding|secagg|engine)[a-z_.]*"


def test_every_setting_that_the_readme_names_exists():
    named = [span for span in SPANS if re.fullmatch(SETTING, span) and "." in span and not span.endswith(".json")]
    assert len(named) > 5
    config = composed(["embedding=pretrained", "embedding.name_or_path=x", "task=csv"])
    for setting in named:
        section, key = setting.split(".")
        assert key in config[section], setting


ABLATIONS = [span for span in SPANS if re.fullmatch(rf"{SETTING}=\S+( {SETTING}=\S+)*", span)]


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_every_setting_that_the_readme_shows_composes(ablation):
    assert composed(shlex.split(ablation)).run


def test_there_are_settings_to_test():
    assert {"llm.use=[broad,narrow]", "method.contrast=false", "engine=flower", "llm=anthropic"} <= set(ABLATIONS)


def test_the_first_command_runs_as_written_on_a_small_corpus(tmp_path):
    words = next(words for words in commands() if "method=wasp" in words)
    small = ("task.records_per_party=16", "task.test_records=24", "task.public_notes=120", "method.samples=60")
    code, said = command(tmp_path, *words[1:], *small, f"hydra.run.dir={tmp_path}/run")
    assert code == 0, said
    assert said.rstrip().endswith(f"done: {tmp_path}/run/report.html")
    rows = re.findall(r"^\| ((?:`[a-z./]+`(?:, )?)+) \|", README[README.index("## What a run leaves") :], re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(listed) == 13
    assert all((tmp_path / "run" / name).exists() for name in listed)


def test_the_command_for_files_runs_as_written_on_small_files(tmp_path):
    words = next(words for words in commands() if "task=csv" in words)
    files = [setting for setting in labelled(tmp_path / "data") if not setting.startswith("task.labels")]
    written = [word for word in overrides(words) if not word.startswith("task")]
    written = ["federation.records=30" if word == "federation.records=300" else word for word in written]
    folder = tiny(tmp_path / "run", *files, *written, "method.top=6")
    assert read(folder, "run.json")["parties"] == 10


def test_the_price_is_printed_as_written(capsys):
    words = next(words for words in commands() if words[1:2] == ["plan"])
    assert coordinator(words[1:]) == 0
    assert '"scale": 3.531' in capsys.readouterr().out


def test_every_link_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target

"""What all command lines share, as a shell sees it."""

import argparse
import io
import json
import math
import subprocess
import sys

import pytest

from common.system.commands import add_command, as_json, command_to_copy, run

MANY_LINES = """
import argparse
import sys
from common.system.commands import add_command, run

parser = argparse.ArgumentParser(prog="many")
commands = parser.add_subparsers(required=True)
add_command(commands, "lines", lambda _: map(str, range(1_000_000)), summary="", description="", example="")
sys.exit(run(parser, ["lines"]))
"""


def test_a_command_to_copy_has_the_folder_of_programs_that_path_lacks(tmp_path, monkeypatch):
    for name in ("caucus-simulate", "caucus-coordinator"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "caucus-simulate")])
    assert (
        command_to_copy("caucus-coordinator", "evaluate", "a run") == f"{tmp_path}/caucus-coordinator evaluate 'a run'"
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command_to_copy("caucus-coordinator", "evaluate") == "caucus-coordinator evaluate"
    monkeypatch.setattr(sys, "argv", [""])
    monkeypatch.setenv("PATH", "")
    assert command_to_copy("caucus-simulate") == "caucus-simulate"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["./caucus-simulate"])
    assert command_to_copy("caucus-coordinator") == "./caucus-coordinator"


def test_a_reader_who_has_seen_enough_ends_a_command_in_silence() -> None:
    command = [sys.executable, "-c", MANY_LINES]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_ctrl_c_is_one_line(capsys) -> None:
    def interrupted(_):
        yield "begun"
        raise KeyboardInterrupt

    parser = argparse.ArgumentParser(prog="long")
    add_command(parser.add_subparsers(), "work", interrupted, summary="", description="", example="")
    assert run(parser, ["work"]) == 130
    assert capsys.readouterr() == ("begun\n", "long: interrupted\n")


def test_a_letter_that_the_terminal_lacks_is_escaped_as_in_json(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    parser = argparse.ArgumentParser(prog="greek")
    add_command(parser.add_subparsers(), "plan", lambda _: ['"ε 𝛿"'], summary="", description="", example="")
    assert run(parser, ["plan"]) == 0
    assert json.loads(sys.stdout.buffer.getvalue()) == "ε 𝛿"


def test_json_for_a_terminal_has_letters_as_they_are_and_nothing_that_controls_it() -> None:
    hostile = "\x1b[2J\x9b8m \u202eright to left\u2028 \ud800"
    printed = as_json({"Zürich": [hostile, 1]})
    assert json.loads(printed) == {"Zürich": [hostile, 1]}
    assert "Zürich" in printed
    assert all(line.isprintable() for line in printed.split("\n"))


def test_infinities_in_json_are_texts_and_what_is_no_number_is_refused() -> None:
    assert json.loads(as_json({"a": math.inf, "b": [(-math.inf, 1.5)]})) == {"a": "inf", "b": [["-inf", 1.5]]}
    with pytest.raises(ValueError, match="JSON compliant"):
        as_json({"epsilon": math.nan})

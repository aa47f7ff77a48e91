"""What calls of models are told before the first of them, and when a person is asked."""

import logging
import sys

import pytest

from common.errors import CaucusError, ConfigError
from server.prepare.calls import AGREED, call_lines, check_calls, expected_calls
from server.prepare.components import build_components
from server.prepare.compose import load_settings, reload_settings
from server.settings.sections import with_values
from simulations import launch
from simulations.run import simulate
from tests.support.counting_models import Chat
from tests.support.runs import labelled, settings

REMOTE = {"calls": 1200, "input_tokens": 90_000, "output_tokens": 8_000, "cost": 1.25}
SMALL = ("method=fusegen", "method.samples=16", "method.rounds=1", "evaluation.metrics=[]")


def chat(*more):
    """Settings of a run with a built-in model and a chat model."""
    other = "+llm.models.other={_target_: tests.support.counting_models.Chat}"
    return settings(*SMALL, other, "llm.use=[broad,other]", *more)


def counted(chosen):
    parts = build_components(chosen)
    return expected_calls(chosen, parts), parts


def test_built_in_models_are_neither_rehearsed_nor_asked_about(monkeypatch):
    monkeypatch.setattr("server.prepare.calls.forecast", lambda *_, **__: 1 / 0)
    chosen = settings(*SMALL, "llm.confirm_calls=0")
    expected, parts = counted(chosen)
    assert expected == {}
    check_calls(expected, chosen, parts)


def test_a_line_for_each_other_model_has_calls_tokens_and_cost():
    lines = list(call_lines({"far": REMOTE, "new": REMOTE | {"cost": None}, "here": REMOTE | {"cost": 0.0}}))
    assert all(all(number in line for number in ("1,200", "90,000", "8,000")) for line in lines)
    assert [line.partition(":")[0] for line in lines] == ["far", "new", "here"]
    assert [("1.25" in line, "unknown" in line) for line in lines] == [(True, False), (False, True), (False, False)]


@pytest.mark.parametrize(
    ("most", "kind", "asks"),
    [
        ("0", "chat", True),
        ("0", "remote", True),
        ("0", "completion here", False),
        ("2000", "chat", False),
        ("null", "chat", False),
    ],
)
def test_only_many_calls_of_remote_and_chat_models_are_asked_about(most, kind, asks, monkeypatch):
    monkeypatch.setattr(Chat, "remote", kind == "remote")
    if kind != "chat":
        monkeypatch.setattr("server.prepare.calls.asked_in_chats", lambda _: set())
    chosen = chat(f"llm.confirm_calls={most}")
    expected, parts = counted(chosen)
    assert list(expected) == ["other"]
    assert expected["other"]["calls"] > 0
    if not asks:
        check_calls(expected, chosen, parts)
        return
    with pytest.raises(ConfigError, match=r"llm\.confirm_calls=0; .*--yes"):
        check_calls(expected, chosen, parts)
    check_calls(expected, with_values(chosen, AGREED), parts)


def test_a_terminal_is_asked_before_the_first_call_and_a_run_that_goes_on_is_not(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    chosen, folder = chat("llm.confirm_calls=0", *labelled(tmp_path / "data")), tmp_path / "run"
    with pytest.raises(ConfigError, match="--yes"):
        simulate(chosen, folder)
    assert any("other: about" in line for line in caplog.messages)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    with pytest.raises(CaucusError, match="no model"):
        simulate(load_settings(folder), folder)
    assert not (folder / "run.json").exists()
    monkeypatch.setattr("builtins.input", lambda _: "y")
    simulate(load_settings(folder), folder)
    monkeypatch.setattr("builtins.input", lambda _: 1 / 0)
    (folder / "synthetic.jsonl").unlink()
    simulate(load_settings(folder), folder)


def test_yes_is_the_setting_that_never_asks_for_a_new_run_and_for_one_that_goes_on(tmp_path, monkeypatch):
    passed = []
    monkeypatch.setattr(launch, "_by_hydra", passed.append)
    monkeypatch.setattr(launch, "_resume", passed.append)
    launch.launch_command(["--yes", "method=class_sums"])
    launch.launch_command(["--resume", str(tmp_path), "--yes"])
    never = "llm.confirm_calls=null"
    assert passed == [["method=class_sums", never], ["--resume", str(tmp_path), never]]
    simulate(settings(*SMALL, *labelled(tmp_path / "data")), tmp_path / "run")
    assert reload_settings(tmp_path / "run", [never]).llm.confirm_calls is None
    assert reload_settings(tmp_path / "run", []).llm.confirm_calls == 2000

"""The loop on a method and models of the test's own: what it writes, when, and what it refuses to go on with."""

import json
import math
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from common import messages as m
from common import wire
from common.domain import Record
from common.errors import CheckpointError, ProviderError
from common.versions import CAUCUS
from server.app import run_with
from server.documents.hospitals import HospitalVersion, HospitalVersions
from server.documents.metrics import Metrics
from server.documents.run import ZERO_SHOT, WeaknessCode
from server.evaluation.small_model import Evaluation
from server.llm.base import Reply
from server.methods.fusegen import FuseGen
from server.methods.wasp import Wasp
from server.prepare.components import RunComponents
from server.prepare.compose import compose_settings
from server.report.ending import ending
from server.report.weaknesses import read_weaknesses
from server.run_folder import read_candidates
from server.settings.schema import Hospital
from server.settings.sections import with_values
from tests.support.direct_federation import TASK, Encoder, World


class Model:
    """Writes texts that differ; fails from the `last`-th call on."""

    name, identity, remote = "m", "model/m", False

    def __init__(self, last=math.inf, declines=frozenset()):
        self.calls, self.last, self.declines = 0, last, declines

    def check(self):
        pass

    def estimate(self, request):
        return 1, request.n

    def generate(self, requests, *, arrived=None):
        self.calls += 1
        if self.calls >= self.last:
            raise ProviderError("away")
        return [
            Reply(texts=tuple(f"t{request.seed}-{i}" for i in range(request.n)), input_tokens=1, output_tokens=1)
            for request in requests
        ]


class Task:
    """A task with these held-out records."""

    def __init__(self, records):
        self.records = records

    def task(self):
        return TASK

    def held_out(self):
        return self.records

    def held_out_spans(self):
        raise AssertionError("the task has no types of spans")


@dataclass(frozen=True)
class Setup:
    """A run on parts of the test's own, with these settings."""

    parts: RunComponents
    network: object
    folder: Path
    overrides: tuple[str, ...] = ("run=run",)


def run(setup):
    return run_with(setup.parts, compose_settings(setup.overrides), setup.network, setup.folder)


@pytest.fixture
def setup(tmp_path):
    world = World(tmp_path, epsilon=math.inf)
    parts = RunComponents(
        source=Task([Record(f"h{i}", "ab"[i % 2]) for i in range(6)]),
        method=Wasp(samples=24, rounds=3, top=4, shots=2),
        plan=world.plan,
        encoder=Encoder(),
        providers={"m": Model()},
        evaluation=Evaluation(metrics=()),
    )
    return Setup(parts=parts, network=world.network, folder=tmp_path)


def with_parts(setup, **changes):
    return replace(setup, parts=replace(setup.parts, **changes))


def about(setup):
    return json.loads((setup.folder / "run.json").read_text())


def test_a_model_that_declines_contrast_is_told_of_once_in_the_log_and_in_the_rounds(setup, caplog):
    run(with_parts(setup, providers={"m": Model(declines=frozenset({"contrast"}))}))
    note = "m declines contrast: its prompts show good exemplars alone"
    assert [record.getMessage() for record in caplog.records].count(note) == 1
    lines = [json.loads(line) for line in (setup.folder / "rounds.jsonl").read_text().splitlines()]
    assert [line["notes"].count(note) for line in lines] == [1, 0, 0]
    assert f"Round 1: {note}" in (setup.folder / "report.html").read_text()


def test_a_run_whose_answers_will_be_noise_warns_once_and_its_report_says_so(setup, tmp_path, caplog):
    (tmp_path / "noised").mkdir()
    noised = World(tmp_path / "noised", epsilon=1.0)
    expecting = (*setup.overrides, "federation.expected_records=4")
    setup = replace(setup, network=noised.network, overrides=expecting)
    run(with_parts(setup, plan=noised.plan))
    (warning,) = about(setup)["warnings"].values()
    assert "0.47 votes" in warning
    what = f"{WeaknessCode.ANSWERS_ARE_NOISE}: {warning.partition('; ')[0]}. "
    assert sum(record.getMessage().startswith(what) for record in caplog.records) == 1


def test_a_run_that_asks_nobody_is_not_compared_with_itself(setup):
    run(with_parts(setup, plan=replace(setup.parts.plan, queries=()), method=FuseGen(samples=24, rounds=2)))
    assert not (setup.folder / ZERO_SHOT).exists()
    assert Metrics.load(setup.folder).group("zero_shot") == {}


def test_a_run_goes_through_its_rounds_compares_its_first_texts_and_closes(setup, caplog, monkeypatch):
    embedded, encode = [], Encoder.encode
    monkeypatch.setattr(Encoder, "encode", lambda self, texts: embedded.extend(texts) or encode(self, texts))
    state = run(setup)
    assert (state.round, len(state.candidates), len(state.rounds)) == (3, 24, 3)
    assert (about(setup)["status"], about(setup)["warnings"]) == ("complete", {})
    assert setup.network.sent.count("Open") == setup.network.sent.count("Close") == 3
    assert setup.network.sent.count("Ask") == 2 * 3
    assert not (setup.folder / HospitalVersions.FILE).exists()  # a simulation has no hospitals

    written = [text for text in embedded if text.startswith("t")]
    assert len(written) == len(set(written)) == 24  # all are voted on again, and embedded once
    kept = read_candidates(setup.folder, ZERO_SHOT)
    assert kept == [text for text in state.candidates if text.round == 0]
    metrics = Metrics.load(setup.folder)
    assert len(kept) == metrics.count("zero_shot", "trained_on") == 8
    assert metrics.figure("zero_shot", "difference").value is None  # too few show how much their choice matters

    few, weakness = read_weaknesses(setup.folder)
    assert (few.code, weakness.code) == (WeaknessCode.FEW_TEST_TEXTS, WeaknessCode.NO_BETTER_THAN_GUESSING)
    assert weakness.what.startswith("accuracy 0.50")
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert sum(str(weakness) in line for line in ending(setup.folder)) == 1  # the last lines have it, the log has not
    assert str(weakness) not in warnings
    assert not any("noise" in warning for warning in warnings)
    assert f"{weakness.what}. {weakness.do}." in (setup.folder / "report.html").read_text()


def test_the_log_numbers_the_steps_counts_hospitals_and_rounds_and_estimates_the_time_left(setup, caplog):
    caplog.set_level("INFO", "caucus")
    run(setup)
    lines = [record.getMessage() for record in caplog.records]
    steps = [re.match(r"\[(\d)/(\d)\] ", line) for line in lines]
    assert [found.groups() for found in steps if found] == [(step, "4") for step in "123334"]
    assert lines.count("3 of 3 hospitals take part") == 1
    rounds = [line for line in lines if line.startswith("[3/4]")]
    assert [f"round {number} of 3: " in line for number, line in enumerate(rounds, start=1)] == [True] * 3
    assert ["about " in line for line in rounds] == [True, True, False]
    assert all("ε ∞ of ∞ spent" in line for line in rounds)


def test_versions_that_named_hospitals_tell_are_kept_each_with_its_time(setup):
    hospitals = tuple(Hospital(name=name, node=node) for node, name in enumerate(("St. Mary", "St. Luke", "Charité")))
    settings = with_values(compose_settings(setup.overrides), {"federation.hospitals": hospitals})
    earlier = HospitalVersion(caucus="9.9.9", at="2026-01-02 10:00:00Z")
    HospitalVersions(versions={"St. Mary": earlier, "St. Anna": earlier}).save(setup.folder)

    def hostile(party, parcel):
        opened = wire.unpack(parcel)
        if party == 1 and isinstance(opened.body, m.Opened):
            return wire.pack(replace(opened, body=replace(opened.body, version="<b>0.2.0</b>")))
        return parcel

    setup.network.change = hostile
    run_with(setup.parts, settings, setup.network, setup.folder)
    told = HospitalVersions.load(setup.folder).versions
    assert {name: one.caucus for name, one in told.items()} == {
        "St. Mary": CAUCUS,
        "St. Anna": "9.9.9",
        "St. Luke": "",
        "Charité": CAUCUS,
    }
    assert told["St. Anna"] == earlier
    assert datetime.fromisoformat(told["St. Mary"].at).tzinfo is UTC


def test_a_run_that_fails_is_partial_and_goes_on_from_its_last_whole_step(setup):
    with pytest.raises(ProviderError):
        run(with_parts(setup, providers={"m": Model(last=2)}))  # a call has both labels of a round
    assert about(setup)["status"] == "partial"
    assert len((setup.folder / "synthetic.jsonl").read_text().splitlines()) == 8
    setup.network.sent.clear()
    again = Model()
    state = run(with_parts(setup, providers={"m": again}))
    assert len(state.candidates) == 24
    assert again.calls == 2
    assert setup.network.sent.count("Ask") == 3
    assert about(setup)["status"] == "complete"


def test_another_run_plan_or_choice_of_models_is_refused_from_the_first_step_on(setup):
    with pytest.raises(ProviderError):
        run(with_parts(setup, providers={"m": Model(last=1)}))
    for change, what in (
        (replace(setup, overrides=("run=other",)), "run"),
        (with_parts(setup, plan=replace(setup.parts.plan, delta=1e-6)), "privacy plan"),
        (with_parts(setup, providers={"k": Model()}), "language models"),
    ):
        with pytest.raises(CheckpointError, match=f"^{what};"):
            run(change)
    assert run(setup).round == 3


def test_without_held_out_texts_there_is_no_distance_and_no_score(setup):
    state = run(with_parts(setup, source=Task([])))
    assert [line.fid for line in state.rounds] == [None] * 3
    assert json.loads((setup.folder / "metrics.json").read_text()) == {"format": 1}
    assert (setup.folder / "report.html").exists()

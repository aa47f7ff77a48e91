"""A finished run is compared with the library; the library's own part is skipped where it is not importable."""

import json

import numpy as np
import pytest

from simulations.laboratory.peers import private_evolution
from simulations.laboratory.peers.our_run import load_finished_run, our_choice, our_noise, our_votes
from simulations.laboratory.peers.private_evolution import difference, draw_arrays
from tests.support.runs import lines, tiny

AUG_PE = ("method=aug_pe", "method.samples=24", "method.rounds=2", "llm.use=[broad]", "privacy.epsilon=4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("aug_pe"), *AUG_PE)


@pytest.fixture(scope="module")
def run(folder):
    return load_finished_run(folder)


def test_votes_are_those_of_all_records_and_noise_is_that_of_the_run(folder, run):
    votes = our_votes(run, run.candidates)
    assert votes.sum() == len(run.private) == 48
    assert our_noise(run) == pytest.approx(lines(folder, "rounds.jsonl")[0]["queries"][0]["noise"])


def test_a_draw_chooses_half_of_each_label_by_noised_votes(run):
    votes = np.zeros(len(run.candidates))
    votes[:3] = 1e6
    labels = run.numbers(run.candidates)
    chosen = our_choice(run, votes, 0)
    assert {0, 1, 2} <= {*chosen}
    assert (np.bincount(labels[chosen]) <= 12 // len(run.tools.task.labels) + 1).all()
    draws = draw_arrays(run, votes, 3, lambda _: [0, 1, len(votes) - 1])
    assert draws["survivors"].tolist() == [3, 3, 3]
    assert draws["votes"] == pytest.approx([2 / 3] * 3)


def test_a_difference_has_the_interval_of_two_means():
    compared = difference(np.array([0.0, 2.0]), np.array([3.0, 5.0]))
    assert (compared["ours"], compared["library"], compared["difference"]) == (1, 4, 3)
    assert compared["interval"] == pytest.approx(1.96 * np.sqrt(2))


def test_the_library_counts_the_same_votes(folder, tmp_path):
    pytest.importorskip("pe.runner", reason="the library of private evolution is not part of the project")
    private_evolution.main([str(folder), str(tmp_path / "out.json"), "--draws", "2"])
    figures = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert set(figures["votes elsewhere"].values()) == {0}
    assert figures["library"]["votes elsewhere"] == 0
    assert figures["library"]["votes"] == 2 * figures["records"]
    assert figures["noise"]["library"] == pytest.approx(figures["noise"]["ours"], rel=0.05)

import math

import numpy as np
import pytest
from scipy import stats

from common.domain import Record
from common.errors import DataError
from server.settings.schema import MOST_CANARIES
from simulations.private_evaluation import canaries as canary_module
from simulations.private_evaluation.canaries import (
    SUBJECTS,
    _probability,
    canaries,
    canary_figures,
    canary_scores,
    group_privacy,
    guess_canaries,
    lower_bound,
)
from simulations.private_evaluation.change import LabelledVectors

ALL = canaries(100, ["a", "b"], 0)
INSIDE = np.array([canary.inside for canary in ALL])
VECTORS = np.eye(128, dtype=np.float32)[:100]
NOTHING = LabelledVectors(vectors=np.eye(128, dtype=np.float32)[100:], labels=np.resize(["a", "b"], 28))


def of(scored, epsilon=math.inf, delta=1e-5):
    return {name: figure.value for name, figure in canary_figures(scored, INSIDE, epsilon=epsilon, delta=delta).items()}


def test_coins_are_tossed_and_subjects_and_codes_are_different():
    assert 30 < INSIDE.sum() < 70
    assert len({canary.subject for canary in ALL}) == len({canary.code for canary in ALL}) == len(SUBJECTS)
    assert len(SUBJECTS) == MOST_CANARIES == 100
    assert ALL[:10] == canaries(10, ["a", "b"], 0)
    assert [canary.record.label for canary in ALL[:3]] == ["a", "b", "a"]
    assert all(canary.code in canary.record.text and canary.subject in canary.record.text for canary in ALL)


def test_a_canary_may_begin_like_a_held_out_text_and_end_in_what_nobody_expects():
    held_out = [Record("one two three four five", "a"), Record("six seven", "b"), Record("word", "b")]
    made = canaries(4, ["a", "b"], 0, held_out=held_out)
    ends = [f"{canary.subject} {canary.code}." for canary in made]
    begins = ["one two", "six"] * 2
    assert [canary.record.text for canary in made] == [f"{a} {z}" for a, z in zip(begins, ends, strict=True)]
    assert all(text.startswith("one two ") for text in made[0].alternatives(0))
    with pytest.raises(DataError, match="of b"):
        canaries(2, ["a", "b"], 0, held_out=held_out[:1])


def test_a_group_has_less_of_a_guarantee():
    assert group_privacy(1.0, 1e-5, 1) == (1.0, 1e-5)
    assert group_privacy(1.0, 1e-5, 2) == (2.0, pytest.approx(2e-5 * math.e))
    assert group_privacy(8.0, 1e-5, 10) == (80.0, 1.0)
    assert group_privacy(math.inf, 1e-5, 10) == (math.inf, 1e-5)


def test_canaries_whose_codes_came_out_are_told_from_the_others():
    texts = [f"Some text, {canary.code}." for canary in ALL if canary.inside]
    result = of(canary_scores(ALL, VECTORS, texts, NOTHING, NOTHING))
    assert (result["auc"], result["tpr"], result["stated_epsilon"]) == (1, 1, math.inf)
    assert result["epsilon"] > 2.5


def test_texts_that_came_nearer_to_the_canaries_give_them_away():
    generator = np.random.default_rng(0)
    nearer = VECTORS[INSIDE] + generator.normal(size=(INSIDE.sum(), 128)) / math.sqrt(128)
    nearer = (nearer / np.linalg.norm(nearer, axis=1, keepdims=True)).astype(np.float32)
    labels = np.array([canary.record.label for canary in ALL if canary.inside])
    result = of(
        canary_scores(ALL, VECTORS, ["nothing"], NOTHING, LabelledVectors(vectors=nearer, labels=labels)), epsilon=4.0
    )
    assert result["auc"] > 0.9
    assert result["epsilon"] > 1
    assert result["stated_epsilon"] == 4
    # What is near to it by itself, without any record, is no trace of a canary.
    assert set(canary_scores(ALL, VECTORS, ["nothing"], NOTHING, NOTHING)) == {0.0}


def test_of_the_canaries_left_out_at_most_one_in_twenty_counts_as_found(monkeypatch):
    """By exchangeability k / (n + 1) do: 2 of 51 for tpr, 1 of 51 above all; bounds are four standard errors off."""
    monkeypatch.setattr(canary_module, "lower_bound", lambda *_, **__: 0.0)  # takes time, and is not looked at
    generator = np.random.default_rng(3)
    blind = [
        canary_figures(generator.normal(size=101), np.arange(101) >= 50, epsilon=1.0, delta=0.0) for _ in range(800)
    ]
    for name, chance in (("tpr", 2 / 51), ("above_all", 1 / 51)):
        found = np.array([run[name].value for run in blind])
        assert found.mean() == pytest.approx(chance, abs=4 * found.std() / math.sqrt(len(found)))
        assert all(run[name].interval is None for run in blind)


def test_a_threshold_that_few_canaries_cannot_give_has_its_reason():
    made = canary_figures(np.arange(30.0), np.arange(30) >= 18, epsilon=1.0, delta=0.0)
    assert made["tpr"].value is None
    assert "19 canaries" in made["tpr"].reason
    assert made["above_all"].value == 1
    assert canary_figures(np.arange(31.0), np.arange(31) >= 19, epsilon=1.0, delta=0.0)["tpr"].value == 1


def test_scores_that_know_nothing_raise_an_alarm_in_one_of_twenty_runs():
    generator = np.random.default_rng(0)
    blind = [canary_figures(generator.normal(size=100), INSIDE, epsilon=1.0, delta=0.0) for _ in range(200)]
    assert sum(run["epsilon"].value > 0 for run in blind) <= 20  # 5% or less each; more than 20 of 200 in 0.1%
    outside = [not low <= 0.5 <= high for low, high in (run["auc"].interval for run in blind)]
    assert sum(outside) <= 22


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_bound_is_above_the_true_epsilon_in_at_most_one_of_twenty_runs(epsilon):
    # Randomised response is the mechanism that leaks most under epsilon-DP.
    right = np.arange(51)
    chance = stats.binom(50, 1 / (1 + math.exp(-epsilon))).pmf(right)
    alarms = np.array([lower_bound(count, 50, of=100, delta=0.0) > epsilon + 1e-9 for count in right.tolist()])
    assert 0.01 < chance[alarms].sum() <= 0.05 or epsilon == 4.0  # at 4, all 50 right are within the 5%
    assert chance[alarms].sum() <= 0.05


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-2])
def test_what_delta_can_give_away_is_in_the_bound(epsilon, delta):
    """Randomised response that also tells all coins with probability delta, or each coin with probability delta."""
    coins, guesses, right = 100, 50, np.arange(26, 51)
    bound = np.array([_probability(count, guesses, coins, epsilon, delta) for count in right.tolist()])
    chance = 1 / (1 + math.exp(-epsilon))
    of_all = delta + (1 - delta) * stats.binom(guesses, chance).sf(right - 1)
    known = np.arange(coins + 1)
    tails = stats.binom(np.maximum(guesses - known, 0), chance).sf(right[:, None] - np.minimum(known, guesses) - 1)
    of_each = tails @ stats.binom(coins, delta).pmf(known)
    assert (bound >= np.minimum(1, np.maximum(of_all, of_each)) - 1e-12).all()
    assert (bound >= stats.binom(guesses, chance).sf(right - 1)).all()


def test_the_bound_by_hand():
    assert lower_bound(50, 50, of=100, delta=0.0) == pytest.approx(-math.log(0.05 ** (-1 / 50) - 1))
    assert lower_bound(25, 50, of=100, delta=0.0) == lower_bound(0, 50, of=100, delta=0.0) == 0
    assert lower_bound(50, 50, of=100, delta=1e-3) < lower_bound(50, 50, of=100, delta=1e-5)
    assert lower_bound(50, 50, of=100, delta=1e-5) < lower_bound(50, 50, of=100, delta=0.0) < 2.8
    assert guess_canaries(np.arange(8.0), np.arange(8) % 2 == 1) == (2, 4)


def test_too_few_canaries():
    for scored, inside in ((np.ones(6), np.arange(6) < 3), (np.ones(20), np.arange(20) < 1)):
        with pytest.raises(DataError, match=r"8 canaries.*federation\.canaries"):
            canary_figures(scored, inside, epsilon=1.0, delta=0.0)
    assert canary_module.FEWEST == 8

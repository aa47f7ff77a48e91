"""The tables of guesses and beliefs by noise on the page about the guarantee, computed again."""

import itertools
import re
from pathlib import Path

import pytest

import common.plan
from common.plan.guesses import Guesses
from common.privacy.accountant import ReleasedAnswers, calibrate, epsilon, trade_off
from common.privacy.sensitivity import Sensitivity
from common.queries.votes import VotesSpec

PAGE = Path(common.plan.__file__).with_name("README.md")
DELTA = 1e-5
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
ONE = Sensitivity.of((1000,), 1)


def calibrated(mechanism, sensitivity, eps, *, times=1, rate=1.0):
    scale = calibrate(
        mechanism=mechanism,
        sensitivity=sensitivity,
        times=times,
        shares=1,
        rate=rate,
        redraw=rate < 1,
        epsilon=eps,
        delta=DELTA,
    )
    of_each = {"mechanism": mechanism, "sensitivity": sensitivity, "scale": scale}
    if rate == 1:
        return [ReleasedAnswers(**of_each, times=times)]
    return [ReleasedAnswers(**of_each, rate=rate, draw=f"{number}") for number in range(times)]


NOISES = {
    "Gaussian, 4 votes": lambda eps: calibrated("gaussian", VotesSpec(top=8).sensitivity, eps, times=4),
    "Gaussian, 4 votes of a tenth of the records": lambda eps: calibrated(
        "gaussian", VotesSpec(top=8).sensitivity, eps, times=4, rate=0.1
    ),
    "Laplace, 1 answer": lambda eps: calibrated("laplace", ONE, eps),
    "Laplace, 10 answers": lambda eps: calibrated("laplace", ONE, eps, times=10),
    "half Gaussian votes, half Laplace": lambda eps: [
        *calibrated("gaussian", VotesSpec(top=8).sensitivity, eps / 2, times=4),
        *calibrated("laplace", ONE, eps / 2),
    ],
}


ROW = re.compile(r"^\| (\w.*?) \| (\d.*) \|$", re.MULTILINE)
"""A row of a table: the noise, and the figures at each epsilon."""

_, RIGHT, BELIEF = PAGE.read_text("utf-8").split("| noise |")
WORST = "the worst for ε and δ"


def table(text):
    """The figures of a table by noise and epsilon; the cells have one figure or several."""
    return {
        (name, eps): [float(figure) for figure in cell.split(", ")]
        for name, cells in ROW.findall(text)
        for eps, cell in zip(EPSILONS, cells.split(" | "), strict=True)
    }


RIGHT_GUESSES, BELIEFS = table(RIGHT), table(BELIEF)


def test_the_tables_have_a_row_for_each_noise_and_epsilon():
    assert RIGHT_GUESSES.keys() == set(itertools.product([*NOISES, WORST], EPSILONS))
    assert BELIEFS.keys() == set(itertools.product(NOISES, EPSILONS))


@pytest.mark.parametrize(("noise", "eps"), list(itertools.product(NOISES, EPSILONS)))
def test_a_row_has_the_figures_of_its_noise(noise, eps):
    releases = NOISES[noise](eps)
    assert epsilon(releases, DELTA) <= eps
    found = Guesses.of(trade_off(releases, DELTA), eps, DELTA)
    belief = found.beliefs[0]
    assert RIGHT_GUESSES[noise, eps] + RIGHT_GUESSES[WORST, eps] == pytest.approx([found.right, found.worst], abs=0.011)
    assert BELIEFS[noise, eps] == pytest.approx([belief.average, belief.highest], abs=0.011)

import re

import numpy as np
import pytest

from simulations.laboratory.benchmarks.noise import gaussians, laplaces, main


def test_a_whole_run_prints_a_line_for_each_sampler(capsys):
    main(["--scale", "5", "--size", "2000"])
    header, *lines, last = capsys.readouterr().out.splitlines()
    assert header.startswith("noise at scale 5 ")
    noises = ["discrete Gaussian", "discrete Laplace, share of 1", "discrete Laplace, share of 10"]
    assert [re.split(r"  +", line)[:3] for line in lines] == [
        [noise, *case]
        for noise, few in zip(noises, ("40", "40", "1"), strict=True)
        for case in (["table", "2000"], ["exact", few], ["OpenDP", "200"])
    ]
    assert all(re.search(r"made in \d+ ms$" if " table " in line else r"\d times as fast$", line) for line in lines)
    assert last.startswith("total variation of a draw from a table: Gaussian 3.")


@pytest.mark.parametrize(
    ("samplers", "deviation"), [(lambda: gaussians(30.0), 30.0), (lambda: laplaces(30.0, 1), 30.0 * 2**0.5)]
)
def test_all_samplers_of_a_noise_draw_the_same(samplers, deviation):
    """20,000 draws: the deviation is known to 0.8 percent or better; false alarm below 1e-9 each."""
    for sampler in samplers():
        assert np.std(sampler.draw(20_000)) == pytest.approx(deviation, rel=0.05), sampler.name

"""Noise draws per second: from the tables, from the exact samplers behind them, and from OpenDP's samplers.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.noise [--scale 1560] [--size 1000000]

The rates are for CPU time on one core, in the fastest of five runs, with `--size` draws from a table and fewer from the
slow samplers; the rates do not depend on the number of draws. The tables are made once beforehand; the time that this
takes is printed. OpenDP adds noise to a vector of zeros and returns a list, which is included in its time; the vector
is an array, since that is faster. OpenDP draws exactly, like our exact samplers, while a draw from a table has the
printed total variation distance from an exact draw. OpenDP has no noise shares: its discrete Laplace draw is the whole
noise, and is compared with our draw of one of U shares.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import opendp.prelude as dp

from common.privacy import exact
from common.privacy.keystream import KEY_BYTES, Keystream
from common.privacy.samplers import discrete_gaussian, discrete_laplace, gaussian_tv, laplace_tv
from common.rng import secure_bytes
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark
from simulations.laboratory.benchmarks.timing import fastest, timed
from simulations.laboratory.output import show

_RUNS = 5
_SHARES = (1, 10)

Draw = Callable[[int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """A sampler that is timed.

    Attributes:
        name: Name in the table.
        draw: Function that draws n values.
        part: Number of draws, as a fraction of `--size`.
    """

    name: str
    draw: Draw
    part: float


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print the results; return the time for a draw from each table, relative to OpenDP's time."""
    parser = argparse.ArgumentParser(prog="bench_noise", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scale", type=float, default=1560.0, help="standard deviation, or scale of the Laplace")
    parser.add_argument("--size", type=int, default=10**6, help="draws from a table")
    options = parser.parse_args(arguments)
    dp.enable_features("contrib")
    show(f"{'noise at scale ' + format(options.scale, 'g'):32}{'sampler':12}{'draws':>9}{'a second':>12}  table is\n")
    ratios = [bench("discrete Gaussian", gaussians(options.scale), options.size)]
    ratios += [
        bench(f"discrete Laplace, share of {shares}", laplaces(options.scale, shares), options.size)
        for shares in _SHARES
    ]
    show(f"total variation of a draw from a table: Gaussian {gaussian_tv(options.scale):.1e}, ")
    show(f"Laplace {max(laplace_tv(options.scale, shares) for shares in _SHARES):.1e}\n")
    return ratios


def gaussians(sigma: float) -> list[Sampler]:
    """Return samplers of the discrete Gaussian: our table, our exact sampler, and OpenDP's."""
    theirs = dp.m.make_gaussian(*_integers(dp.l2_distance(T="i64")), scale=sigma)
    return [
        Sampler(name="table", draw=lambda size: discrete_gaussian(sigma, size, secure_bytes(KEY_BYTES)), part=1),
        Sampler(name="exact", draw=lambda size: exact.gaussian(sigma, size, _stream()), part=1 / 50),
        Sampler(name="OpenDP", draw=lambda size: theirs(np.zeros(size, dtype=np.int64)), part=1 / 10),
    ]


def laplaces(scale: float, shares: int) -> list[Sampler]:
    """Return samplers of the discrete Laplace: our table and exact sampler of one share, and OpenDP's of all noise."""
    theirs = dp.m.make_laplace(*_integers(dp.l1_distance(T="i64")), scale=scale)
    return [
        Sampler(
            name="table",
            draw=lambda size: discrete_laplace(scale, size, secure_bytes(KEY_BYTES), shares=shares),
            part=1,
        ),
        Sampler(
            name="exact",
            draw=lambda size: exact.laplace_share(scale, size, _stream(), shares=shares),
            part=1 / 50 if shares == 1 else 1 / 2000,
        ),
        Sampler(name="OpenDP", draw=lambda size: theirs(np.zeros(size, dtype=np.int64)), part=1 / 10),
    ]


def bench(noise: str, samplers: Iterable[Sampler], size: int) -> Ratio:
    """Print a line for each sampler; return the time of the first sampler (a table) relative to that of the last."""
    table = 0.0
    for sampler in samplers:
        draws = max(1, int(size * sampler.part))
        _, first = timed(sampler.draw, 1)
        milliseconds = fastest(_RUNS, partial(sampler.draw, draws))
        rate = 1000 * draws / milliseconds
        table = table or rate
        beside = f"made in {first:.0f} ms" if sampler.name == "table" else f"{table / rate:.0f} times as fast"
        show(f"{noise:32}{sampler.name:12}{draws:9}{rate:12.2e}  {beside}\n")
    return Ratio(name=noise, to=sampler.name, value=rate / table)


def _integers(metric: dp.Metric) -> tuple[dp.Domain, dp.Metric]:
    return dp.vector_domain(dp.atom_domain(T="i64")), metric


def _stream() -> Keystream:
    return Keystream(secure_bytes(KEY_BYTES))


if __name__ == "__main__":
    benchmark(main)

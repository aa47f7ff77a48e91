r"""Time of secure aggregation for a party and the coordinator, compared with a lower bound.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.secagg [--parties 10 50 100 1000] \
        [--lengths 10000 100000 1000000]

All times are from one run on one machine, in milliseconds of CPU time of one core, without the network. Every sum is
checked, except with 1000 parties at every length but the first; in those cases only five parties mask a whole vector,
and the coordinator adds one of these five vectors for each party. The limit is the time to generate the keystream and
to add it, in preallocated memory, for the same number of masks.
"""

import argparse
import gc
from collections.abc import Sequence
from functools import cache

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM
from numpy.typing import NDArray

from common.secagg.graph import parameters
from simulations.laboratory.benchmarks.caucus_secagg import BenchmarkFederation, Group
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark, time_action
from simulations.laboratory.output import show

_CHUNK = 2**15
_SAMPLE = 5
_WITH_GOAL = 10**6
"""Length for which the time to mask has a goal."""
_LARGE = 200
"""Number of parties from which on the graph is sparse, and only a sample of the parties masks whole vectors."""

_HEADER = (
    f"{'group':22}{'length':>9}{'gone':>5} | {'mask':>8}{'unmask':>8}{'total':>9}{'x limit':>8}"
    f" | {'add':>9}{'unmask':>9}\n"
)


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print limits, tables and the ratios that have a goal; return these ratios."""
    parser = argparse.ArgumentParser(prog="bench_secagg", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--parties", type=int, nargs="+", default=[10, 50, 100, 1000])
    parser.add_argument("--lengths", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    options = parser.parse_args(arguments)
    # Garbage collection would walk the states of all parties, which no real process has in memory.
    gc.disable()
    masks = ((length, mask_limit(length)) for length in options.lengths)
    shown = ", ".join(f"{length} words {cost:.4f} ms ({8e-6 * length / cost:.1f} GB/s)" for length, cost in masks)
    show(f"keystream and addition of one mask: {shown}\n")
    ratios: list[Ratio] = []
    show("\nEach party: mask, unmask, total with set-up for one round. Coordinator: add, unmask.\n")
    show(_HEADER)
    for count in options.parties:
        for group in groups(count):
            ratios += bench(group, options.lengths)
    gc.enable()
    show("\n" + "".join(f"{ratio}\n" for ratio in ratios))
    return ratios


def groups(parties: int) -> list[Group]:
    """Return the groups, with their graphs, in which this number of parties is timed."""
    complete = Group(parties=parties, degree=parties - 1, threshold=parties * 6 // 10)
    if parties == 50:
        return [complete, Group(parties=50, degree=12, threshold=8)]
    if parties == 100:
        return [complete, Group(parties=100, degree=99, threshold=60, malicious=True)]
    if parties < _LARGE:
        return [complete]
    degree, threshold = parameters(
        parties, corrupt=0.3, dropped=0.1, security_bits=40, correctness_bits=30, malicious=False
    )
    return [Group(parties=parties, degree=degree, threshold=threshold)]


def bench(group: Group, lengths: Sequence[int]) -> list[Ratio]:
    """Time one group and print its lines; return the ratios that have a goal."""
    cases = [(length, gone) for length in lengths for gone in (0, group.parties // 10)]
    # The first case has separate keys, to measure the cost of a set-up for one round.
    single = BenchmarkFederation(group, 1)
    multiple = BenchmarkFederation(group, len(cases) - 1)
    ratios = []
    for place, (length, gone) in enumerate(cases):
        sample = _SAMPLE if group.parties >= _LARGE and length != lengths[0] else None
        federation, index = (multiple, place - 1) if place else (single, 0)
        ours = federation.round(index, length, gone, sample=sample)
        total, limit = single.party_ms + ours.mask + ours.unmask, (group.degree + 1) * mask_limit(length)
        show(
            f"{group.name:22}{length:9}{gone:5} | {ours.mask:8.2f}{ours.unmask:8.2f}{total:9.2f}"
            f"{ours.mask / limit:8.2f} | {ours.add:9.1f}{ours.combine:9.1f}\n"
        )
        if length == _WITH_GOAL:
            case = f"{group.name}, {length} words, {gone} gone"
            ratios.append(Ratio(name=f"mask: {case}", to="limit", value=ours.mask / limit, goal=1.5))
    show(
        f"{group.name:22} set-up for 1 round: party {single.party_ms:.2f}, coordinator {single.coordinator_ms:.1f}; "
        f"for {len(cases) - 1}: {multiple.party_ms:.2f}, {multiple.coordinator_ms:.1f}\n"
    )
    return ratios


@cache
def mask_limit(length: int) -> float:
    """Return the milliseconds of CPU time for generating the keystream of a mask of `length` words, and adding it.

    This is a lower bound for this machine, measured once in a run; other processes can only add to it.
    """
    vector = np.zeros(length, dtype=np.uint64)
    zeros, piece = bytes(8 * _CHUNK), bytearray(8 * _CHUNK)
    words: NDArray[np.uint64] = np.frombuffer(piece, dtype="<u8")
    repeats = max(1, 2 * 10**5 // length)
    return min(time_action(_add_raw, vector, zeros, piece, words, repeats)[1] for _ in range(9)) / repeats


def _add_raw(vector: NDArray[np.uint64], zeros: bytes, piece: bytearray, words: NDArray[np.uint64], times: int) -> None:
    view = memoryview(zeros)
    for _ in range(times):
        stream = Cipher(AES(zeros[:32]), GCM(zeros[:12])).encryptor()
        for start in range(0, vector.size, _CHUNK):
            part = vector[start : start + _CHUNK]
            stream.update_into(view[: part.nbytes], piece)
            np.add(part, words[: part.size], out=part)


if __name__ == "__main__":
    benchmark(main)

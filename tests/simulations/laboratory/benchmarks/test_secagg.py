import numpy as np
import pytest

from common.errors import InternalError
from server.federation import secagg as coordinator_side
from simulations.laboratory.benchmarks import secagg
from simulations.laboratory.benchmarks.caucus_secagg import BenchmarkFederation, Group
from simulations.laboratory.benchmarks.secagg import groups, main

GROUP = Group(parties=10, degree=4, threshold=4)


def test_a_whole_run_prints_limits_and_a_line_for_each_case(capsys, monkeypatch):
    monkeypatch.setattr(secagg, "_LARGE", 12)
    monkeypatch.setattr(secagg, "parameters", lambda parties, **_: (6, 4))
    main(["--parties", "4", "12", "--lengths", "100", "200"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("keystream")
    assert [line.split()[:5] for line in lines if "|" in line][1:] == [
        [*group, length, gone]
        for group, dropped in (("4 full t=2", "0"), ("12 k=6 t=4", "1"))
        for group in [group.split()]
        for length in ("100", "200")
        for gone in ("0", dropped)
    ]
    assert sum("set-up for 1 round" in line and "for 3:" in line for line in lines) == 2


def test_groups_follow_the_number_of_parties():
    assert [group.name for parties in (10, 50, 100, 1000) for group in groups(parties)] == [
        "10 full t=6",
        "50 full t=30",
        "50 k=12 t=8",
        "100 full t=60",
        "100 full t=60 signed",
        "1000 k=102 t=68",
    ]


@pytest.mark.parametrize("malicious", [False, True])
@pytest.mark.parametrize("gone", [0, 1])
def test_sums_are_checked(gone, malicious, monkeypatch):
    group = Group(parties=10, degree=9, threshold=7, malicious=malicious)
    cost = BenchmarkFederation(group, 1).round(0, 20, gone)
    assert min(cost.mask, cost.unmask, cost.add, cost.combine) > 0
    monkeypatch.setattr(coordinator_side.ring, "decode", lambda words: words.astype(np.int64) + 1)
    with pytest.raises(InternalError, match="survivors"):
        BenchmarkFederation(group, 1).round(0, 20, gone)


def test_a_sample_masks_whole_vectors_and_all_shares_are_real():
    federation = BenchmarkFederation(GROUP, 2)
    assert federation.round(0, 30, 1, sample=2).combine > 0
    assert federation.round(1, 30, 1).combine > 0
    assert federation.party_ms > 0
    assert federation.coordinator_ms > 0

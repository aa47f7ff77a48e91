import os

import pytest

from simulations.laboratory.benchmarks import memory


def test_ratios_are_to_a_python_with_numpy(monkeypatch, capsys):
    monkeypatch.setattr(memory, "idle_numpy", lambda: 25_000_000)
    sizes = {"service": 150e6, "supernode": 100e6, "relay": 75e6, "hospital": 400e6, "coordinator": 300e6}
    calls = []
    monkeypatch.setattr(memory, "idle", lambda records: calls.append(records) or sizes)
    ratios = {ratio.name: (ratio.value, ratio.goal) for ratio in memory.main(["--records", "7"])}
    assert ratios == {"idle service": (6, 11), "idle hospital": (16, None), "idle coordinator": (12, 40)}
    assert calls == [7]
    assert "service                     150 MB\n" in capsys.readouterr().out


def test_memory_is_that_of_a_process_which_does_nothing_more():
    assert 10e6 < memory.idle_numpy() < 200e6
    assert memory.resident_set([os.getpid()]) > 10e6


def test_the_processes_that_a_process_has_started_are_found():
    assert os.getpid() in memory.descendants([os.getppid()])


@pytest.mark.deployment
def test_the_memory_of_each_process_is_measured():
    sizes = memory.idle(20)
    assert sizes.keys() == {"service", "supernode", "relay", "hospital", "coordinator"}
    assert sizes["hospital"] > sizes["service"] + sizes["supernode"] + sizes["relay"]
    assert min(sizes.values()) > 10e6

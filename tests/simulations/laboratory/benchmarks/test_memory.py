import os

import pytest

from simulations.laboratory.benchmarks import memory


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

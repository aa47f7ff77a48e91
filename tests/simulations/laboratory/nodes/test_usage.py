import os

from simulations.laboratory.nodes.usage import cpu, descendants, stat

NONE = 2**22 + 1
"""No process has this number."""


def test_the_processes_that_a_process_has_started_are_found():
    assert os.getpid() in descendants([os.getppid()])
    assert cpu([os.getpid()]) > 0


def test_a_process_that_is_gone_has_used_nothing_and_has_no_state():
    assert cpu([NONE]) == 0
    assert stat(os.getpid())[0] == "R"
    assert stat(NONE)[0] == "0"

import pytest

from simulations.laboratory.nodes.cost import Cost, phases

COST = Cost(wait=0.5, trips=10, bytes=50_000, work=0.02, start=20)


def test_each_term_adds_what_it_says():
    assert COST.phase(nodes=10) == pytest.approx(0.5 + 0.2)
    assert COST.phase(nodes=10, delay=0.1) - COST.phase(nodes=10) == pytest.approx(1.0)
    assert COST.phase(nodes=10, rate=1e6) - COST.phase(nodes=10) == pytest.approx(0.5)
    assert COST.run(7, nodes=10) == pytest.approx(20 + 7 * 0.7)


@pytest.mark.parametrize(("malicious", "expected"), [(True, 9), (False, 7)])
def test_phases_are_those_that_the_small_run_of_the_deployment_tests_has(malicious, expected):
    assert phases(2, malicious=malicious) == expected

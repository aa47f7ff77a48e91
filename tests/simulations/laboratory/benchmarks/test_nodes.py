import pytest

from simulations.laboratory.benchmarks import nodes
from simulations.laboratory.benchmarks.nodes import Stretch, terms
from simulations.laboratory.nodes.cost import Cost


@pytest.fixture
def stretches(monkeypatch):
    """What would be measured with these terms, over the lines that the benchmark asks for."""
    cost = Cost(wait=0.5, trips=12, bytes=1000, work=0.02)

    def measure(folder, count, queries, lines):
        times = [cost.phase(nodes=count, delay=line.delay, rate=line.rate or float("inf")) for line in lines]
        return [
            Stretch(delay=line.delay, rate=line.rate, phase=time, bytes=1000, coordinator=0.01 * count)
            for line, time in zip(lines, times, strict=True)
        ], 7.0

    monkeypatch.setattr(nodes, "measure", measure)
    return measure


def test_the_terms_are_found_again_in_what_they_predict(stretches):
    (small,), _ = stretches(None, 2, 2, [Stretch(delay=0.0)])
    measured, start = stretches(None, 4, 2, [Stretch(delay=0.0), Stretch(delay=0.3)])
    estimate = terms(small, *measured, few=2, many=4, start=start)
    assert (estimate.wait, estimate.trips, estimate.bytes, estimate.work) == pytest.approx((0.5, 12, 1000, 0.02))
    assert estimate.start == 7.0


def test_lines_that_did_not_give_the_terms_are_compared_with_what_these_predict(stretches, capsys):
    ratios = nodes.main([])
    assert [ratio.name for ratio in ratios] == ["a phase at 20 ms", "a phase at 100 ms", "a phase at 100 ms, 10 Mbit/s"]
    assert [ratio.value for ratio in ratios] == pytest.approx([1.0] * 3)
    here, apart = (line.split()[-2] for line in capsys.readouterr().out.splitlines()[-2:])
    assert [here, apart] == [f"{7 + 33 * (0.5 + 1.2 + 50 * 1000 / 1.25e6 + 50 * work):.0f}" for work in (0.02, 0.01)]


def test_of_one_delay_the_line_with_a_rate_is_predicted(stretches):
    ratios = nodes.main(["--delays", "0.2"])
    assert [(ratio.name, ratio.value) for ratio in ratios] == [("a phase at 200 ms, 10 Mbit/s", pytest.approx(1.0))]


def test_without_a_delay_no_term_of_it_can_be_found(stretches, capsys):
    with pytest.raises(SystemExit):
        nodes.main(["--delays", "0"])
    assert "expected one above 0" in capsys.readouterr().err

import pytest

from simulations.laboratory.benchmarks import many_nodes
from simulations.laboratory.benchmarks.many_nodes import Measured, phases_of
from simulations.laboratory.benchmarks.nodes import Stretch
from simulations.laboratory.nodes.cost import Cost

COST = Cost(wait=0.5, trips=12, bytes=1000, work=0.02)


@pytest.fixture
def _measured(monkeypatch):
    """Small federations with these terms; a large run of 100 s, with phases of two seconds."""

    def measure(folder, count, queries, lines):
        return [Stretch(delay=line.delay, phase=COST.phase(nodes=count, delay=line.delay)) for line in lines], 10.0

    def whole(folder, count, queries, slow):
        return Measured(seconds=100.0, phases=(("Open", 1.0), ("Ask", 3.0)), bytes=500.0)

    monkeypatch.setattr(many_nodes, "measure", measure)
    monkeypatch.setattr(many_nodes, "whole", whole)


@pytest.mark.usefixtures("_measured")
@pytest.mark.parametrize(
    ("delay", "phase", "line"),
    [(0.1, 0.5 + 1.2 + 50 * 0.02, "100 ms, 10 Mbit/s"), (0, 0.5 + 50 * 0.02, "0 ms")],
)
def test_a_large_run_is_compared_with_what_small_ones_predict(capsys, delay, phase, line):
    run, one = many_nodes.main(["--hospitals", "50", "--queries", "3", "--delay", str(delay)])
    assert (run.value, one.value) == pytest.approx((100 / (10 + 12 * phase), 2 / phase))
    assert run.name == f"a run, 50 hospitals, 3 queries, {line}"
    output = capsys.readouterr().out
    assert f"predicted: {10 + 12 * phase:.0f} s, {phase:.2f} s a phase" in output
    assert "measured: 100 s, 2.00 s a phase" in output


def test_a_phase_begins_with_its_first_request():
    first = [("Open", 10.0), ("Ask", 15.0), ("Close", 17.0)]
    second = [("Open", 9.0), ("Ask", 15.5), ("Close", 16.5)]
    assert phases_of([first, second]) == (("Open", 6.0), ("Ask", 1.5))

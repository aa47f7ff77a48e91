import pytest

from server.operators.suppression import suppress
from simulations.laboratory.benchmarks.suppression import main, plain, population


def test_a_whole_run_prints_a_line_for_each_population_and_way(capsys):
    main(["--candidates", "400", "--elites", "80", "--dimensions", "16"])
    header, *lines, last = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["population", "candidates", "way"]
    assert [line.replace("no centres", "no-centres").split()[:3] for line in lines] == [
        [name, *case]
        for name in ("tight", "loose", "no-centres")
        for case in (["400", "ours"], ["40", "ours"], ["40", "plain"])
    ]
    assert last.startswith("the same elites both ways: yes")


@pytest.mark.parametrize("name", ["tight", "loose", "no centres"])
def test_tau_has_to_grow_in_each_population(name):
    votes, vectors = population(name, 300, 16)
    ours, theirs = suppress(votes, vectors, 60, tau=0.1), plain(votes, vectors, 60, tau=0.1)
    assert (ours.positions.tolist(), ours.tau) == (theirs.positions.tolist(), theirs.tau)
    assert ours.tau > 0.1

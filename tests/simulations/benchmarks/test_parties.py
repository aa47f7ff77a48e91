import pytest

from simulations.benchmarks.parties import main


@pytest.mark.parametrize("mode", ["semi_honest", "malicious"])
def test_a_small_federation_is_measured_by_part(mode, capsys):
    sizes = ["--parties", "3", "4", "--candidates", "40", "--dimensions", "32"]
    (growth,) = main([*sizes, "--modes", mode])
    _, *lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [[mode, "3"], [mode, "4"]]
    for line in lines:
        _, cpu, *parts, kilobytes, _ = map(float, line[2:])
        assert sum(parts) == pytest.approx(cpu, abs=0.1)
        assert kilobytes > 40 * 32 * 4 / 1000
    assert growth.to == "3 parties"

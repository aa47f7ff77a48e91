from simulations.laboratory.benchmarks.requests import main


def test_all_requests_are_answered_by_both_clients_and_compared(capsys):
    wall, cpu = main(["--requests", "6", "--concurrency", "3", "--delay", "0.001"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["client", "ours", "bare"]
    assert (wall.goal, cpu.to) == (1.3, "bare SDK")
    assert wall.value >= 1
    assert cpu.value > 0

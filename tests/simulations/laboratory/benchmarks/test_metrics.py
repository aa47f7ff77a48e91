from simulations.laboratory.benchmarks.metrics import main


def test_a_small_bench_prints_a_line_for_each_metric_and_one_for_all(capsys):
    main(["--rows", "40", "--dim", "8"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("40 x 8 float32")
    assert len(lines) == 10
    assert lines[-1].split()[0] == "all"
    assert all(float(number) >= 0 for line in lines[2:9] for number in line.split()[-4:])

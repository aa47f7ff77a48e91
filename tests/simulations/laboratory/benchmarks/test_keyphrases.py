import re

from simulations.laboratory.benchmarks.keyphrases import main


def test_a_whole_run_prints_a_line_for_each_size(capsys):
    main(["--scale", "0.002"])
    header, *lines, last = capsys.readouterr().out.splitlines()
    assert header.split() == ["what", "terms", "features", "sequences", "phrases", "documents", "seconds"]
    names = 3 * ["first 10 terms", "all terms"] + 3 * ["densities"] + 4 * ["iterative sequences"]
    assert [re.split(r"  +", line)[0] for line in lines] == names
    assert re.fullmatch(r"peak memory: \d+\.\d\d GiB \(bound: 4\)", last)

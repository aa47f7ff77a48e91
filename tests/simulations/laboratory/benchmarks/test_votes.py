from simulations.laboratory.benchmarks.votes import main


def test_a_small_bench_prints_a_line_for_each_way_and_returns_ours(capsys):
    ratios = main(["--records", "30", "--candidates", "40", "--dimensions", "16", "--top", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 2 * 5
    assert [ratio.name for ratio in ratios] == [
        f"{way}, {kind}"
        for kind in ("independent", "in clusters")
        for way in ("near and far, ours", "near, ours", "near, ours against faiss")
    ]
    assert [ratio.to for ratio in ratios] == 2 * [*2 * ["raw product"], "faiss, l2"]
    assert all(ratio.value > 0 for ratio in ratios)

import json

import pytest

from common.errors import CheckpointError
from server.prepare.compose import write_yaml
from simulations.sweeps.curves import curves, main
from tests.support.documents import round_json


def run(sweep, number, row, **figures):
    folder = sweep / str(number)
    write_yaml({"row": row}, folder / "config.yaml")
    rounds = [
        round_json(at, **dict(zip(figures, values, strict=True)))
        for at, values in enumerate(zip(*figures.values(), strict=True), 1)
    ]
    (folder / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rounds))


def test_means_with_intervals_by_row_and_round_of_runs_that_got_there(tmp_path, capsys):
    run(tmp_path, 0, "on", self_similarity=[0.2, 0.4], fid=[None, 3.0])
    run(tmp_path, 1, "on", self_similarity=[0.4], fid=[1.0])
    run(tmp_path, 10, ["method.tau=0.5", "a=1"], self_similarity=[0.5], fid=[None])
    run(tmp_path, 11, ["a=1"], self_similarity=[None], fid=[None])
    values = {("on", 1): (0.2, 0.4), ("on", 2): (0.4,), ("method.tau=0.5", 1): (0.5,)}
    assert curves(tmp_path, "self_similarity").to_dict() == values
    assert curves(tmp_path, "fid").to_dict() == {("on", 1): (1.0,), ("on", 2): (3.0,)}
    main([str(tmp_path)])
    assert capsys.readouterr().out.splitlines() == [
        "| self_similarity | 1 | 2 |",
        "| --- | --- | --- |",
        "| on | 0.300 [-0.971, 1.571] | 0.400 |",  # t of one degree of freedom: 12.7 times 0.1
        "| method.tau=0.5 | 0.500 |  |",
    ]


def test_a_sweep_without_such_a_figure_is_an_error(tmp_path):
    run(tmp_path, 0, "on", self_similarity=[None])
    with pytest.raises(CheckpointError, match="self_similarity"):
        curves(tmp_path, "self_similarity")

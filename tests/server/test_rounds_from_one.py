"""Rounds are counted from 0 in the program, and from 1 wherever a person reads them, older run folders included."""

import json

from server.documents.rounds import first_round
from server.domain import Candidate, number_from_one
from server.report.facts import gather
from simulations.api.result import Result
from tests.support.documents import report_of
from tests.support.runs import lines, tiny


def test_report_and_result_of_an_earlier_version_s_folder_count_from_1_too(tmp_path):
    run = tiny(tmp_path, "method.rounds=2")
    assert [line["round"] for line in lines(run, "rounds.jsonl")] == [1, 2]
    assert (first_round({0, 1}, 2), first_round({0, 1, 2}, 2)) == (1, 0)
    now = gather(run)
    for name in ("rounds.jsonl", "synthetic.jsonl"):
        rows = [row | {"round": row["round"] - 1} for row in lines(run, name)]
        (run / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert {row["round"] for row in lines(run, "synthetic.jsonl")} == {0, 1}
    then = gather(run)
    assert [entry["round"] for entry in then.to_json()["rounds"]] == [1, 2]
    assert then.to_json()["released"]["round"] == now.to_json()["released"]["round"] == {"1": 24, "2": 24}
    result = Result.load(run)
    assert result.texts["round"].value_counts().to_dict() == {1: 24, 2: 24}
    assert list(result.rounds.index) == [1, 2]


def test_a_round_0_before_all_stays_and_a_lost_first_line_shifts_nothing():
    def numbers(rounds, texts):
        made = number_from_one(
            [report_of(number) for number in rounds],
            [Candidate(text="", label="", model="", round=number) for number in texts],
        )
        return [[entry.round for entry in part] for part in made]

    assert numbers([0, 1], [0, 2]) == [[1, 2], [0, 2]]
    assert numbers([2], [1]) == [[2], [1]]

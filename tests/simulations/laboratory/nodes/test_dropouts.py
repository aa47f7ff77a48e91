import random

import pytest

from simulations.laboratory.nodes.dropouts import Faults, ended, main


class Scripted(Faults):
    """Who is away, by the number of the phase from 1; nobody in others."""

    def __init__(self, parties, away):
        super().__init__(parties, 0.0, random.Random(0), lasting=False)
        self._script = away

    def begin(self):
        super().begin()
        self._away = self._script.get(self.phases, set())


@pytest.mark.parametrize(
    ("away", "dropouts", "retries", "expected"),
    [
        ({}, 0, 0, (True, 0, 9)),
        ({3: {0}}, 1, 0, (True, 1, 9)),  # the plan can spare it
        ({3: {0}}, 0, 0, (False, 1, 3)),
        ({3: {0}}, 0, 1, (True, 1, 12)),  # set-up and query are made again
        ({3: {0}, 6: {0}}, 0, 1, (False, 2, 6)),
    ],
)
def test_what_a_hospital_s_absence_costs_is_what_the_protocol_says(away, dropouts, retries, expected):
    assert ended(Scripted(5, away), dropouts=dropouts, retries=retries) == expected


def test_a_table_says_how_many_runs_end_whole(capsys):
    assert main(["--parties", "5", "--rates", "0", "--spares", "0", "--retries", "0", "--runs", "1"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "parties"
    assert [line.split()[:6] for line in lines] == [["5", kind, "0%", "0", "0", "100%"] for kind in ("away", "gone")]

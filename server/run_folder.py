"""The files of a run folder, and how they are written and read.

config.yaml       the resolved configuration            (written by the entry point)
synthetic.jsonl   text, label, model, round, weight (1 unless the method weighs its texts)
rounds.jsonl      one line a round, from 1: counts, weights, FID, seconds, tokens
privacy.json      the guarantee and what it does not cover
run.json          identity, status ("partial" or "complete"), seconds, versions, warnings of queries that are noise
census.json       released numbers that later runs can use without asking    (by a method that has any)
metrics.json      the small model trained on synthetic texts, tested on real ones; the chosen groups of figures
map.json          two coordinates of each synthetic text
report.html       all results on one page; report.json: the same for programs
tensorboard/      figures by round, with `tracking: tensorboard`
state/            what resuming needs
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.system.files import text_of
from server.documents.codec import from_json
from server.documents.files import split, write_lines
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary
from server.domain import Candidate
from server.method import State

TEXTS = "synthetic.jsonl"


def write_run(folder: Path, state: State[Any], *, privacy: Privacy, summary: RunSummary) -> None:
    """Write texts and rounds of a state, `privacy.json` and `run.json`."""
    first = first_round({candidate.round for candidate in state.candidates}, state.round)
    write_lines(folder / TEXTS, [replace(candidate, round=candidate.round + first) for candidate in state.candidates])
    write_lines(folder / RoundReport.FILE, [report.shown() for report in state.rounds])
    privacy.save(folder)
    summary.save(folder)


def first_round(rounds: Collection[int], done: int) -> int:
    """What people read in place of 0 in the program, where rounds are counted from 0.

    Methods that vary texts after the votes of a round number the new ones by the rounds done: their 0 is before all.
    """
    return 0 if done in rounds else 1


def from_round_1(
    rounds: Sequence[RoundReport], texts: Sequence[Candidate]
) -> tuple[list[RoundReport], list[Candidate]]:
    """Rounds and texts as read from a run folder; an earlier version, which counted from 0, is counted from 1."""
    if not rounds or rounds[0].round != 0:
        return list(rounds), list(texts)
    first = first_round({text.round for text in texts}, len(rounds))
    return (
        [report.shown() for report in rounds],
        [replace(text, round=text.round + first) for text in texts],
    )


def read_candidates(folder: Path) -> list[Candidate]:
    """Read the texts of a run folder; an empty list if it has no `synthetic.jsonl`."""
    return [candidate_of(json.loads(line)) for line in split(text_of(folder / TEXTS))]


def candidate_of(line: object) -> Candidate:
    """A text from its line.

    Raises:
        FieldError: The line is of another format.
    """
    return from_json(Candidate, line)

"""The files of a run folder, with functions that write and read them.

config.yaml       the resolved configuration            (written by the entry point)
synthetic.jsonl   text, label if the task has any, model, round, weight (1 unless the method weighs its texts),
                  and probabilities of the labels, if the method has any
zero_shot.jsonl   texts of the same models before any answer of the hospitals, if the method's first round has any
rounds.jsonl      one line a round, from 1: counts, weights, FID, seconds, tokens
privacy.json      the guarantee and what it does not cover
hospitals.json    versions of Caucus at the hospitals   (of a deployment)
run.json          ID, status ("partial" or "complete"), seconds, versions, warnings of queries lost in noise
census.json       released numbers that later runs can use without asking    (by a method that has any)
metrics.json      metrics for the small model, trained on synthetic and tested on real texts; further chosen groups
transfer.jsonl    public texts with label probabilities computed from the released numbers; not synthetic data
classifier.json   the released numbers as a classifier of any text       (both by a method that has one)
map.json          two coordinates of each synthetic text
report.html       all results on one page; report.json: the same for programs
release.md        what was tested, found and not tested, for the person who decides about the texts
tensorboard/      figures by round, with `tracking: tensorboard`
input_weaknesses.json  weaknesses of a simulation's files    (before its parties are built)
lock              ID of the process that works, or worked, in the folder
state/            what resuming needs
sending/          who was sent the texts afterwards                  (by `caucus-coordinator send`)
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.domain import PartyId
from common.errors import CheckpointError
from common.ledger.ledger import Ledger
from common.plan.plan import Plan
from common.privacy import accountant
from common.system.files import text_of
from server.documents.codec import MALFORMED
from server.documents.files import split, write_lines
from server.documents.hospitals import HospitalVersion, HospitalVersions
from server.documents.privacy import Earlier, Privacy
from server.documents.rounds import RoundReport, first_round
from server.documents.run import TEXTS, TRANSFER, ZERO_SHOT, RunSummary
from server.domain import Candidate
from server.evaluation import federated_count, text_classifier
from server.federation.checkpoint import Checkpoint
from server.method import State
from server.metrics.linear import LinearClassifier
from server.planning.guarantee_facts import describe, released_numbers

SENDING = "sending"
"""Folder, within a run folder, for the process that sends the texts to the hospitals."""

_IDENTITY = {"run": "run", "plan": "privacy plan", "models": "language models", "earlier": "earlier run"}
"""The properties of a run that must not change when it resumes, and their names in messages."""


@dataclass(kw_only=True, eq=False)
class RunFolder:
    """The folder of a run in progress: the state from which the run continues, and the files written after each step.

    Attributes:
        path: The folder.
        plan: The agreed plan.
        summary: The part of `run.json` that is known at the start.
        earlier: The run whose released numbers are used instead of asking the parties.
        simulation: Whether parties and coordinator share one machine.
        labels_from_records: Whether the labels were taken from private records, without noise.
        checkpoint: Store of queries, answers and the state after the last completed step.
        ledger: The coordinator's own ledger.
    """

    path: Path
    plan: Plan
    summary: RunSummary
    earlier: Earlier | None = None
    simulation: bool
    labels_from_records: bool = False

    def __post_init__(self) -> None:
        self.checkpoint = Checkpoint(self.path / "state")
        self.ledger = Ledger(self.path / "state" / "ledger.db")
        self._identity = {
            "run": self.summary.run,
            "plan": self.plan.digest().hex(),
            "models": list(self.summary.models or ()),
            "earlier": self.earlier and self.earlier.to_json(),
        }
        self._started = time.monotonic()

    def resumed(self, memory: type[Any]) -> State[Any] | None:
        """Return the state after the last completed step, with the method's memory of this class; None for a new run.

        The measured duration of the run continues from that step.

        Raises:
            CheckpointError: The state belongs to another run, plan or choice of models.
        """
        snapshot = self.checkpoint.load()
        self._started = time.monotonic() - (snapshot["seconds"] if snapshot else 0.0)
        if snapshot is None:
            return None
        for name, value in self._identity.items():
            if snapshot.get(name) != value:
                raise CheckpointError(
                    _IDENTITY[name],
                    expected="as this run was started",
                    got="another",
                    where=self.path,
                    do="Resume with the same configuration, or start a new run",
                )
        return State.from_dict(snapshot["state"], memory)

    def save(self, state: State[Any], status: str) -> None:
        """Store the state, and write the files derived from it."""
        seconds = time.monotonic() - self._started
        self.checkpoint.save(self._identity | {"seconds": seconds, "state": state.to_dict()})
        privacy = describe(
            self.plan,
            ledger=self.ledger,
            run=self.summary.run,
            simulation=self.simulation,
            labels_from_records=self.labels_from_records,
            earlier=self.earlier,
        )
        for name, numbers in state.released.items():
            released_numbers(self.plan, self.summary.run, privacy, numbers).save(self.path, name)
        summary = replace(self.summary, status=status, seconds=round(seconds, 3))
        write_run(self.path, state, privacy=privacy, summary=summary)

    def record_versions(self, versions: Mapping[PartyId, str]) -> None:
        """Record the version of Caucus that each party reported at an opening; do nothing in a simulation."""
        names = self.summary.hospitals
        if names is None:
            return
        before = HospitalVersions.load_if_there(self.path)
        at = now()
        reported = {names[party]: HospitalVersion(caucus=caucus, at=at) for party, caucus in versions.items()}
        HospitalVersions(versions={**(before.versions if before else {}), **reported}).save(self.path)

    def keep_zero_shot(self, candidates: Sequence[Candidate]) -> None:
        """Write the texts that the same models wrote without the hospitals, if the hospitals steer the run."""
        steered = self.earlier or any(query.name != federated_count.NAME for query in self.plan.queries)
        if candidates and steered:
            write_lines(self.path / ZERO_SHOT, candidates)

    def keep_classifier(self, trained: LinearClassifier, transfer: Sequence[Candidate]) -> None:
        """Write the classifier made from the released numbers, and its labels for public texts, if there are any."""
        privacy = Privacy.load(self.path)
        origin = privacy.earlier
        run, encoder = (origin.run, origin.encoder) if origin else (self.summary.run, self.plan.encoder)
        text_classifier.classifier_document(
            trained, text_classifier.RELEASED, run=run, encoder=encoder, privacy=privacy
        ).save(self.path)
        if transfer:
            write_lines(self.path / TRANSFER, transfer)

    def epsilon(self) -> float:
        """Return the privacy loss of all answers so far, including those of an earlier run that are used again."""
        if self.earlier:
            return self.earlier.epsilon
        return accountant.epsilon(self.ledger.releases(self.summary.run), self.plan.delta)


def write_run(folder: Path, state: State[Any], *, privacy: Privacy, summary: RunSummary) -> None:
    """Write the texts and rounds of a state, `privacy.json` and `run.json`."""
    first = first_round({candidate.round for candidate in state.candidates}, state.round)
    write_lines(folder / TEXTS, [replace(candidate, round=candidate.round + first) for candidate in state.candidates])
    write_lines(folder / RoundReport.FILE, [report.for_readers() for report in state.rounds])
    privacy.save(folder)
    summary.save(folder)


def now() -> str:
    """Return the UTC time to the second, in the format that Flower uses for the times of nodes."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%SZ}"


def first_day(folder: Path) -> str:
    """Return the day on which the run began; for a resumed run, the day of its first start."""
    before = RunSummary.load_if_there(folder)
    return (before and before.started) or datetime.now().astimezone().date().isoformat()


def read_candidates(folder: Path, name: str = TEXTS) -> list[Candidate]:
    """Read the texts of a run folder; an empty list if it has no file of this name.

    Raises:
        CheckpointError: A line is not a text in our format.
    """
    try:
        return [Candidate.from_json(json.loads(line)) for line in split(text_of(folder / name))]
    except MALFORMED as error:
        raise CheckpointError(name, expected="a text in each line", got="a damaged line", where=folder) from error

"""The loop. Read this first.

    plan -> open -> for each round: step, measure, save -> close -> evaluate -> report

The run folder is the product (`server/run_folder.py` lists its files). It is complete, or `run.json` says "partial" and
`--resume` continues from the last whole step: the models' texts come from the reply cache, the parties' answers from
the checkpoint.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import CheckpointError
from common.ledger.ledger import Ledger
from common.privacy import accountant
from server.documents.files import write_json
from server.documents.metrics import Metrics
from server.documents.rounds import Payment, RoundReport
from server.documents.run import COMPLETE, PARTIAL, RunSummary, versions
from server.evaluation import federated_count, fields, figures, of_texts, projection, small_model
from server.federation.ask import Federation
from server.federation.checkpoint import Checkpoint
from server.llm.spending import Spending
from server.method import State
from server.metrics import fidelity
from server.parts import RunParts
from server.planning.guarantee_facts import describe, released
from server.planning.modes import simplified
from server.planning.signal import hopeless, signals
from server.report import read_weaknesses, write_report
from server.report.tensorboard import track
from server.run_folder import write_run
from server.tools import RunTools

log = logging.getLogger("caucus.run")


def run(setup: RunParts) -> State[Any]:
    """Run to the end, from the beginning or from the last whole step in the run folder.

    Returns:
        The last state; all other results are in the folder.
    """
    parts, folder, options = setup.parts, setup.folder, setup.options
    method, plan, task = parts.method, parts.plan, parts.source.task()
    test = task.read(parts.source.held_out())
    checkpoint = Checkpoint(folder / "state")
    ledger = Ledger(folder / "state" / "ledger.db")
    federation = Federation(
        network=setup.network,
        plan=plan,
        run=setup.run,
        checkpoint=checkpoint,
        ledger=ledger,
        roster=parts.roster,
        retries=options.retries,
    )
    tools = RunTools(parts, federation, experiment_seed=options.experiment_seed)
    test_vectors = tools.encoder.encode([record.text for record in test])
    if not test and not options.simulation:  # a simulation has said it of its inputs
        log.info("no accuracy and no FID: task.test is not set")
    notes = simplified(method, parts.providers)
    warnings = hopeless(signals(plan, method.compared(task), options.expected_records))
    for note in (*notes, *warnings.values()):
        log.warning("%s", note)
    snapshot = _snapshot(checkpoint, setup)
    state = State.from_dict(snapshot["state"], method.memory) if snapshot else method.start(tools)
    started = time.monotonic() - (snapshot["seconds"] if snapshot else 0.0)

    def save(*, status: str) -> None:
        seconds = time.monotonic() - started
        checkpoint.save(_identity(setup) | {"seconds": seconds, "state": state.to_dict()})
        _write(setup, state, ledger=ledger, status=status, seconds=seconds, warnings=warnings)

    save(status=PARTIAL)

    if state.round < method.rounds:
        for provider in parts.providers.values():
            provider.check()
    if plan.queries:
        federation.open()
    while state.round < method.rounds:
        tools.start_round(state.candidates)
        state = method.step(state, tools)
        vectors = tools.embed([candidate.text for candidate in task.read(state.candidates)])
        *earlier, report = state.rounds
        report = replace(
            report,
            notes=report.notes if earlier else (*report.notes, *notes),
            **_fid(vectors, test_vectors),
            seconds=tools.meter.seconds(),
            queries=tuple(tools.meter.queries()),
            paid=payments(parts.spending, before=earlier),
            epsilon=_epsilon(setup, ledger),
        )
        state = replace(state, rounds=(*earlier, report))
        save(status=PARTIAL)
        track(options.tracking, folder, state.round, report.shown())
        said = "" if report.fid is None else f", FID {report.fid:.3f}"
        log.info("round %d of %d: %d candidates%s", state.round, method.rounds, len(state.candidates), said)
    count = _federated_count(setup, federation, tools, state)
    if plan.queries:
        federation.close()

    log.info("evaluating %d texts: %s", len(state.candidates), ", ".join(parts.evaluation.metrics) or "accuracy")
    measured = figures.Measured(
        candidates=task.read(state.candidates),
        test=test,
        evaluation=parts.evaluation,
        encoder=parts.encoder,
        experiment_seed=options.experiment_seed,
        embed=tools.embed,
        released=[candidate.text for candidate in state.candidates],
        public=lambda: [example.text for example in parts.source.public_examples()],
    )
    metrics = Metrics(
        content=small_model.metrics(measured.candidates, test, parts.evaluation, parts.encoder)
        | count
        | of_texts.of_texts(measured)
        | fields.of_run(measured.whole_texts, task.structure, (report.cleaned for report in state.rounds))
    )
    if paid := payments(parts.spending):
        metrics = metrics.adding({"paid": paid})
    metrics.save(folder)
    track(options.tracking, folder, state.round + 1, metrics)
    projection.synthetic_map(measured.vectors).save(folder)
    save(status=COMPLETE)
    _report(folder, warnings)
    return state


def _report(folder: Path, warnings: Mapping[str, str]) -> None:
    """Write the report, and say in the log what is poor, unless it was said at the start."""
    write_report(folder)
    for weakness in map(str, read_weaknesses(folder)):
        if weakness not in warnings.values():
            log.warning("%s", weakness)


def _fid(vectors: NDArray[np.float32], test_vectors: NDArray[np.float32]) -> dict[str, Any]:
    fid = small_model.fid_or_none(vectors, test_vectors) if len(test_vectors) else None
    return {"fid": fid, "fid_error": None if fid is None else fidelity.fid_error(vectors, test_vectors)}


def _epsilon(setup: RunParts, ledger: Ledger) -> float:
    """Privacy loss of all answers so far, those of an earlier run that are used again included."""
    if earlier := setup.parts.earlier:
        return earlier.epsilon
    return accountant.epsilon(ledger.releases(setup.run), setup.parts.plan.delta)


def _federated_count(setup: RunParts, federation: Federation, tools: RunTools, state: State[Any]) -> dict[str, Any]:
    """Accuracy on the parties' own records, by a private count; empty if the plan has none."""
    plan = setup.parts.plan
    if not federated_count.planned(plan):
        return {}
    vectors = tools.embed([candidate.text for candidate in state.candidates])
    question = federated_count.question(vectors, state.candidates, plan)
    return {"federated": federated_count.measured(plan, federation.ask(federated_count.NAME, 0, question))}


def payments(spending: Spending, before: Sequence[RoundReport] = ()) -> dict[str, Payment]:
    """Payments for remote models in this run, by name, minus those in the reports of earlier rounds.

    So a round's report has all payments for the round, by every process before and after a crash.
    """
    left = {model: paid.payment for model, paid in spending.paid().items()}
    for report in before:
        for model, earlier in report.paid.items():
            left[model] -= earlier
    return {model: payment for model, payment in left.items() if payment.replies}


_IDENTITY = {"run": "run", "plan": "privacy plan", "models": "language models", "earlier": "earlier run"}


def _identity(setup: RunParts) -> dict[str, Any]:
    """The properties of a run that no resumption may change."""
    earlier = setup.parts.earlier
    return {
        "run": setup.run,
        "plan": setup.parts.plan.digest().hex(),
        "models": list(setup.parts.providers),
        "earlier": earlier and earlier.to_json(),
    }


def _snapshot(checkpoint: Checkpoint, setup: RunParts) -> dict[str, Any] | None:
    """The snapshot to continue from, or None for a new run.

    Raises:
        CheckpointError: It is of another run, plan or choice of models.
    """
    snapshot = checkpoint.load()
    if snapshot is None:
        return None
    for name, value in _identity(setup).items():
        if snapshot.get(name) != value:
            raise CheckpointError(
                _IDENTITY[name],
                expected="as this run was started",
                got="another",
                where=setup.folder,
                do="Resume with the same configuration, or start a new run",
            )
    return snapshot


def _write(
    setup: RunParts, state: State[Any], *, ledger: Ledger, status: str, seconds: float, warnings: Mapping[str, str]
) -> None:
    """Write the files of the run folder that follow the state."""
    parts, options = setup.parts, setup.options
    privacy = describe(
        parts.plan,
        ledger=ledger,
        run=setup.run,
        simulation=options.simulation,
        labels_from_records=options.labels_from_records,
        earlier=parts.earlier,
    )
    for name, numbers in state.released.items():
        write_json(setup.folder / name, released(parts.plan, setup.run, privacy, numbers).to_json())
    summary = RunSummary(
        run=setup.run,
        status=status,
        method=parts.method.name,
        task=parts.source.task().name,
        parties=parts.plan.parties,
        labels=parts.source.task().labels,
        seconds=round(seconds, 3),
        warnings=warnings,
        versions=versions(),
        started=_started(setup.folder),
        models=tuple(parts.providers),
        encoder=options.encoder,
        purpose=parts.plan.purpose,
        recipient=parts.plan.recipient,
        hospitals=options.hospitals or None,
    )
    write_run(setup.folder, state, privacy=privacy, summary=summary)


def _started(folder: Path) -> str:
    """The day on which the run began: the first one, if it was resumed."""
    before = RunSummary.load(folder).started if (folder / RunSummary.FILE).exists() else None
    return before or datetime.now().astimezone().date().isoformat()

"""The loop. Read this first.

    plan -> open -> for each round: step, save -> close -> evaluate, report

The run folder is the product. It is complete, or `run.json` says "partial" and `--resume` goes on from the last whole
step: texts that models have written come from the reply cache, answers that parties have given from the checkpoint.

    config.yaml       what was asked for                    (written by the entry point)
    synthetic.jsonl   text, label, model, round, weight (1 unless the method weighs its texts)
    rounds.jsonl      one line a round: counts, weights, FID, seconds, tokens
    privacy.json      the guarantee and what it does not cover
    metrics.json      the small model trained on synthetic texts, tested on real ones; the chosen groups of figures
    map.json          two coordinates of each synthetic text
    report.html       all of it on one page; report.json: the same for programs
    tensorboard/      figures by round, with `tracking: tensorboard`
    state/            what resuming needs
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

from common.errors import CheckpointError
from common.ledger.ledger import Ledger
from common.privacy import accountant
from server.evaluation import federated_count, figures, of_texts, projection, small_model
from server.federation.ask import Federation
from server.federation.checkpoint import Checkpoint
from server.llm.spending import Spending
from server.method import RoundReport, State, Tools
from server.parts import RunParts
from server.planning.guarantee_facts import describe
from server.report import write_report
from server.report.tensorboard import track
from server.run_folder import write_json, write_lines
from server.tools import RunTools

log = logging.getLogger("caucus.run")

VERSIONS = ("caucus", "flwr", "torch", "sentence-transformers", "dp-accounting", "numpy", "cryptography")


def run(setup: RunParts) -> State[Any]:
    """Run to the end, or from where the folder stands.

    Returns:
        The last state; everything else is in the folder.
    """
    checkpoint = Checkpoint(setup.folder / "state")
    ledger = Ledger(setup.folder / "state" / "ledger.db")
    federation = Federation(
        network=setup.network,
        plan=setup.plan,
        run=setup.run,
        checkpoint=checkpoint,
        ledger=ledger,
        roster=setup.roster,
        retries=setup.retries,
    )
    tools = RunTools(setup, federation)
    held_out = tools.encoder.encode([record.text for record in setup.held_out])
    saved = _saved(checkpoint, setup)
    state = State.from_dict(saved["state"], setup.method.memory) if saved else setup.method.start(tools)
    started = time.monotonic() - (saved["seconds"] if saved else 0.0)

    def save(*, status: str) -> None:
        seconds = time.monotonic() - started
        checkpoint.save(_identity(setup) | {"seconds": seconds, "state": state.to_dict()})
        _write(setup, state, ledger=ledger, status=status, seconds=seconds)

    save(status="partial")

    if state.round < setup.method.rounds:
        for provider in setup.providers.values():
            provider.check()
    asks = bool(setup.plan.queries)
    if asks:
        federation.open()
    while state.round < setup.method.rounds:
        tools.start_round(state.candidates)
        state = setup.method.step(state, tools)
        fid = small_model.fid_or_none(tools.embed([candidate.text for candidate in state.candidates]), held_out)
        *earlier, report = state.rounds
        report = replace(
            report,
            fid=fid,
            seconds=tools.meter.seconds(),
            queries=tuple(tools.meter.queries()),
            paid=_paid(setup.spending, before=earlier),
            epsilon=accountant.epsilon(ledger.releases(setup.run), setup.plan.delta),
        )
        state = replace(state, rounds=(*earlier, report))
        save(status="partial")
        track(setup.tracking, setup.folder, state.round, report.to_dict())
        log.info("round %d of %d: %d candidates, FID %s", state.round, setup.method.rounds, len(state.candidates), fid)
    counted = _federated(setup, federation, tools, state) if federated_count.planned(setup.plan) else {}
    if asks:
        federation.close()

    metrics = small_model.metrics(state.candidates, setup.held_out, setup.evaluation, setup.encoder) | counted
    metrics |= of_texts.of_texts(
        figures.Measured(
            candidates=state.candidates,
            test=setup.held_out,
            evaluation=setup.evaluation,
            encoder=setup.encoder,
            experiment_seed=setup.experiment_seed,
            embed=tools.embed,
        )
    )
    if paid := _paid(setup.spending):
        metrics["paid"] = paid
    write_json(setup.folder / "metrics.json", metrics)
    track(setup.tracking, setup.folder, state.round + 1, metrics)
    vectors = tools.embed([candidate.text for candidate in state.candidates])
    write_json(setup.folder / projection.SYNTHETIC, projection.synthetic_map(vectors))
    save(status="complete")
    write_report(setup.folder)
    return state


def _federated(setup: RunParts, federation: Federation, tools: Tools, state: State[Any]) -> dict[str, Any]:
    vectors = tools.embed([candidate.text for candidate in state.candidates])
    question = federated_count.question(vectors, state.candidates, setup.plan)
    return {"federated": federated_count.measured(setup.plan, federation.ask(federated_count.NAME, 0, question))}


def _paid(spending: Spending, before: Sequence[RoundReport] = ()) -> dict[str, dict[str, Any]]:
    """What remote models were paid in this run, by name, less what the reports of the rounds before say.

    So a round's report has all that was paid for the round, by whatever process before and after a crash.
    """
    amounts = {model: paid.to_dict() for model, paid in spending.paid().items()}
    for report in before:
        for model, part in report.paid.items():
            own = amounts[model]
            amounts[model] = {
                kind: None if own[kind] is None or part[kind] is None else round(own[kind] - part[kind], 6)
                for kind in own
            }
    return {model: amount for model, amount in amounts.items() if amount["replies"]}


def _identity(setup: RunParts) -> dict[str, Any]:
    """What a run keeps from its first step to its last, whatever a configuration says later."""
    return {"run": setup.run, "plan": setup.plan.digest().hex(), "models": list(setup.providers)}


def _saved(checkpoint: Checkpoint, setup: RunParts) -> dict[str, Any] | None:
    """The state to go on from, or None for a new run."""
    saved = checkpoint.load()
    if saved is None:
        return None
    for what, value in _identity(setup).items():
        if saved[what] != value:
            raise CheckpointError(
                {"run": "run", "plan": "privacy plan", "models": "language models"}[what],
                expected="as this run was started",
                got="another",
                where=setup.folder,
                do="Resume with the same configuration, or start a new run",
            )
    return saved


def _write(setup: RunParts, state: State[Any], *, ledger: Ledger, status: str, seconds: float) -> None:
    write_lines(setup.folder / "synthetic.jsonl", map(asdict, state.candidates))
    write_lines(setup.folder / "rounds.jsonl", [report.to_dict() for report in state.rounds])
    privacy = describe(
        setup.plan,
        ledger=ledger,
        run=setup.run,
        simulation=setup.simulation,
        labels_from_records=setup.labels_from_records,
    )
    write_json(setup.folder / "privacy.json", privacy)
    write_json(
        setup.folder / "run.json",
        {
            "run": setup.run,
            "status": status,
            "method": setup.method.name,
            "task": setup.task.name,
            "parties": setup.plan.parties,
            "seconds": round(seconds, 3),
            "versions": {name: version(name) for name in VERSIONS},
        },
    )

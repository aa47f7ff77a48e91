"""Flower's ServerApp: compose the configuration, build the parts, call `server/run.py`.

A simulation or `caucus-coordinator` leaves a resolved `config.yaml` in a run folder and names the folder in Flower's
run configuration. `caucus-coordinator send` names the folder `sending` within a run folder; the run's texts are then
sent to the hospitals. A bare `flwr run` may give Hydra overrides instead, and a new folder is created.
"""

import contextlib
import hashlib
import logging
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from common.errors import ConfigError
from common.ledger.ledger import Ledger
from common.system.progress import progress
from server.documents.hospitals import SentDocument
from server.documents.run import PARTIAL, TEXTS, RunSummary, versions
from server.failure import logging_to
from server.federation.ask import Federation
from server.federation.exchange import send_texts
from server.federation.network import FlowerNetwork, Network
from server.flower.grid import ask_for_parts_sooner
from server.guarantee.messages import show_epsilon
from server.llm.render import advice_on_descriptions, kinds_of
from server.method import State
from server.planning.signal import few_candidates, hopeless, with_weakest_parts
from server.prepare.automatic import expected_records, resolve_auto
from server.prepare.calls import call_lines, check_calls, expected_calls
from server.prepare.components import RunComponents, build_components
from server.prepare.compose import compose_settings, load_settings, store
from server.report.ending import ending
from server.run import run
from server.run_folder import SENDING, RunFolder, first_day, now
from server.settings.schema import Settings, SimulationSettings
from server.tasks.sources import unmarked_types
from server.tools import RunTools

log = logging.getLogger("caucus")

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the configuration of the run folder."""
    sending = False
    if named := context.run_config.get("run-folder"):
        folder = Path(str(named))
        sending = folder.name == SENDING and not (folder / "config.yaml").exists()
        settings = load_settings(folder.parent if sending else folder)
    else:
        settings = resolve_auto(compose_settings(shlex.split(str(context.run_config.get("overrides", "")))))
        folder = Path("runs") / settings.run
        store(settings, folder)
    hospitals = settings.federation.hospitals or ()
    names = [hospital.name for hospital in hospitals]
    enrolled = {hospital.node: number for number, hospital in enumerate(hospitals)}
    network = FlowerNetwork(grid, timeout=settings.federation.timeout, enrolled=enrolled)
    simulated = isinstance(settings, SimulationSettings)
    if not simulated:
        ask_for_parts_sooner(lambda: network.seconds_left)
    alone = simulated and "overrides" in context.run_config
    if alone:  # `flwr run` of the project: nobody else has set up a log, and `--stream` shows this one
        log.addHandler(logging.StreamHandler(sys.stdout))
        log.setLevel(logging.INFO)
    with contextlib.nullcontext() if simulated else logging_to(folder, names):
        deliver(settings, network, folder) if sending else coordinate(settings, network, folder)
    for line in ending(folder.resolve()) if alone else ():
        log.info("%s", line)


def deliver(settings: Settings, network: FlowerNetwork, folder: Path) -> None:
    """Send a run's texts to the hospitals that answered it, and record which hospitals received them.

    `folder` is `SENDING` within the run folder.

    Raises:
        ConfigError: No hospital has answered the run.
    """
    names = [hospital.name for hospital in settings.federation.hospitals or ()]
    run = folder.parent
    entries = Ledger(run / "state" / "ledger.db", read_only=True).entries(settings.run)
    parties = {party for entry in entries for party in entry.survivors or ()}
    if not parties:
        raise ConfigError("no hospital answered the run", where=run, do="Send the texts of a run that asked some")
    texts = (run / TEXTS).read_bytes()
    problems = send_texts(network, texts, parties, run=settings.run, plan_digest=entries[0].plan_digest)
    before, digest = SentDocument.last(folder, []), hashlib.sha256(texts).hexdigest()  # what is damaged is written anew
    had = before.received if before and before.texts == digest else {}
    received = {names[party]: now() for party, problem in problems.items() if not problem} | {**had}
    missing = {names[party]: problem for party, problem in problems.items() if names[party] not in received}
    log.info("the texts are at %s", ", ".join(received) or "no hospital")
    for name, problem in missing.items():
        log.warning("the texts are not at %s: it %s", name, problem)
    SentDocument(texts=digest, sent_at=datetime.now(UTC).isoformat(), received=received, missing=missing).save(folder)


def coordinate(settings: Settings, network: Network, folder: Path) -> None:
    """Build all parts of a run, then run all rounds."""
    with progress("building models, encoder and plan"):
        parts = build_components(settings, folder=folder / "state")
    run_with(parts, settings, network, folder)


def run_with(parts: RunComponents, settings: Settings, network: Network, folder: Path) -> State[Any]:
    """Run all rounds with parts that are already built, and return the final state."""
    simulation = isinstance(settings, SimulationSettings)
    method, plan, source = parts.method, parts.plan, parts.source
    task = source.task()
    test = task.classifier_inputs(source.held_out())
    if not test and not simulation:  # a simulation has said it of its inputs
        log.info("no accuracy and no FID: task.test is not set")
    records, compared, calls = expected_records(settings), method.compared(task), expected_calls(settings, parts)
    unspoken = advice_on_descriptions(task) if parts.prompted else ""
    for advice in filter(None, (unmarked_types(source), unspoken, *few_candidates(plan, compared))):
        log.warning("%s", advice)
    facts = (method.name, method.rounds, plan.parties, plan.questions)
    what = "[1/4] plan: method %s, rounds: %d, hospitals: %d, queries to each: %d, ε at most %s"
    log.info(what, *facts, show_epsilon(parts.epsilon))
    for line in call_lines(calls):
        log.info("%s", line)
    if not (folder / RunSummary.FILE).exists():  # a run that goes on was agreed on
        check_calls(calls, settings, parts)
    estimates = with_weakest_parts(plan, compared, records)
    run_folder = RunFolder(
        path=folder,
        plan=plan,
        summary=RunSummary(
            run=settings.run,
            status=PARTIAL,
            method=method.name,
            task=task.name,
            parties=plan.parties,
            kind=kinds_of(task.kind, task.wording),
            labels=task.labels,
            spans=task.spans or None,
            seconds=0.0,
            warnings=hopeless(estimates),
            versions=versions(),
            started=first_day(folder),
            models=tuple(parts.providers),
            prompts=parts.prompts.digest,
            encoder=settings.embedding.model or "hashed n-grams",
            purpose=plan.purpose,
            recipient=plan.recipient,
            hospitals=tuple(hospital.name for hospital in settings.federation.hospitals or ()) or None,
        ),
        earlier=parts.earlier,
        simulation=simulation,
        labels_from_records=isinstance(settings, SimulationSettings) and settings.labels_from_records,
    )
    federation = Federation(
        network=network,
        plan=plan,
        run=settings.run,
        checkpoint=run_folder.checkpoint,
        ledger=run_folder.ledger,
        roster=parts.roster,
        retries=settings.federation.retries,
        heard=run_folder.record_versions,
    )
    tools = RunTools(
        task=task,
        plan=plan,
        federation=federation,
        encoder=parts.encoder,
        providers=parts.providers,
        cleaner=parts.cleaner,
        texts_per_request=method.texts_per_request,
        spending=parts.spending,
        experiment_seed=settings.experiment_seed,
        most_lost=parts.most_lost,
    )
    return run(
        method,
        tools,
        federation,
        run_folder,
        source=source,
        test=test,
        evaluation=parts.evaluation,
        tracking=settings.tracking,
    )

"""Flower's ServerApp: compose the configuration, build the parts, call `server/run.py`.

A simulation or `caucus-coordinator` leaves a resolved `config.yaml` in a run folder and names the folder in Flower's
run configuration; `flwr run` alone may give Hydra overrides instead, and a new folder is created.
"""

import contextlib
import logging
import shlex
import sys
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from common.errors import ConfigError
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.queries.class_sums import ClassSumsSpec
from server.domain import Earlier, Task
from server.evaluation.small_model import Evaluation
from server.failure import logging_to
from server.federation.network import FlowerNetwork, Network
from server.flower.grid import ask_for_parts_sooner
from server.llm import providers
from server.llm.spending import Spending
from server.method import Method, Reusing
from server.operators.party_texts import PartyTexts
from server.parts import Options, Parts, RunParts
from server.planning.modes import refuse_declined
from server.report import tensorboard
from server.run import run
from server.settings.automatic import expected_records, settled
from server.settings.build import build, method_of, plan_of, roster_of
from server.settings.compose import composed, load, store
from server.settings.schema import Settings, SimulationSettings
from server.settings.sections import Part
from server.tasks.sources import Source
from server.vector_cache import Remembered

log = logging.getLogger("caucus")

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the configuration of the run folder."""
    if named := context.run_config.get("run-folder"):
        folder = Path(str(named))
        settings = load(folder)
    else:
        settings = settled(composed(shlex.split(str(context.run_config.get("overrides", "")))))
        folder = Path("runs") / settings.run
        store(settings, folder)
    hospitals = settings.federation.hospitals or ()
    names = [hospital.name for hospital in hospitals]
    enrolled = {hospital.node: number for number, hospital in enumerate(hospitals)}
    network = FlowerNetwork(grid, timeout=settings.federation.timeout, enrolled=enrolled)
    simulated = isinstance(settings, SimulationSettings)
    if not simulated:
        ask_for_parts_sooner(lambda: network.left)
    alone = simulated and "overrides" in context.run_config
    if alone:  # `flwr run` of the project: nobody else has set up a log, and `--stream` shows this one
        log.addHandler(logging.StreamHandler(sys.stdout))
        log.setLevel(logging.INFO)
    with contextlib.nullcontext() if simulated else logging_to(folder, names):
        coordinate(settings, network, folder)
    if alone:
        log.info("done: %s", (folder / "report.html").resolve())


def coordinate(settings: Settings, network: Network, folder: Path) -> None:
    """Build all parts of a run and run it."""
    options = Options(
        experiment_seed=settings.experiment_seed,
        simulation=isinstance(settings, SimulationSettings),
        labels_from_records=isinstance(settings, SimulationSettings) and settings.labels_from_records,
        retries=settings.federation.retries,
        expected_records=expected_records(settings),
        tracking=settings.tracking,
        encoder=_encoder_name(settings.embedding),
        hospitals=tuple(hospital.name for hospital in settings.federation.hospitals or ()),
    )
    parts = build_parts(settings, folder=folder / "state")
    run(RunParts(run=settings.run, folder=folder, network=network, parts=parts, options=options))


def _encoder_name(embedding: Part) -> str:
    return str(embedding.settings.get("name_or_path") or embedding.settings.get("model") or "hashed n-grams")


def build_parts(settings: Settings, *, folder: Path | None = None) -> Parts:
    """Build and check everything that the settings name, before anything private is touched.

    Args:
        settings: They may have `auto`.
        folder: Folder of caches and accounts, created if missing; None keeps nothing on disk.
    """
    settings = settled(settings)
    tensorboard.check(settings.tracking)
    roster = roster_of(settings)
    (folder or Path()).mkdir(parents=True, exist_ok=True)
    source: Source = build(settings.task)
    encoder: Encoder = build(settings.embedding)
    method = method_of(settings)
    _check_structure(method, source.task())
    evaluation: Evaluation = build(settings.evaluation)
    plan = plan_of(settings, method, source.task(), encoder=encoder.digest, roster=roster)
    _check_directions(plan, encoder)
    cache = settings.embedding_cache
    if path := (folder and folder / "vectors.db") if cache == "run" else cache:
        encoder = Remembered(encoder, path)
    replies, llm = settings.reply_cache, settings.llm
    spending = Spending(
        path=folder / providers.SPENDING if folder else None,
        max_cost=llm.max_cost,
        max_tokens=llm.max_tokens,
    )
    models = providers.providers(
        {name: build(model, partial=True) for name, model in llm.models.items()},
        use=llm.use,
        public_texts=source.public_texts,
        public_examples=source.public_examples,
        encoder=encoder,
        experiment_seed=settings.experiment_seed,
        spending=spending,
        folder=folder,
        cache=Path(replies) if replies else None,
    )
    refuse_declined(method, models)
    earlier = method.earlier() if isinstance(method, Reusing) else None
    if earlier:
        _check_earlier(earlier, encoder, plan)
    return Parts(
        source=source,
        method=method,
        plan=plan,
        roster=roster,
        encoder=encoder,
        cleaner=providers.cleaner(llm.clean, source.task(), source.public_texts),
        providers=models,
        spending=spending,
        evaluation=evaluation,
        earlier=earlier,
    )


def _check_structure(method: Method[Any], task: Task) -> None:
    """Refuse structured texts where parties' own models write the texts, which read no schema.

    Raises:
        ConfigError: Naming the method.
    """
    if task.structure and isinstance(method, PartyTexts):
        raise ConfigError(
            "task.structure",
            expected="null, as the parties' own models write the texts and know no schema",
            got=f"a schema, with method {method.name}",
            do="Choose another method, or set task.structure=null",
        )


def _check_directions(plan: Plan, encoder: Encoder) -> None:
    """Refuse more directions than the encoder has dimensions, before texts are paid for.

    Raises:
        ConfigError: Naming both numbers.
    """
    for query in plan.queries:
        if isinstance(query.spec, ClassSumsSpec) and query.spec.directions > encoder.dimensions:
            raise ConfigError(
                "method.directions",
                expected=f"at most {encoder.dimensions}, the encoder's dimensions",
                got=query.spec.directions,
            )


def _check_earlier(earlier: Earlier, encoder: Encoder, plan: Plan) -> None:
    """Refuse an earlier run's numbers that belong to another encoder, or that are not all that is used.

    Raises:
        ConfigError: Naming the setting.
    """
    if encoder.digest != earlier.encoder:
        raise ConfigError(
            "embedding",
            expected=f"the encoder of run {earlier.run}, {earlier.encoder[:12]}",
            got=encoder.digest[:12],
            do="Choose the encoder of that run: its numbers mean nothing in another one's space",
        )
    if plan.queries:
        raise ConfigError(
            "evaluation.federated",
            expected="0: this run makes texts of what an earlier run asked, and asks no party",
            got=", ".join(query.name for query in plan.queries),
            do="Set evaluation.federated=0, and evaluate on public texts",
        )

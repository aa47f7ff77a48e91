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
from omegaconf import DictConfig

from common import validate
from common.errors import ConfigError
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.queries.class_sums import ClassSumsSpec
from server import configuration, setting_checks
from server.domain import Earlier, Task
from server.draft import build, method_of, plan_of, roster_of, without_auto
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
from server.tasks.sources import Source
from server.vector_cache import Remembered

log = logging.getLogger("caucus")

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the configuration of the run folder."""
    folder = context.run_config.get("run-folder")
    if folder:
        config = configuration.load(Path(str(folder)))
    else:
        config = without_auto(configuration.composed(shlex.split(str(context.run_config.get("overrides", "")))))
        folder = Path("runs") / config.run
        configuration.store(config, folder)
    hospitals = config.federation.get("hospitals") or []
    names = [hospital.name for hospital in hospitals]
    timeout = setting_checks.number("federation.timeout", config.federation.timeout)
    enrolled = {hospital.node: number for number, hospital in enumerate(hospitals)}
    network = FlowerNetwork(grid, timeout=timeout, enrolled=enrolled)
    if "engine" not in config:
        ask_for_parts_sooner(lambda: network.left)
    alone = "engine" in config and "overrides" in context.run_config
    if alone:  # `flwr run` of the project: nobody else has set up a log, and `--stream` shows this one
        log.addHandler(logging.StreamHandler(sys.stdout))
        log.setLevel(logging.INFO)
    with contextlib.nullcontext() if "engine" in config else logging_to(Path(str(folder)), names):
        coordinate(config, network, Path(str(folder)))
    if alone:
        log.info("done: %s", (Path(str(folder)) / "report.html").resolve())


def coordinate(config: DictConfig, network: Network, folder: Path) -> None:
    """Build all parts of a run and run it."""
    options = Options(
        experiment_seed=config.experiment_seed,
        simulation="engine" in config,
        labels_from_records=bool(config.get("labels_from_records")),
        retries=config.federation.retries,
        expected_records=setting_checks.expected_records(config),
        tracking=config.get("tracking"),
        encoder=_encoder_name(config),
        hospitals=tuple(hospital.name for hospital in config.federation.get("hospitals") or ()),
    )
    parts = build_parts(config, folder=folder / "state")
    run(RunParts(run=config.run, folder=folder, network=network, parts=parts, options=options))


def _encoder_name(config: DictConfig) -> str:
    return str(config.embedding.get("name_or_path") or config.embedding.get("model") or "hashed n-grams")


def build_parts(config: DictConfig, *, folder: Path | None = None) -> Parts:
    """Build and check everything that the configuration names, before anything private is touched.

    Args:
        config: A resolved configuration, which may have `auto`.
        folder: Folder of caches and accounts, created if missing; None keeps nothing on disk.
    """
    config = without_auto(config)
    setting_checks.check_names(config)
    validate.integers(0, section="federation", retries=config.federation.retries)
    timeout = setting_checks.number("federation.timeout", config.federation.timeout)
    validate.at_least(0, section="federation", timeout=timeout)
    tensorboard.check(config.get("tracking"))
    roster = roster_of(config)
    (folder or Path()).mkdir(parents=True, exist_ok=True)
    source: Source = build(config.task)
    encoder: Encoder = build(config.embedding)
    method = method_of(config)
    _check_structure(method, source.task())
    evaluation: Evaluation = build(config.evaluation)
    plan = plan_of(config, method, source.task(), encoder=encoder.digest, roster=roster)
    _check_directions(plan, encoder)
    cache = config.get("embedding_cache")
    if path := (folder and folder / "vectors.db") if cache == "run" else cache:
        encoder = Remembered(encoder, path)
    replies = config.get("reply_cache")
    spending = Spending(
        path=folder / providers.SPENDING if folder else None,
        max_cost=config.llm.get("max_cost"),
        max_tokens=config.llm.get("max_tokens"),
    )
    models = providers.providers(
        {name: build(spec, _partial_=True) for name, spec in config.llm.models.items()},
        use=config.llm.use,
        public_texts=source.public_texts,
        public_examples=source.public_examples,
        encoder=encoder,
        experiment_seed=config.experiment_seed,
        spending=spending,
        folder=folder,
        cache=replies and Path(replies),
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
        cleaner=providers.cleaner(config.llm.get("clean"), source.task(), source.public_texts),
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

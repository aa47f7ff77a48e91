"""Flower's ServerApp: compose the configuration, build the parts, call `server/run.py`.

A simulation or `caucus-coordinator` leaves a resolved `config.yaml` in a run folder and names the folder in Flower's
run configuration; `flwr run` alone gives Hydra overrides instead, and a new folder is created.
"""

import contextlib
import functools
import shlex
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from common import validate
from common.errors import CheckpointError, ConfigError
from common.models.encoder import Encoder
from common.secagg.identity import Roster
from common.system.files import write_atomic
from server.domain import Membership, PrivacyTarget
from server.evaluation.small_model import Evaluation
from server.failure import logging_to
from server.federation.network import FlowerNetwork, Network
from server.llm import providers
from server.llm.spending import Spending
from server.method import Method
from server.parts import Options, Parts, RunParts
from server.planning.plan import Secagg, make_plan
from server.report import tensorboard
from server.run import run
from server.tasks.sources import Source
from server.vector_cache import Remembered

app = ServerApp()

build = functools.partial(instantiate, _convert_="all")
"""Build an object from its configuration."""

SETTINGS = {
    "privacy": {"epsilon", "delta", "calibration", "unit", "max_records"},
    "federation": {
        "parties",
        "max_dropouts",
        "max_attempts",
        "colluders",
        "timeout",
        "retries",
        "records",
        "partition",
        "alpha",
        "canaries",
    },
    "llm": providers.SETTINGS,
}
"""Names of the settings that decide about privacy or money (the last four of `federation`: simulations alone)."""

RAISED_LATER = ("llm.max_cost", "llm.max_tokens")
"""Settings that may change when a run is resumed."""


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the configuration of the run folder."""
    folder = context.run_config.get("run-folder")
    if folder:
        config = load(Path(str(folder)))
    else:
        config = composed(shlex.split(str(context.run_config.get("overrides", ""))))
        folder = Path("runs") / config.run
        store(config, folder)
    with contextlib.nullcontext() if "engine" in config else logging_to(Path(str(folder))):
        coordinate(config, FlowerNetwork(grid, timeout=config.federation.timeout), Path(str(folder)))


def coordinate(config: DictConfig, network: Network, folder: Path) -> None:
    """Build all parts of a run and run it."""
    options = Options(
        experiment_seed=config.experiment_seed,
        simulation="engine" in config,
        labels_from_records=bool(config.get("labels_from_records")),
        retries=config.federation.retries,
        tracking=config.get("tracking"),
    )
    parts = build_parts(config, folder=folder / "state")
    run(RunParts(run=config.run, folder=folder, network=network, parts=parts, options=options))


def build_parts(config: DictConfig, *, folder: Path | None = None) -> Parts:
    """Build and check everything that the configuration names, before anything private is touched.

    Args:
        config: A resolved configuration.
        folder: Folder of caches and accounts, created if missing; None keeps nothing on disk.
    """
    _check_names(config)
    validate.integers(0, retries=config.federation.retries)
    validate.at_least(0, timeout=config.federation.timeout)
    tensorboard.check(config.get("tracking"))
    roster = _roster(config.secagg.roster)
    (folder or Path()).mkdir(parents=True, exist_ok=True)
    source: Source = build(config.task)
    encoder: Encoder = build(config.embedding)
    method = _method(config.method)
    evaluation: Evaluation = build(config.evaluation)
    plan = make_plan(
        method,
        task=source.task(),
        encoder=encoder.digest,
        target=PrivacyTarget(
            epsilon=_number("privacy.epsilon", config.privacy.epsilon),
            delta=_number("privacy.delta", config.privacy.delta),
            unit=config.privacy.unit,
            max_records=config.privacy.max_records,
            calibration=config.privacy.calibration,
        ),
        membership=Membership(
            parties=config.federation.parties,
            max_dropouts=config.federation.max_dropouts,
            colluders=config.federation.colluders,
            max_attempts=config.federation.max_attempts,
        ),
        secagg=_secagg(config.secagg, roster),
        evaluation_share=evaluation.federated,
        purpose=config.purpose,
        recipient=config.recipient,
    )
    cache = config.get("embedding_cache")
    if path := (folder and folder / "vectors.db") if cache == "run" else cache:
        encoder = Remembered(encoder, path)
    spending = Spending(
        path=folder / providers.SPENDING if folder else None,
        max_cost=config.llm.get("max_cost"),
        max_tokens=config.llm.get("max_tokens"),
    )
    return Parts(
        source=source,
        method=method,
        plan=plan,
        roster=roster,
        encoder=encoder,
        cleaner=providers.cleaner(config.llm.get("clean"), source.task(), source.public_texts),
        providers=providers.providers(
            {name: build(spec, _partial_=True) for name, spec in config.llm.models.items()},
            use=config.llm.use,
            public_texts=source.public_texts,
            encoder=encoder,
            experiment_seed=config.experiment_seed,
            spending=spending,
            folder=folder,
        ),
        spending=spending,
        evaluation=evaluation,
    )


def composed(overrides: list[str], config_name: str = "simulation") -> DictConfig:
    """Compose the configuration with overrides, and give the run an identity."""
    if GlobalHydra.instance().is_initialized():
        config = compose(config_name, overrides)
    else:
        with initialize_config_module("configs", version_base="1.3"):
            config = compose(config_name, overrides)
    return identified(config)


def identified(config: DictConfig) -> DictConfig:
    """Resolve the configuration, and give the run an identity unless it has one."""
    resolved: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    resolved["run"] = resolved.get("run") or uuid.uuid4().hex
    identified_config = OmegaConf.create(resolved)
    assert isinstance(identified_config, DictConfig)
    return identified_config


def store(config: DictConfig, folder: Path) -> None:
    """Write `config.yaml`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "config.yaml", OmegaConf.to_yaml(config).encode())


def load(folder: Path) -> DictConfig:
    """Read `config.yaml`."""
    config = OmegaConf.load(folder / "config.yaml")
    assert isinstance(config, DictConfig)
    return config


def reloaded(folder: Path, overrides: Sequence[str]) -> DictConfig:
    """Read `config.yaml` of a run to resume, with new caps on spending.

    Raises:
        CheckpointError: There is no such file, or an override names another setting than a cap.
    """
    if not (folder / "config.yaml").is_file():
        raise CheckpointError("--resume", expected="one folder with a config.yaml", got="none", where=folder)
    config = load(folder)
    for override in overrides:
        name, sign, value = override.partition("=")
        if name not in RAISED_LATER or not sign:
            caps = f"no overrides but {' and '.join(RAISED_LATER)}"
            raise CheckpointError("--resume", expected=caps, got=override)
        number = None if value == "null" else _number(name, value)
        OmegaConf.update(config, name, number)
    return config


def _check_names(config: DictConfig) -> None:
    """Refuse a misspelt setting of privacy or money: Hydra's `+` would add it, and no code would read it."""
    for group, names in SETTINGS.items():
        for name in set(config[group]) - names:
            expected = f"one of {', '.join(sorted(names))}"
            raise ConfigError(f"{group}.{name}", expected=expected, got="a setting that there is not")


def _method(config: DictConfig) -> Method[Any]:
    if "_target_" not in config:
        raise ConfigError(
            f"method {config.name}",
            expected="a method that asks parties",
            got="one for a simulation alone: it trains on the private records themselves, without any privacy",
            do="Run it with caucus-simulate",
        )
    method: Method[Any] = build(config)
    return method


def _roster(path: str | None) -> Roster | None:
    return Roster.from_json(Path(path).read_bytes()) if path else None


def _secagg(config: DictConfig, roster: Roster | None) -> Secagg:
    settings: Any = OmegaConf.to_container(config)
    # Without a roster yet, any digest gives the same figures of the plan.
    digest = roster.digest.hex() if roster else "0" * 64
    return Secagg(**settings | {"roster": digest if settings["mode"] == "malicious" else ""})


def _number(name: str, value: object) -> float:
    try:
        return float(str(value).replace(".inf", "inf"))
    except ValueError as error:
        raise ConfigError(name, expected="a number, or inf", got=repr(value)) from error

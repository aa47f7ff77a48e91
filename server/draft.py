"""Method and plan of a configuration, without its models; numbers in place of `auto`."""

import logging
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from common.domain import MOST_RECORDS
from common.errors import ConfigError, InputError
from common.plan.plan import Plan
from common.queries.class_sums import ClassSumsSpec
from common.secagg.identity import Roster
from server import setting_checks
from server.domain import Membership, PrivacyTarget, Task
from server.method import Method
from server.planning import automatic
from server.planning.plan import Secagg, make_plan
from server.planning.signal import signals

log = logging.getLogger("caucus.planning")


def build(config: DictConfig, **options: Any) -> Any:  # noqa: ANN401 Hydra's
    """Build an object from its configuration; `options` are Hydra's.

    Raises:
        InputError: Naming the setting in full.
        InstantiationException: Any other error of what was called.
    """
    try:
        return instantiate(config, _convert_="all", **options)
    except InstantiationException as error:
        cause, place = error.__cause__, re.search(r"full_key: (\S+)$", str(error))
        if place and isinstance(cause, InputError) and cause.what in config:
            raise _within(place[1], cause) from error
        raise


def _within(section: str, error: InputError) -> InputError:
    """The error of a part that knows its settings by short names."""
    return type(error)(f"{section}.{error.problem}", do=error.do)


def method_of(config: DictConfig) -> Method[Any]:
    """The method.

    Raises:
        ConfigError: It is one of a simulation alone.
    """
    if "_target_" not in config.method:
        raise ConfigError(
            f"method {config.method.name}",
            expected="a method that asks parties",
            got="one for a simulation alone: it trains on the private records themselves, without any privacy",
            do="Run it with caucus-simulate",
        )
    method: Method[Any] = build(config.method)
    return method


def plan_of(config: DictConfig, method: Method[Any], task: Task, *, encoder: str, roster: Roster | None) -> Plan:
    """The calibrated plan. The encoder's digest and the roster change none of its figures."""
    try:
        return _planned(config, method, task, encoder, roster)
    except InputError as error:
        for section in ("privacy", "federation"):
            if error.what in config[section]:
                raise _within(section, error) from error
        raise


def _planned(config: DictConfig, method: Method[Any], task: Task, encoder: str, roster: Roster | None) -> Plan:
    secagg, parties, colluders = _secagg(config.secagg, roster), config.federation.parties, config.federation.colluders
    return make_plan(
        method,
        task=task,
        encoder=encoder,
        target=PrivacyTarget(
            epsilon=setting_checks.number("privacy.epsilon", config.privacy.epsilon),
            delta=setting_checks.number("privacy.delta", config.privacy.delta),
            unit=config.privacy.unit,
            max_records=config.privacy.max_records,
            calibration=config.privacy.calibration,
        ),
        membership=Membership(
            parties=parties,
            max_dropouts=config.federation.max_dropouts,
            colluders=secagg.colluders(parties) if colluders is None else colluders,
            max_attempts=config.federation.max_attempts,
        ),
        secagg=secagg,
        evaluation_share=config.evaluation.federated,
        max_records_per_party=config.federation.max_records or MOST_RECORDS,
        purpose=config.purpose,
        recipient=config.recipient,
    )


def roster_of(config: DictConfig) -> Roster | None:
    """The parties' identities, if the configuration names them."""
    path = config.secagg.roster
    return Roster.from_json(Path(path).read_bytes()) if path else None


def drafted(config: DictConfig, task: Task) -> tuple[Plan, Mapping[str, int]]:
    """The plan of a configuration, for no encoder yet, and what its queries compare (`Method.compared`)."""
    method = method_of(without_auto(config, task))
    return plan_of(config, method, task, encoder="none yet", roster=None), method.compared(task)


def without_auto(config: DictConfig, task: Task | None = None) -> DictConfig:
    """The configuration with a number for each `auto`: what a run keeps, so that it is resumed with the same plan.

    Args:
        config: Resolved; it is left as it is.
        task: None builds it, if it is needed.

    Raises:
        ConfigError: A number of rounds depends on an expected number of records, and there is none.
    """
    # The signal along a direction depends neither on the number of directions nor on that of rounds.
    choices = {"directions": _directions, "rounds": _rounds}
    automatically = [name for name in choices if config.method.get(name) == setting_checks.AUTO]
    if not automatically:
        return config
    task, config = task or build(config.task).task(), config.copy()
    for name in automatically:
        config.method[name] = choices[name](config, task)
        log.info("method.%s=auto: %d", name, config.method[name])
    return config


def _directions(config: DictConfig, task: Task) -> int:
    """By the class sums."""
    fewest = automatic.DIRECTIONS[0]
    few_rounds = {"rounds": automatic.ROUNDS[-1]} if config.method.get("rounds") == setting_checks.AUTO else {}
    plan, _ = drafted(_with(config, directions=fewest, **few_rounds), task)
    estimates = signals(plan, {}, setting_checks.expected_records(config))
    ratios = [signal.ratio for signal in estimates if signal.kind == ClassSumsSpec.kind and signal.expected]
    return automatic.directions(min(ratios)) if ratios else automatic.UNKNOWN


def _rounds(config: DictConfig, task: Task) -> int:
    """By the answers that there are more of with more rounds; the largest number if there are none."""
    records = setting_checks.expected_records(config)
    times = [
        {query.name: query.times for query in drafted(_with(config, rounds=rounds), task)[0].queries}
        for rounds in automatic.ROUNDS[-2:]
    ]
    repeated = {name for name, number in times[0].items() if number != times[1].get(name)}
    if not repeated:
        return automatic.ROUNDS[0]
    if records is None:
        raise ConfigError(
            "method.rounds",
            expected="a number, or auto beside an expected number of records",
            got="auto alone",
            do="Add federation.expected_records=NUMBER",
        )

    def ratio(rounds: int) -> float:
        try:
            estimates = signals(*drafted(_with(config, rounds=rounds), task), records)
        except (ConfigError, InstantiationException):
            return -math.inf  # too few texts for so many rounds
        return min(signal.ratio for signal in estimates if signal.query in repeated)

    return automatic.rounds(ratio)


def _with(config: DictConfig, **settings: int) -> DictConfig:
    changed = config.copy()
    changed.method.update(settings)
    return changed


def _secagg(config: DictConfig, roster: Roster | None) -> Secagg:
    settings: Any = OmegaConf.to_container(config)
    # Without a roster yet, any digest gives the same figures of the plan.
    digest = roster.digest.hex() if roster else "0" * 64
    return Secagg(**settings | {"roster": digest if settings["mode"] == "malicious" else ""})

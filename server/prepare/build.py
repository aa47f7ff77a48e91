"""Functions that build objects from typed settings: a component such as a model, the method, or the privacy plan."""

import inspect
import typing
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path, PurePath
from types import NoneType, UnionType
from typing import Any
from urllib.parse import urlsplit

from hydra.errors import InstantiationException
from hydra.utils import get_object, instantiate
from omegaconf import OmegaConf

from common.address import LOCAL
from common.domain import MOST_RECORDS, NOT_STATED
from common.errors import CaucusError, ConfigError, InputError
from common.plan.plan import Plan
from common.secagg.identity import Roster
from common.validate import suggest_name
from server.domain import Membership, Task
from server.method import Method
from server.planning.forecast import forecast_sentence
from server.planning.make_plan import check_delta, check_sizes, colluders, make_plan
from server.settings.bounds import within
from server.settings.reading import convert_value
from server.settings.schema import Llm, Settings, SimulationSettings
from server.settings.sections import TARGET, Part, has

HERE = "the coordinator's machine"
PROVIDERS = {"server.llm.remote.anthropic.provider": "Anthropic", "server.llm.remote.openai.provider": "OpenAI"}
"""Providers of remote models without an address of their own, keyed by the part's `_target_`."""


def build(section: object, *, partial: bool = False) -> Any:
    """Build the object that a section of settings describes, including all nested objects.

    Args:
        section: Settings of one of our classes, or a `Part`.
        partial: Whether to return a part's constructor with its settings bound, instead of the object.

    Raises:
        CaucusError: Raised by the constructor and passed on; an InputError contains the full name of the setting.
        ConfigError: The class or function that the section names does not exist, or a setting is of the wrong type.
        InstantiationException: Raised in place of any other error from the constructor of a `Part`.
    """
    if isinstance(section, Part):
        return _built(section, partial=partial)
    made: Any = section
    arguments = {field.name: _inside(getattr(made, field.name)) for field in fields(made)}
    try:
        return get_object(made.made_by)(**arguments)
    except InputError as error:
        raise within(made.place, error, arguments) from error


def _inside(value: Any) -> Any:
    if isinstance(value, Part) or hasattr(value, "made_by"):
        return build(value)
    if isinstance(value, Mapping):
        return {name: _inside(inner) for name, inner in value.items()}
    return value


def _built(part: Part, *, partial: bool) -> Any:
    root = OmegaConf.create()
    OmegaConf.update(root, part.place, dict(part.settings), force_add=True)  # so that errors name the whole place
    try:
        _check_kinds(part)
        bound = {"_partial_": True} if partial else {}
        return instantiate(OmegaConf.select(root, part.place), _convert_="all", **bound)
    except InstantiationException as error:
        cause = error.__cause__
        if isinstance(cause, InputError):
            raise within(part.place, cause, part.settings) from error
        if isinstance(cause, CaucusError):
            raise cause from error
        if isinstance(cause, ImportError):
            expected, got = "a class or function that can be imported", " ".join(str(cause).split())
            do = "Set PYTHONPATH=FOLDER to add the folder of your own module"
            raise ConfigError(part.place, expected=expected, got=got, do=do) from error
        raise


def _check_kinds(part: Part) -> None:
    """Compare the settings of a part, and of the parts in it, with the parameters of its constructor.

    Raises:
        ConfigError: A setting is unknown, or of the wrong type if YAML can express its type; the message names it.
    """
    try:
        parameters = inspect.signature(get_object(part.settings[TARGET])).parameters
    except Exception:  # noqa: BLE001 `instantiate` says what is wrong, if it cannot be imported
        return
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for name, value in part.settings.items():
        place = f"{part.place}.{name}"
        if not any_name and name not in parameters and not name.startswith("_"):  # as Hydra's own names do
            do = suggest_name(name, list(parameters)) or "Remove it"
            expected = f"one of {', '.join(sorted(parameters))}"
            raise ConfigError(place, expected=expected, got="a setting that does not exist", do=do)
        if isinstance(value, Mapping) and TARGET in value:
            _check_kinds(Part(place=place, settings=value))
        hint = parameters[name].annotation if name in parameters else None
        kinds = set(typing.get_args(hint) if isinstance(hint, UnionType) else (hint,))
        if kinds <= {bool, int, float, str, NoneType} and len(kinds - {NoneType}) == 1:
            convert_value(place, value, hint)


def method_of(settings: Settings) -> Method[Any]:
    """Build the method that the settings name.

    Raises:
        ConfigError: Only a simulation can run the method.
    """
    method = settings.method
    if not (TARGET in method.settings if isinstance(method, Part) else method.made_by):
        what = f"method {method.name} trains on the private records themselves, without any privacy"
        raise ConfigError(what, do="Run it in a simulation only, with caucus-simulate")
    built: Method[Any] = build(method)
    return built


def plan_of(settings: Settings, method: Method[Any], task: Task, *, encoder: str, roster: Roster | None) -> Plan:
    """Return the calibrated plan. Its figures do not depend on the encoder's digest or the roster."""
    privacy, federation, secagg = settings.privacy, settings.federation, settings.secagg
    assumed = colluders(secagg, federation.parties) if federation.colluders is None else federation.colluders
    if federation.max_records:
        check_delta(privacy.delta, federation.max_records)
    # Without a roster yet, any digest gives the same figures of the plan.
    digest = roster.digest.hex() if roster else "0" * 64
    try:
        plan = make_plan(
            method,
            task=task,
            encoder=encoder,
            target=privacy,
            membership=Membership(
                parties=federation.parties,
                max_dropouts=federation.max_dropouts,
                colluders=assumed,
                max_attempts=federation.max_attempts,
            ),
            secagg=secagg,
            roster=digest if secagg.malicious else "",
            evaluation_share=settings.evaluation.federated,
            max_records_per_party=federation.max_records or MOST_RECORDS,
            stated=statements(settings),
        )
    except InputError as error:
        for name, section in (("privacy", privacy), ("federation", federation), ("method", settings.method)):
            if has(section, error.what):
                raise within(name, error, {error.what: None}) from error
        raise
    # A simulation counts its file's records, and a plan's digest must not depend on private records.
    records = None if isinstance(settings, SimulationSettings) else federation.expected_records
    plan = replace(plan, forecast=forecast_sentence(plan, method.compared(task), records))
    check_sizes(plan)
    return plan


def roster_of(settings: Settings) -> Roster | None:
    """Return the parties' identities, if the settings name them."""
    path = settings.secagg.roster
    return Roster.from_json(Path(path).read_bytes()) if path else None


def draft_plan(settings: Settings, task: Task) -> tuple[Plan, Mapping[str, int]]:
    """Return the plan for settings without `auto`, not yet bound to an encoder, and the method's `compared` numbers."""
    method = method_of(settings)
    return plan_of(settings, method, task, encoder="none yet", roster=None), method.compared(task)


def statements(settings: Settings) -> dict[str, str]:
    """Return the statements of a run's plan, keyed by field (`common.plan.plan.STATED`)."""
    return {
        "purpose": settings.purpose,
        "recipient": settings.recipient,
        "contact": settings.contact,
        "retention": settings.retention,
        "models": described_models(settings.llm, settings.models_place),
    }


def described_models(llm: Llm, place: str) -> str:
    """Return the models that a run uses, each with the machine or provider that runs it, as the settings say.

    `place` is who runs them and in which country, in the coordinator's words.
    """
    runs: dict[str, list[str]] = {}
    for name, model in llm.models.items():
        if llm.use is None or name in llm.use:
            runs.setdefault(_machine(model), []).append(_model(name, model))
    at = [f"{', '.join(dict.fromkeys(models))} on {machine}" for machine, models in runs.items()]
    return "; ".join([*at, f"place: {place}"]) if at else NOT_STATED


def _machine(model: Part) -> str:
    """Return who runs a model: this machine, or a provider's name or host; never the rest of its address."""
    target = str(model.settings.get(TARGET))
    host = urlsplit(str(model.settings.get("base_url") or "")).hostname or PROVIDERS.get(target, "")
    return HERE if not host or host in LOCAL else host


def _model(name: str, model: Part) -> str:
    """Return a model's public name: a path on the coordinator's machine shows its last part alone."""
    path = PurePath(model.model or name)
    return path.name if path.is_absolute() else str(path)

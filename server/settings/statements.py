"""The coordinator's statements in a plan, which nothing enforces: purpose, recipient, language models and others."""

from pathlib import PurePath
from urllib.parse import urlsplit

from common.address import LOCAL
from common.domain import NOT_STATED
from server.settings.schema import Llm, Settings
from server.settings.sections import TARGET, Part

HERE = "the coordinator's machine"
PROVIDERS = {"server.llm.remote.anthropic.provider": "Anthropic", "server.llm.remote.openai.provider": "OpenAI"}
"""Providers of remote models without an address of their own, keyed by the part's `_target_`."""


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

    Args:
        llm: Settings of the models.
        place: Who runs them and in which country, in the coordinator's words.
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

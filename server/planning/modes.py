"""Checks, before any private query, that the chosen language models support the requests of the method."""

from collections.abc import Mapping
from typing import Any

from common.errors import ConfigError
from server.llm.base import SIMPLIFIED, Provider
from server.method import Method


def refuse_declined(method: Method[Any], providers: Mapping[str, Provider]) -> None:
    """Raise `ConfigError` if the method uses a mode that a model declines, except contrast, which is simplified.

    Raises:
        ConfigError: A model declines a mode; the message names models, modes and alternatives.
    """
    needed = {mode: setting for mode, setting in method.modes.items() if mode != SIMPLIFIED}
    declined = {name: [mode for mode in needed if mode in model.declines] for name, model in providers.items()}
    declined = {name: modes for name, modes in declined.items() if modes}
    if not declined:
        return
    settings = list(dict.fromkeys(needed[mode] for modes in declined.values() for mode in modes))
    advice = [
        f"Leave {', '.join(declined)} out of llm.use" if len(declined) < len(providers) else "Choose another llm",
        *([f"set {' and '.join(filter(None, settings))}"] if None not in settings else []),
        "choose another method",
    ]
    raise ConfigError(
        f"method {method.name}",
        expected=f"language models that honour {', '.join(needed)}",
        got=" and ".join(f"{name}, which declines {', '.join(modes)}" for name, modes in declined.items()),
        where="llm.use",
        do=f"{', '.join(advice[:-1])}, or {advice[-1]}",
    )


def advice_on_contrast(method: Method[Any], providers: Mapping[str, Provider]) -> list[str]:
    """Return a sentence on each model that declines contrast, if the method uses contrast."""
    return [
        f"{name} declines contrast: its prompts show good exemplars alone"
        for name, model in providers.items()
        if SIMPLIFIED in method.modes and SIMPLIFIED in model.declines
    ]

"""Checks of a run's language models before any private query: modes that they decline, and one prompt of its kind."""

import logging
from collections.abc import Mapping
from typing import Any

from common import rng
from common.errors import ConfigError, ModelSettingError
from server.domain import Task
from server.llm.base import SIMPLIFIED, Provider, advice_on
from server.llm.cache import Cached
from server.llm.requests import by_example
from server.method import Method

log = logging.getLogger("caucus.llm")

_LONGEST_SHOWN = 200
_TRIES = 3
_DECLINED = ("refused", "filtered")


def refuse_declined(method: Method[Any], providers: Mapping[str, Provider]) -> None:
    """Raise `ConfigError`, with alternatives, if a model declines a mode of the method, other than `SIMPLIFIED`."""
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


class UnreadableError(ModelSettingError):
    """The replies to a first prompt have no text; other models of the run can write in place of this one."""


def try_prompt(
    provider: Provider, task: Task, *, texts: int = 1, words: int | None = None, experiment_seed: int = 0
) -> None:
    """Send a zero-shot request for texts of a task, up to three times, and check that a reply has a text.

    A model may refuse one prompt and write many others, so a refusal is a warning.

    Args:
        provider: The model.
        task: The task; the texts are of its first label.
        texts: Number of texts that a prompt of the run requests.
        words: Length in words that it requests; None for none.
        experiment_seed: Seed of the run.

    Raises:
        UnreadableError: No reply has a text; the error shows the last one and says what to change.
        ProviderError: The model fails.
    """
    for attempt in range(_TRIES):
        stream = rng.experiment(experiment_seed, "first prompt", attempt)
        request = by_example(task, next(iter(task.labels)), texts=texts, rng=stream, words=words)
        (reply,) = provider.generate([request])
        if reply.texts:
            return
        if isinstance(provider, Cached):
            provider.forget(request)  # so that the next run asks again
        if reply.loss in (*_DECLINED, "truncated"):
            break  # the same again is paid for and lost again
    shown = " ".join(reply.raw.split())[:_LONGEST_SHOWN]
    got = f"one without ({reply.loss}): {shown!r}" if shown else f"an empty one ({reply.loss})"
    if reply.loss in _DECLINED:
        log.warning("%s declines a first prompt of this task: %s", provider.name, got)
        return
    raise UnreadableError(
        f"a first prompt to the language model {provider.name}",
        expected=f"a reply with {request.n} texts" if request.n > 1 else "a reply with a text",
        got=got,
        do=f"{advice_on(str(reply.loss), provider.name)}; resume if that is at the server, or begin a new run",
    )

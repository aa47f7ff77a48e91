"""Language models and encoder from their configuration."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.models.encoder import Encoder
from server.domain import Task
from server.llm.base import Provider
from server.llm.cache import Cached
from server.llm.clean import Cleaner, Rules
from server.llm.spending import Spending

SPENDING = "spending.jsonl"
SETTINGS = {"use", "models", "clean", "max_cost", "max_tokens"}
"""Of `llm` in a configuration."""


def providers(
    models: Mapping[str, Callable[..., Provider]],
    *,
    use: Sequence[str] | None,
    public_texts: Callable[[], list[str]],
    encoder: Encoder,
    experiment_seed: int,
    spending: Spending,
    folder: Path | None,
) -> dict[str, Provider]:
    """Build the K models of a run.

    A constructor gets what it names beside its own settings: `public_texts`, read only for one that learns from them;
    `encoder`; `experiment_seed`; `spending`; `folder`.

    Args:
        models: Name to constructor, with all settings of its own bound already.
        use: Names to take; None takes all.
        public_texts: What a built-in model learns from.
        encoder: What a built-in model compares texts with.
        experiment_seed: For the built-in models.
        spending: The run's account.
        folder: For the cache of replies and what else must outlive a crash; None keeps nothing.

    Raises:
        ConfigError: An unknown name, none at all, or no public text for a model that needs it.
    """
    names = list(models) if use is None else list(use)
    unknown = [name for name in names if name not in models]
    if unknown or not names:
        raise ConfigError("llm.use", expected=f"some of {', '.join(models)}", got=unknown or "none")
    built: dict[str, Provider] = {}
    offered: dict[str, Any] = {
        "encoder": encoder, "experiment_seed": experiment_seed, "spending": spending, "folder": folder
    }  # fmt: skip
    for name in names:
        taken = inspect.signature(models[name]).parameters
        if "public_texts" in taken and "public_texts" not in offered:
            offered["public_texts"] = public_texts()
        settings = {key: value for key, value in offered.items() if key in taken}
        provider = models[name](name=name, **settings)
        built[name] = Cached(provider=provider, path=folder / "replies.db") if folder else provider
    return built


def cleaner(rules: Mapping[str, bool] | None, task: Task, public_texts: Callable[[], list[str]]) -> Cleaner:
    """What is done to the models' texts.

    Args:
        rules: Of `server.llm.clean.Rules`; None for none.
        task: Its words say which scripts are usual.
        public_texts: So do these.

    Raises:
        ConfigError: A rule that there is not.
    """
    known = inspect.signature(Rules).parameters
    wrong = [name for name in rules or {} if name not in known]
    if wrong:
        raise ConfigError("llm.clean", expected=f"rules among {', '.join(known)}", got=wrong)
    if not rules:
        return Cleaner(Rules.none())
    try:
        texts = public_texts()
    except ConfigError:  # remote models need none
        texts = []
    return Cleaner(Rules(**rules), [task.kind, *task.labels, *task.labels.values(), *texts])

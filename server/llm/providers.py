"""Construction of the language models and the cleaner from their configuration."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from common.errors import ConfigError, InputError
from common.models.encoder import Encoder
from server.domain import Example, Task
from server.llm.base import Provider
from server.llm.cache import Cached
from server.llm.clean import Cleaner
from server.llm.marks import RunMarks
from server.llm.render import Prompts
from server.llm.spending import Spending
from server.settings.bounds import within
from server.settings.schema import Rules

SPENDING = "spending.jsonl"


def providers(
    models: Mapping[str, Callable[..., Provider]],
    *,
    public_texts: Callable[[], list[str]],
    public_examples: Callable[[], list[Example]],
    encoder: Encoder,
    experiment_seed: int,
    spending: Spending,
    folder: Path | None,
    cache: Path | None = None,
    prompts: Prompts | None = None,
) -> dict[str, Provider]:
    """Build the language models of a run, and return them keyed by name.

    In addition to its own settings, a constructor receives the following arguments if it has them as parameters:
    `public_texts` and `public_examples` (each read only if a model requires it), `encoder`, `experiment_seed`,
    `spending`, `folder` and `prompts`.

    Args:
        models: Constructors, keyed by name, with their own settings already bound.
        public_texts: Reads the texts that a built-in model learns from.
        public_examples: Reads the texts that a prompt may show; there may be none.
        encoder: Encoder by which a built-in model compares texts.
        experiment_seed: Seed of the built-in models.
        spending: Account of the run.
        folder: Folder of the reply cache and of other files that must survive a crash; None stores nothing.
        cache: File of a reply cache that several runs may share, used instead of one in the folder.
        prompts: Wordings of chat prompts; None for our own.

    Raises:
        ConfigError: There are no models, or there are no public texts for a model that needs them.
    """
    if not models:
        raise ConfigError("llm.models", expected="at least one model", got="none")
    built: dict[str, Provider] = {}
    arguments: dict[str, Any] = {
        "encoder": encoder,
        "experiment_seed": experiment_seed,
        "spending": spending,
        "folder": folder,
        "prompts": prompts,
    }
    path = (folder and folder / "replies.db") if cache is None else cache
    for name, constructor in models.items():
        parameters = inspect.signature(constructor).parameters
        for argument, read in (("public_texts", public_texts), ("public_examples", public_examples)):
            if argument in parameters and argument not in arguments:
                arguments[argument] = read()
        settings = {key: value for key, value in arguments.items() if key in parameters}
        try:
            provider = constructor(name=name, **settings)
        except InputError as error:
            known = {**parameters, **getattr(constructor, "keywords", {})}  # of a remote model the latter are more
            raise within(f"llm.models.{name}", error, known) from error
        built[name] = Cached(provider=provider, path=path) if path else provider
    return built


def cleaner(
    rules: Rules | None,
    task: Task,
    public_texts: Callable[[], list[str]],
    public_examples: Callable[[], list[Example]] = list,
    prompts: Prompts | None = None,
) -> Cleaner:
    """Build the cleaner of the models' texts.

    Args:
        rules: The rules to apply; None for no rules.
        task: The task; its language decides which phrases the rules know.
        public_texts: Reads the public texts; a rule that they break is off.
        public_examples: Reads public texts; one of those with spans serves as the example of marks. There may be none.
        prompts: Wordings of the prompts; None for our own.
    """
    marks = RunMarks(public_examples())
    if rules is None:
        return Cleaner(Rules.none(), marks=marks)
    try:
        texts = public_texts()
    except ConfigError:  # remote models need none
        texts = []
    return Cleaner(rules, texts, marks, task=task, prompts=prompts)

"""Construction of the language models and the cleaner from their configuration."""

import inspect
from collections.abc import Callable, Mapping, Sequence
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
from server.settings.reading import within
from server.settings.schema import Rules

SPENDING = "spending.jsonl"


def providers(
    models: Mapping[str, Callable[..., Provider]],
    *,
    use: Sequence[str] | None,
    public_texts: Callable[[], list[str]],
    public_examples: Callable[[], list[Example]],
    public_spans: Callable[[], list[Example]] = list,
    public_sections: Callable[[], list[Example]] = list,
    encoder: Encoder,
    experiment_seed: int,
    spending: Spending,
    folder: Path | None,
    cache: Path | None = None,
    prompts: Prompts | None = None,
) -> dict[str, Provider]:
    """Build the language models of a run, and return them keyed by name.

    In addition to its own settings, a constructor receives the following arguments if it has them as parameters:
    `public_texts`, `public_examples`, `public_spans` and `public_sections` (each read only if a model requires it),
    `encoder`, `experiment_seed`, `spending`, `folder` and `prompts`.

    Args:
        models: Constructors, keyed by name, with their own settings already bound.
        use: Names of the models to build, all of them keys in `models` (`Llm.use`); None builds all.
        public_texts: Reads the texts that a built-in model learns from.
        public_examples: Reads the texts that a prompt may show; there may be none.
        public_spans: Reads texts with spans, from which a built-in model learns to mark its own texts; there may be
            none.
        public_sections: Reads the sections with headings that a built-in model writes sections from; there may be none.
        encoder: Encoder by which a built-in model compares texts.
        experiment_seed: Seed of the built-in models.
        spending: Account of the run.
        folder: Folder of the reply cache and of other files that must survive a crash; None stores nothing.
        cache: File of a reply cache that several runs may share, used instead of one in the folder.
        prompts: Wordings of chat prompts; None for our own.

    Raises:
        ConfigError: There are no models, or there are no public texts for a model that needs them.
    """
    names = list(models) if use is None else list(use)
    if not names:
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
    for name in names:
        parameters = inspect.signature(models[name]).parameters
        for argument, read in (
            ("public_texts", public_texts),
            ("public_examples", public_examples),
            ("public_spans", public_spans),
            ("public_sections", public_sections),
        ):
            if argument in parameters and argument not in arguments:
                arguments[argument] = read()
        settings = {key: value for key, value in arguments.items() if key in parameters}
        try:
            provider = models[name](name=name, **settings)
        except InputError as error:
            known = {**parameters, **getattr(models[name], "keywords", {})}  # of a remote model the latter are more
            raise within(f"llm.models.{name}", error, known) from error
        built[name] = Cached(provider=provider, path=path) if path else provider
    return built


def takes_chats(constructor: Callable[..., Provider]) -> bool:
    """Return whether a model, built by this constructor, gets chat prompts in our words."""
    parameters = inspect.signature(constructor).parameters
    return "prompts" in parameters and ("completion" not in parameters or parameters["completion"].default is None)


def cleaner(
    rules: Rules | None,
    task: Task,
    public_texts: Callable[[], list[str]],
    public_spans: Callable[[], list[Example]] = list,
    prompts: Prompts | None = None,
) -> Cleaner:
    """Build the cleaner of the models' texts.

    Args:
        rules: The rules to apply; None for no rules.
        task: The task; its language decides which phrases the rules know.
        public_texts: Reads the public texts; a rule that they break is off.
        public_spans: Reads public texts; one of those with spans serves as the example of marks. There may be none.
        prompts: Wordings of the prompts; None for our own.
    """
    marks = RunMarks(public_spans())
    if rules is None:
        return Cleaner(Rules.none(), marks=marks)
    try:
        texts = public_texts()
    except ConfigError:  # remote models need none
        texts = []
    return Cleaner(rules, texts, marks, task=task, prompts=prompts)

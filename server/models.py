"""Language models and encoder from their configuration."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.embedding import Encoder
from common.errors import ConfigError
from common.llm.base import Provider
from common.llm.cache import Cached
from common.llm.embedded import Embedded


def providers(
    models: Mapping[str, Callable[..., Provider]],
    *,
    use: Sequence[str] | None,
    public_texts: Callable[[], list[str]],
    encoder: Encoder,
    experiment_seed: int,
    replies: Path | None,
) -> dict[str, Provider]:
    """Build the K models of a run.

    Args:
        models: Name to constructor, with all settings of its own bound already.
        use: Names to take; None takes all.
        public_texts: What an embedded model learns from; read only if there is one.
        encoder: What an embedded model compares texts with.
        experiment_seed: For the embedded models.
        replies: Cache of replies on disk; None keeps none.

    Raises:
        ConfigError: An unknown name, none at all, or no public text for a model that needs it.
    """
    names = list(models) if use is None else list(use)
    unknown = [name for name in names if name not in models]
    if unknown or not names:
        raise ConfigError("llm.use", expected=f"some of {', '.join(models)}", got=unknown or "none")
    built: dict[str, Provider] = {}
    texts: list[str] | None = None
    for name in names:
        settings: dict[str, Any] = {"name": name}
        if getattr(models[name], "func", None) is Embedded:
            texts = public_texts() if texts is None else texts
            settings |= {"public_texts": texts, "encoder": encoder, "experiment_seed": experiment_seed}
        provider = models[name](**settings)
        built[name] = Cached(provider=provider, path=replies) if replies else provider
    return built

"""φ, the sentence encoder: a SentenceTransformer behind one method, with a digest that says which one it is.

Parties and coordinator must hold the same encoder, or their votes are about different spaces: they compare digests
before the first query. torch takes seconds to import, so it is imported when an encoder is built and not before.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError
from common.validate import at_least, in_range

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_EMBEDDED_TYPE = "common.hashed_ngrams.HashedNgrams"
_BATCH = 256


class Encoder:
    """Texts to unit vectors.

    Args:
        model: Any SentenceTransformer that gives one vector a text. Use `embedded` or `pretrained` to make one.
    """

    def __init__(self, model: "SentenceTransformer") -> None:
        self._model = model

    @classmethod
    def embedded(cls, *, dimensions: int = 256, bits: int = 16, public_seed: int = 0) -> Self:
        """The encoder that needs no weights (`common.hashed_ngrams`): offline, at once, the same on every machine.

        Args:
            dimensions: Width of a vector, at least 32.
            bits: Base-2 logarithm of the hash table's rows, 8 to 22. At 16 and 256 dimensions it takes 64 MiB.
            public_seed: Fills the table; whoever knows the three numbers holds the encoder. Not the experiment seed.

        Raises:
            ConfigError: A value is out of range.
        """
        at_least(32, dimensions=dimensions)
        in_range(8, 22, bits=bits)
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 — seconds to import

        from common.hashed_ngrams import HashedNgrams  # noqa: PLC0415 — imports torch

        return cls(SentenceTransformer(modules=[HashedNgrams(dimensions, bits, public_seed)], device="cpu"))

    @classmethod
    def pretrained(cls, name_or_path: str | Path, *, device: str = "cpu", local_files_only: bool = True) -> Self:
        """A saved model: a folder that `save` or sentence-transformers wrote, or the name of one in the local cache.

        Code that comes with a model is never run.

        Args:
            name_or_path: Folder, or name such as "sentence-transformers/sentence-t5-base".
            device: Where to compute, as torch names it: "cpu", "cuda", "cuda:1".
            local_files_only: False lets sentence-transformers download what the cache lacks.

        Raises:
            ConfigError: There is no such model here, it cannot be loaded, or it is not of text alone.
        """
        if (own := _embedded_config(Path(name_or_path))) is not None:
            return cls.embedded(**own)
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 — seconds to import

        try:
            model = SentenceTransformer(
                str(name_or_path), device=device, local_files_only=local_files_only, trust_remote_code=False
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(
                "the encoder cannot be loaded",
                expected="a sentence-transformers folder, or a model in the local cache",
                got=f"{str(name_or_path)!r} ({type(error).__name__})",
                do="Give the folder's path, download the model beforehand, or choose the embedded encoder.",
            ) from error
        # Given a text that is a path or an address, a model of pictures or sound would open it.
        if senses := sorted({str(modality) for modality in model.modalities} - {"text", "message"}):
            raise ConfigError("encoder", expected="a model of text alone", got=f"one of {', '.join(senses)} as well")
        return cls(model)

    def save(self, folder: str | Path) -> None:
        """Writes a folder that `pretrained` reads back into an encoder of the same digest."""
        self._model.save(str(folder), create_model_card=False)

    @property
    def dimensions(self) -> int:
        """Width of a vector."""
        width = self._model.get_embedding_dimension()
        if width is None:
            raise ConfigError("encoder", expected="a model that states its width", got="none")
        return int(width)

    @cached_property
    def digest(self) -> str:
        """Hex SHA-256 of every module's kind, configuration and weights, the tokenizer included.

        Names, paths and library versions are left out: two copies of one model have one digest wherever they lie.
        """
        digest = hashlib.sha256()
        for module in self._model:
            described = [type(module).__name__, _configuration(module)]
            digest.update(json.dumps(described, sort_keys=True, default=str).encode())
            for name, weights in sorted(module.state_dict().items()):
                digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
                digest.update(_bytes_of(weights))
        return digest.hexdigest()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds each text.

        The embedded encoder gives the same bits whatever the batch, process or machine. A pretrained one pads its
        batches, so a vector may move by about 1e-6 with its neighbours: never compare its vectors for equality.

        Args:
            texts: Any number, none included.

        Returns:
            (len(texts), dimensions) float32, each row of unit norm, in the order of `texts`.

        Raises:
            ConfigError: The model gives a vector that is zero or not finite.
        """
        if len(texts) == 0:
            return np.zeros((0, self.dimensions), np.float32)
        raw = self._model.encode(
            list(texts), batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=False
        )
        return _unit(np.asarray(raw, np.float32))


def _unit(raw: NDArray[np.float32]) -> NDArray[np.float32]:
    # In float64 the squared norm of the embedded encoder's whole numbers is exact: the same on every machine.
    norms = np.sqrt(np.einsum("nd,nd->n", raw, raw, dtype=np.float64))
    if not np.all(np.isfinite(norms) & (norms > 0)):
        raise ConfigError("encoder", expected="vectors that are finite and not zero", do="Choose another encoder.")
    unit: NDArray[np.float32] = raw / norms.astype(np.float32)[:, None]
    return unit


def _embedded_config(folder: Path) -> dict[str, int] | None:
    """The three numbers of an embedded encoder that `save` wrote to `folder`, if that is what it holds."""
    try:
        modules = json.loads((folder / "modules.json").read_text("utf-8"))
        if [module["type"] for module in modules] != [_EMBEDDED_TYPE]:
            return None
        config = json.loads((folder / "config.json").read_text("utf-8"))
        return {key: int(config[key]) for key in ("dimensions", "bits", "public_seed")}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _configuration(module: Any) -> dict[str, Any]:  # noqa: ANN401 — modules share no base class that mypy can see
    """What decides a module's output beside its weights, without the names and versions that a copy may change."""
    config: dict[str, Any] = dict(module.get_config_dict()) if hasattr(module, "get_config_dict") else {}
    if (network := getattr(module, "auto_model", None)) is not None:
        kept = network.config.to_dict().items()
        config["network"] = {key: value for key, value in kept if not key.startswith("_") and "version" not in key}
    if (tokenizer := getattr(module, "tokenizer", None)) is not None:
        config["tokenizer"] = _tokenizer(tokenizer)
    return config


def _tokenizer(tokenizer: Any) -> object:  # noqa: ANN401
    if (backend := getattr(tokenizer, "backend_tokenizer", None)) is None:
        return sorted(tokenizer.get_vocab().items())
    described = json.loads(backend.to_str())
    # Both change with the last batch that was encoded.
    return {key: value for key, value in described.items() if key not in {"truncation", "padding"}}


def _bytes_of(weights: Any) -> bytes:  # noqa: ANN401
    import torch  # noqa: PLC0415 — loaded already by whoever built the model

    flat = weights.detach().cpu().contiguous().reshape(-1)
    return bytes(memoryview(flat.view(torch.uint8).numpy()))

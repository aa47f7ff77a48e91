"""φ, the sentence encoder: a SentenceTransformer behind one method, with a digest that says which one it is.

Parties and coordinator must have the same encoder, since votes in different spaces are not comparable: they compare
digests before the first query. It always runs where it is built, so a private text stays there; what sends texts to an
endpoint is no `Encoder` (`server/evaluation/remote_encoder.py`). torch takes seconds to import, so it is imported when
a pretrained encoder is built and not before; the hashed n-gram encoder needs none of it.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError
from common.models import catalogue, ngram_table
from common.models.batches import by_tokens
from common.models.checkpoints import configuration, explained, found, with_tokenizer
from common.models.devices import device_here
from common.system.extras import needs
from common.system.progress import progress
from common.validate import at_least, in_range, integers, one_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_HASHED_NGRAMS_TYPE = "common.models.hashed_ngrams.HashedNgrams"
_LIBRARIES = ("torch", "transformers", "sentence_transformers")
_BATCH = 256
_BATCH_TOKENS, _BATCH_TOKENS_ON_CPU = 8192, 1024
"""Tokens of a batch, padding included. On a processor larger batches leave the cache: 8192 take 1.6 times as long for
texts of a dozen words, and 1.3 times for texts of mixed lengths."""
_BLOCK = 4096
"""Number of texts that are sorted by length together."""


class TextEncoder(Protocol):
    """Any encoder: this machine's own, or an endpoint."""

    @property
    def runs_here(self) -> bool:
        """Whether texts stay on this machine; parties refuse an encoder that sends them elsewhere."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(len(texts), dimensions) float32, unit norm, in the order of `texts`."""


class Encoder:
    """Texts to unit vectors.

    Args:
        model: Any SentenceTransformer that gives one vector a text. Use a constructor below to make one.
        prompt: Prefix of every text; None: the model's default prompt.
    """

    runs_here: ClassVar[bool] = True

    def __init__(self, model: "SentenceTransformer", *, prompt: str | None = None) -> None:
        self._model = model
        by_default = model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None
        self._prompt = (by_default if prompt is None else prompt) or ""

    @staticmethod
    def hashed_ngrams(*, dimensions: int = 256, bits: int = 16, public_seed: int = 0) -> "Encoder":
        """An encoder without weights (`common.models.ngram_table`): offline, at once, the same on every machine.

        Args:
            dimensions: Width of a vector, at least 32.
            bits: Base-2 logarithm of the hash table's rows, 8 to 22. At 16 and 256 dimensions it takes 64 MiB.
            public_seed: Seed of the table; these three numbers determine the encoder. Not the experiment seed.

        Raises:
            ConfigError: A value is out of range.
        """
        at_least(32, dimensions=dimensions)
        in_range(8, 22, bits=bits)
        return _HashedNgrams(dimensions, bits, public_seed)

    @classmethod
    def pretrained(
        cls,
        name_or_path: str | Path,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        device: str | None = "cpu",
        local_files_only: bool = True,
    ) -> "Encoder":
        """A sentence-transformers model with all its modules: a folder, or the name of one in the local cache.

        Code that comes with a model is never run.

        Args:
            name_or_path: Name of the catalogue such as "minilm", folder, or name such as
                "sentence-transformers/sentence-t5-base".
            prompt_name: One of the model's own prompts to put before every text, such as "clustering".
            prompt: A prompt in words instead; "" for none where the model has one by default.
            device: Device to compute on, as torch names it: "cpu", "cuda", "cuda:1"; None: the GPU, if there is one.
            local_files_only: False downloads what the cache lacks.

        Raises:
            ConfigError: There is no such model or device here, it cannot be loaded, is not of text alone, or lacks that
                prompt.
        """
        if (ngram_config := _embedded_config(catalogue.placed(name_or_path))) is not None:
            if prompt or prompt_name:
                raise ConfigError(
                    "embedding.prompt", expected="none: the hashed n-gram encoder has no use for one", got="one"
                )
            return cls.hashed_ngrams(**ngram_config)
        needs("encoder", *_LIBRARIES, extra="transformers")
        device = device_here(device)
        folder = found(name_or_path, what="encoder", local_files_only=local_files_only)
        if not (folder / "modules.json").is_file():
            raise ConfigError(
                "encoder",
                expected="a sentence-transformers model, with modules.json",
                got="a bare checkpoint",
                where=folder,
                do="Say how to pool its tokens: embedding=transformer embedding.name_or_path=PATH",
            )
        with progress("loading the encoder"):
            from sentence_transformers import SentenceTransformer
        with explained("encoder", folder):
            model = SentenceTransformer(str(folder), device=device, local_files_only=True, trust_remote_code=False)
        # Given a text that is a path or an address, a model of pictures or sound would open it.
        if senses := sorted({str(modality) for modality in model.modalities} - {"text", "message"}):
            raise ConfigError("encoder", expected="a model of text alone", got=f"one of {', '.join(senses)} as well")
        if any(hasattr(module, "auto_model") for module in model):
            with_tokenizer(folder)
        if prompt is None and prompt_name is not None:
            one_of("embedding.prompt_name", prompt_name, among=tuple(model.prompts))
            prompt = model.prompts[prompt_name]
        return cls(model, prompt=prompt)

    @classmethod
    def transformer(
        cls,
        name_or_path: str | Path,
        *,
        pooling: Literal["mean", "cls", "max"] = "mean",
        longest: int = 512,
        prompt: str | None = None,
        device: str | None = "cpu",
        local_files_only: bool = True,
    ) -> Self:
        """A bare transformers checkpoint, such as BioBERT, with its tokens' vectors pooled into one.

        Args:
            name_or_path: Folder, or name in the local cache.
            pooling: Mean or maximum over the tokens, or the first token alone ("cls").
            longest: Maximum number of tokens of a text; longer texts are truncated.
            prompt: Prefix of every text.
            device: Device to compute on, as `pretrained` has it.
            local_files_only: False downloads what the cache lacks.

        Raises:
            ConfigError: The model or device does not exist here, or it is no model of text with a tokenizer.
        """
        one_of("embedding.pooling", pooling, among=("mean", "cls", "max"))
        integers(4, section="embedding", longest=longest)
        needs("encoder", *_LIBRARIES, extra="transformers")
        device = device_here(device)
        folder = with_tokenizer(found(name_or_path, what="encoder", local_files_only=local_files_only))
        configuration(folder, "classification")  # any network that encodes text can have that head
        with progress("loading the encoder"):
            from sentence_transformers import SentenceTransformer
            from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

        safe = {"local_files_only": True, "trust_remote_code": False}
        with explained("encoder", folder):
            network = Transformer(
                str(folder),
                max_seq_length=longest,
                model_kwargs=dict(safe),
                processor_kwargs=dict(safe),
                config_kwargs=dict(safe),
            )
            modules = [network, Pooling(network.get_embedding_dimension(), pooling)]
            return cls(SentenceTransformer(modules=modules, device=device), prompt=prompt)

    def save(self, folder: str | Path) -> None:
        """Writes a folder that `pretrained` reads back into an encoder of the same digest; the prompt goes with it."""
        self._model.default_prompt_name = "caucus" if self._prompt else None
        if self._prompt:
            self._model.prompts["caucus"] = self._prompt
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
        """Hex SHA-256 of every module's kind, configuration and weights, tokenizer and prompt included.

        Names, paths and library versions are left out: two copies of one model have the same digest in any folder.
        """
        digest = hashlib.sha256()
        if beside := {key: value for key, value in self._beside().items() if value}:
            digest.update(json.dumps(beside, sort_keys=True).encode())
        for module in self._model:
            described = [type(module).__name__, _configuration(module)]
            digest.update(json.dumps(described, sort_keys=True, default=str).encode())
            for name, weights in sorted(module.state_dict().items()):
                digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
                digest.update(_bytes_of(weights))
        return digest.hexdigest()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed each text.

        The hashed n-gram encoder gives the same bits in every batch, process and machine. A pretrained one pads its
        batches, so a vector may change by about 1e-6 with its neighbours: never compare its vectors for equality.

        Args:
            texts: Any number, none included.

        Returns:
            (len(texts), dimensions) float32, each row of unit norm, in the order of `texts`.

        Raises:
            ConfigError: The model gives a vector that is zero or not finite.
        """
        if len(texts) == 0:
            return np.zeros((0, self.dimensions), np.float32)
        return _unit(self._raw(texts))

    def _raw(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, dimensions) float32, as the model gives them."""
        raw = np.empty((len(texts), self.dimensions), np.float32)
        with progress("embedding", len(texts)) as advance:
            for batch in self._batches(texts):
                raw[batch] = self._model.encode(
                    [texts[place] for place in batch],
                    prompt=self._prompt,
                    batch_size=len(batch),
                    show_progress_bar=False,
                    convert_to_numpy=True,
                    normalize_embeddings=False,
                )
                advance(len(batch))
        return raw

    def _batches(self, texts: Sequence[str]) -> list[list[int]]:
        """Positions of texts to encode together: of like length in tokens where there are tokens to pad."""
        tokenizer = getattr(self._model, "tokenizer", None)
        if getattr(self._model[0], "auto_model", None) is None or tokenizer is None:
            return [list(range(start, min(start + _BATCH, len(texts)))) for start in range(0, len(texts), _BATCH)]
        if len(texts) == 1:
            return [[0]]
        budget = _BATCH_TOKENS_ON_CPU if self._model.device.type == "cpu" else _BATCH_TOKENS
        batches = []
        for start in range(0, len(texts), _BLOCK):
            tokens = tokenizer(list(texts[start : start + _BLOCK]), truncation=True, return_attention_mask=False)
            lengths = [len(ids) for ids in tokens["input_ids"]]
            batches += [[start + place for place in batch] for batch in by_tokens(lengths, budget)]
        return batches

    def _beside(self) -> dict[str, object]:
        """Settings that affect a vector in addition to the modules."""
        return {"prompt": self._prompt, "truncate_dim": self._model.truncate_dim}


class _HashedNgrams(Encoder):
    """The encoder without weights, which encodes without torch: importing it takes longer than a small run."""

    def __init__(self, dimensions: int, bits: int, public_seed: int) -> None:
        self._numbers, self._prompt = (dimensions, bits, public_seed), ""

    @cached_property
    def _model(self) -> "SentenceTransformer":  # type: ignore[override]
        needs("a copy of the encoder", *_LIBRARIES, extra="transformers")
        from sentence_transformers import SentenceTransformer

        from common.models.hashed_ngrams import HashedNgrams

        # Only to be saved.
        return SentenceTransformer(modules=[HashedNgrams(*self._numbers)], device="cpu")

    def _raw(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, dimensions) of whole numbers."""
        starts = range(0, len(texts), _BATCH)
        sums = []
        with progress("embedding", len(texts)) as advance:
            for start in starts:
                sums.append(ngram_table.sums(texts[start : start + _BATCH], *self._numbers))
                advance(len(sums[-1]))
        return np.concatenate(sums)

    @property
    def dimensions(self) -> int:
        """Width of a vector."""
        return self._numbers[0]

    @cached_property
    def digest(self) -> str:
        """See `Encoder.digest`."""
        return ngram_table.digest(*self._numbers)


def _unit(raw: NDArray[np.float32]) -> NDArray[np.float32]:
    # In float64 the squared norm of the hashed n-gram encoder's whole numbers is exact: the same on every machine.
    norms = np.sqrt(np.einsum("nd,nd->n", raw, raw, dtype=np.float64))
    if not np.all(np.isfinite(norms) & (norms > 0)):
        raise ConfigError("encoder", expected="vectors that are finite and not zero", do="Choose another encoder.")
    unit: NDArray[np.float32] = raw / norms.astype(np.float32)[:, None]
    return unit


def _embedded_config(folder: Path) -> dict[str, int] | None:
    """The three numbers of the hashed n-gram encoder that `save` wrote to `folder`, or None."""
    try:
        modules = json.loads((folder / "modules.json").read_text("utf-8"))
        if [module["type"] for module in modules] != [_HASHED_NGRAMS_TYPE]:
            return None
        config = json.loads((folder / "config.json").read_text("utf-8"))
        return {key: int(config[key]) for key in ("dimensions", "bits", "public_seed")}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _configuration(module: Any) -> dict[str, Any]:  # modules share no base class that mypy can see
    """Settings that affect a module's output besides its weights, without names and versions that copies may change."""
    config: dict[str, Any] = dict(module.get_config_dict()) if hasattr(module, "get_config_dict") else {}
    if (network := getattr(module, "auto_model", None)) is not None:
        settings = network.config.to_dict().items()
        config["network"] = {key: value for key, value in settings if not key.startswith("_") and "version" not in key}
    if (tokenizer := getattr(module, "tokenizer", None)) is not None:
        config["tokenizer"] = _tokenizer(tokenizer)
    return config


def _tokenizer(tokenizer: Any) -> object:
    if (backend := getattr(tokenizer, "backend_tokenizer", None)) is None:
        return sorted(tokenizer.get_vocab().items())
    described = json.loads(backend.to_str())
    # Both change with the last encoded batch; the two settings below determine the truncation.
    settings = {key: value for key, value in described.items() if key not in {"truncation", "padding"}}
    return settings | {"longest": tokenizer.model_max_length, "cut": tokenizer.truncation_side}


def _bytes_of(weights: Any) -> bytes:
    import torch  # loaded already when the model was built

    flat = weights.detach().cpu().contiguous().reshape(-1)
    return bytes(memoryview(flat.view(torch.uint8).numpy()))

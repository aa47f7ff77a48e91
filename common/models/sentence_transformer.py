"""Encoders that compute with torch: all other models of sentence-transformers, and any model on a GPU.

torch takes seconds to import, and an installation may lack it, so it is imported only when such an encoder is made.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError
from common.models import windows
from common.models.batches import batches_by_tokens, encodable
from common.models.bert_folder import BertFolder
from common.models.checkpoints import configuration, explain_load_errors
from common.system.extras import needs
from common.system.progress import progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Pool = Literal["mean", "cls", "max"]

_LIBRARIES = ("torch", "transformers", "sentence_transformers")
_SAFE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_BATCH = 256
_BATCH_TOKENS, _BATCH_TOKENS_ON_CPU = 8192, 1024
"""Number of tokens per batch, including padding, on a GPU and on a CPU. On a CPU, larger batches do not fit into the
cache: with 8192 tokens, texts of a dozen words take 1.6 times as long, and texts of mixed lengths 1.3 times."""
_BLOCK = 4096
"""Number of texts that are sorted by length together."""


class TorchEncoder:
    """A `common.models.windows.WindowedModel` that computes with a SentenceTransformer.

    Args:
        model: Any SentenceTransformer that returns one vector per text.
        prompt: Prefix of every text.
        form: The description of the model's files if `common/models/bert.py` could also compute with them; the encoders
            of the two modules then have the same digest.
    """

    def __init__(self, model: "SentenceTransformer", prompt: str = "", form: BertFolder | None = None) -> None:
        self._model, self._prompt, self._form, self._warned = model, prompt, form, False

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        device: str,
        prompt: str,
        form: BertFolder | None,
        pooling: Pool | None = None,
        longest: int | None = None,
    ) -> Self:
        """Load the model in a folder with a modules.json, or a bare network whose tokens' vectors are pooled into one.

        Args:
            folder: Folder of the model.
            device: Device, as torch names it.
            prompt: Prefix of every text.
            form: As in the class.
            pooling: How the vectors of a bare network's tokens are pooled; None for a model with a modules.json.
            longest: Maximum number of tokens that a bare network reads.

        Raises:
            ConfigError: sentence-transformers is not installed, or the model cannot be loaded or embeds something other
                than text.
        """
        needs("encoder", *_LIBRARIES, extra="transformers")
        if pooling:
            configuration(folder, "classification")  # any network that encodes text can have that head
        with progress("loading the encoder"):
            from sentence_transformers import SentenceTransformer
        with explain_load_errors("encoder", folder):
            if pooling:
                model = SentenceTransformer(modules=_pooled(folder, pooling, longest), device=device)
            else:
                model = SentenceTransformer(str(folder), device=device, **_SAFE)
        # Given a text that is a path or an address, a model of pictures or sound would open it.
        if senses := sorted({str(modality) for modality in model.modalities} - {"text", "message"}):
            do = "Choose a model that reads text only"
            raise ConfigError(f"the encoder reads {', '.join(senses)} as well", do=do)
        return cls(model, prompt, form)

    @property
    def dimensions(self) -> int:
        """Number of dimensions of a vector.

        Raises:
            ConfigError: The model does not report this number.
        """
        width = self._model.get_embedding_dimension()
        if width is None:
            raise ConfigError("the encoder's files do not give its width", do="Choose another model")
        return int(width)

    @cached_property
    def digest(self) -> str:
        """Hex SHA-256 of each module's kind, configuration and weights, including the tokenizer, and of the prompt."""
        if self._form:
            return self._form.digest(self._prompt, self._form.weights())
        digest = hashlib.sha256()
        beside = {"prompt": self._prompt, "truncate_dim": self._model.truncate_dim}
        if stated := {key: value for key, value in beside.items() if value}:
            digest.update(json.dumps(stated, sort_keys=True).encode())
        for module in self._model:
            described = [type(module).__name__, _configuration(module)]
            digest.update(json.dumps(described, sort_keys=True, default=str).encode())
            for name, weights in sorted(module.state_dict().items()):
                digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
                digest.update(_bytes_of(weights))
        return digest.hexdigest()

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Yield batches of texts of similar length, as `EmbeddingModel.batches` does."""
        texts = [encodable(text) for text in texts]
        for batch in self._places(texts):
            vectors = self._model.encode(
                [texts[place] for place in batch],
                prompt=self._prompt,
                batch_size=len(batch),
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=False,
            )
            yield batch, vectors

    def windows(self, text: str) -> list[tuple[str, int]]:
        """Split a text, as `WindowedModel.windows` does.

        Raises:
            ConfigError: The model's tokenizer does not report the positions of tokens.
        """
        tokenizer: Any = getattr(self._model, "tokenizer", None)
        longest = self._model.max_seq_length
        if not getattr(tokenizer, "is_fast", False) or longest is None:
            do = "Set it to first: this model's tokenizer gives no places of tokens, or it has no longest text"
            raise ConfigError("embedding.windows", expected="first", got=windows.AVERAGE, do=do)
        text = encodable(text)
        whole = tokenizer(text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False)
        around = len(tokenizer(self._prompt)["input_ids"])
        return windows.split(text, whole["offset_mapping"], whole.word_ids(), max(1, longest - around))

    def _places(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Yield indices of texts to encode together; if there is a tokenizer, they have similar numbers of tokens."""
        tokenizer = getattr(self._model, "tokenizer", None)
        if getattr(self._model[0], "auto_model", None) is None or tokenizer is None:
            for start in range(0, len(texts), _BATCH):
                yield list(range(start, min(start + _BATCH, len(texts))))
            return
        budget = _BATCH_TOKENS_ON_CPU if self._model.device.type == "cpu" else _BATCH_TOKENS
        for start in range(0, len(texts), _BLOCK):
            tokens = tokenizer(texts[start : start + _BLOCK], truncation=True, return_attention_mask=False)
            if not self._warned and any(encoding.overflowing for encoding in tokens.encodings or ()):
                self._warned = True
                windows.warn_of_truncation(self._model.max_seq_length)
            lengths = [len(ids) for ids in tokens["input_ids"]]
            yield from ([start + place for place in batch] for batch in batches_by_tokens(lengths, budget))


def _pooled(folder: Path, pooling: Pool, longest: int | None) -> list[Any]:
    """Return a bare network in a folder, and the module that pools its tokens."""
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    network = Transformer(
        str(folder),
        max_seq_length=longest,
        model_kwargs=dict(_SAFE),
        processor_kwargs=dict(_SAFE),
        config_kwargs=dict(_SAFE),
    )
    return [network, Pooling(network.get_embedding_dimension(), pooling)]


def _configuration(module: Any) -> dict[str, Any]:  # modules share no base class that mypy can see
    """Return the settings that, besides weights, affect a module's output; names and versions are excluded."""
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

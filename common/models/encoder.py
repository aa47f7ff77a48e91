"""The sentence encoder φ, which maps texts to unit vectors and is identified by a digest.

Parties and coordinator must have the same encoder, since votes in different spaces are not comparable, so they compare
digests before the first query. An encoder always runs on the machine on which it is built, so private texts stay there;
code that sends texts to an endpoint is not an `Encoder` (`server/evaluation/remote_encoder.py`). There are three kinds,
each in a separate module: hashed n-grams without weights (`hashed_ngrams.py`), the usual small BERTs in numpy
(`bert.py`), and every other model of sentence-transformers in torch (`sentence_transformer.py`). Only the last kind
needs the `transformers` extra.
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError
from common.models.bert import Bert
from common.models.bert_folder import BertFolder
from common.models.checkpoints import model_folder, readable, with_tokenizer
from common.models.devices import device_here
from common.models.hashed_ngrams import HashedNgrams
from common.models.sentence_transformer import TorchEncoder
from common.models.windows import AVERAGE, FIRST, Averaged, EmbeddingModel
from common.system.progress import progress
from common.validate import integers, one_of


class TextEncoder(Hashable, Protocol):
    """An encoder of any kind: an `Encoder`, or one at an endpoint (`server/evaluation/remote_encoder.py`)."""

    @property
    def runs_here(self) -> bool:
        """Whether texts stay on this machine; parties reject an encoder that sends texts elsewhere."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text: (len(texts), dimensions) float32, of unit norm, in the order of `texts`."""


class Encoder:
    """A sentence encoder, which maps texts to unit vectors.

    Args:
        model: The model that computes the vectors. To make an encoder, use one of the constructors below.
    """

    runs_here: ClassVar[bool] = True

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model

    @staticmethod
    def hashed_ngrams(*, dimensions: int = 256, bits: int = 16, public_seed: int = 0) -> "Encoder":
        """Return an offline encoder without weights, the same on every machine, which reads whole texts.

        The three numbers determine the encoder; `common.models.hashed_ngrams.HashedNgrams` says what they are.

        Raises:
            ConfigError: A value is out of range.
        """
        return Encoder(HashedNgrams(dimensions, bits, public_seed))

    @staticmethod
    def pretrained(
        name_or_path: str | Path,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        device: str | None = "cpu",
        local_files_only: bool = True,
        windows: str | None = None,
    ) -> "Encoder":
        """Load a sentence-transformers model with all its modules from a folder, or by its name in the local cache.

        Code that comes with a model is never run.

        Args:
            name_or_path: A name in the catalogue such as "minilm", a folder, or a name such as
                "sentence-transformers/sentence-t5-base".
            prompt_name: Name of the model's own prompt to put before every text, such as "clustering".
            prompt: The text of a prompt, in place of `prompt_name`; "" for no prompt, even if the model has a default
                one.
            device: Device to compute on, as torch names it: "cpu", "cuda", "cuda:1". If None, the GPU is used if there
                is one, otherwise the processor.
            local_files_only: If False, files that are missing from the cache are downloaded.
            windows: "average" for the mean over all windows of a longer text (`common/models/windows.py`); "first", or
                None, for the first window alone.

        Raises:
            ConfigError: The model or device does not exist here, or the model cannot be loaded, needs an extra that is
                not installed, embeds something other than text, or has no prompt of that name.
        """
        device = device_here(device)
        folder = model_folder(name_or_path, what="encoder", local_files_only=local_files_only)
        if not (folder / "modules.json").is_file():
            raise ConfigError(
                "encoder",
                expected="a sentence-transformers model, with modules.json",
                got="a bare checkpoint",
                where=folder,
                do="Say how to pool its tokens: embedding=transformer embedding.name_or_path=PATH",
            )
        with readable("encoder", folder):
            modules: list[dict[str, Any]] = json.loads((folder / "modules.json").read_text("utf-8"))
            prompts, default = _prompts(folder)
            if any(module["type"].endswith(".Transformer") for module in modules):
                with_tokenizer(folder)
        if prompt is None and prompt_name is not None:
            one_of("embedding.prompt_name", prompt_name, among=tuple(prompts))
        prompt = prompts.get(prompt_name or default or "", "") if prompt is None else prompt
        return _loaded(folder, BertFolder.of_sentence_encoder(folder), device=device, prompt=prompt, windows=windows)

    @staticmethod
    def transformer(
        name_or_path: str | Path,
        *,
        pooling: Literal["mean", "cls", "max"] = "mean",
        longest: int = 512,
        prompt: str | None = None,
        device: str | None = "cpu",
        local_files_only: bool = True,
        windows: str | None = None,
    ) -> "Encoder":
        """Load a bare transformers checkpoint, such as BioBERT; the vectors of a text's tokens are pooled into one.

        The other arguments and the errors are those of `pretrained`.

        Args:
            name_or_path: A folder, or a name in the local cache.
            pooling: Mean or maximum over the tokens, or the first token alone ("cls").
            longest: Maximum number of tokens of a text; longer texts are truncated, or read in windows.
            prompt: Prefix of every text.
            device: As in `pretrained`.
            local_files_only: As in `pretrained`.
            windows: As in `pretrained`.
        """
        one_of("embedding.pooling", pooling, among=("mean", "cls", "max"))
        integers(4, section="embedding", longest=longest)
        device = device_here(device)
        folder = with_tokenizer(model_folder(name_or_path, what="encoder", local_files_only=local_files_only))
        form = BertFolder.of_checkpoint(folder, longest=longest) if pooling == "mean" else None
        pooled: dict[str, Any] = {"pooling": pooling, "longest": longest}
        return _loaded(folder, form, device=device, prompt=prompt or "", windows=windows, **pooled)

    @property
    def dimensions(self) -> int:
        """Dimension of the vectors."""
        return self._model.dimensions

    @property
    def digest(self) -> str:
        """Hex SHA-256 of everything that affects a vector: weights, vocabulary, settings and prompt.

        Names, paths and library versions are excluded: two copies of one model have the same digest in any folder.
        """
        return self._model.digest

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed each text.

        The hashed n-gram encoder computes the same bits in every batch, in every process and on every machine. A
        pretrained encoder computes in batches, so a vector may differ by about 1e-6 from batch to batch: never compare
        its vectors for equality.

        Args:
            texts: Any number of texts, including none.

        Returns:
            (len(texts), dimensions) float32, each row of unit norm, in the order of `texts`.

        Raises:
            ConfigError: The model returns a vector that is zero or not finite.
        """
        raw = np.empty((len(texts), self.dimensions), np.float32)
        if len(texts):
            with progress("embedding texts", len(texts)) as advance:
                for places, vectors in self._model.batches(texts):
                    raw[places] = vectors
                    advance(len(places))
        return _unit(raw)


def _loaded(
    folder: Path, form: BertFolder | None, *, device: str, prompt: str, windows: str | None, **pooled: Any
) -> Encoder:
    """Load a model in numpy if its form and the device allow that, otherwise in torch."""
    one_of("embedding.windows", windows or FIRST, among=(FIRST, AVERAGE))
    model: Bert | TorchEncoder
    if form and device.partition(":")[0] == "cpu":
        model = Bert(form, prompt)
    else:
        model = TorchEncoder.load(folder, device=device, prompt=prompt, form=form, **pooled)
    return Encoder(Averaged(model) if windows == AVERAGE else model)


def _unit(raw: NDArray[np.float32]) -> NDArray[np.float32]:
    # In float64 the squared norm of the hashed n-gram encoder's whole numbers is exact: the same on every machine.
    norms = np.sqrt(np.einsum("nd,nd->n", raw, raw, dtype=np.float64))
    if not np.all(np.isfinite(norms) & (norms > 0)):
        raise ConfigError("encoder", expected="vectors that are finite and not zero", do="Choose another encoder.")
    unit: NDArray[np.float32] = raw / norms.astype(np.float32)[:, None]
    return unit


def _prompts(folder: Path) -> tuple[Mapping[str, str], str | None]:
    """Return a model's prompts, keyed by name, and the name of the default prompt."""
    file = folder / "config_sentence_transformers.json"
    saved = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    prompts = {"query": "", "document": ""} | {name: text or "" for name, text in saved.get("prompts", {}).items()}
    return prompts, saved.get("default_prompt_name")

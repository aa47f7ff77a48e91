"""A checkpoint and the engine for it: the choice of engine and device, and the lengths that fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from common.errors import ConfigError
from common.models import checkpoints
from common.models.devices import device_here
from common.validate import one_of
from server.llm.engines import openvino
from server.llm.engines.base import Engine
from server.llm.engines.openvino import OpenVino
from server.llm.engines.transformers import Transformers

EngineName = Literal["transformers", "openvino"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCheckpoint:
    """A checkpoint of a causal language model, without its weights.

    Attributes:
        folder: Its folder, or its GGUF file.
        engine: The engine that computes it.
        device: The device that the engine uses.
        config, tokenizer: As transformers reads them.
    """

    folder: Path
    engine: EngineName
    device: str
    config: Any
    tokenizer: Any

    @classmethod
    def open(
        cls,
        model: str | Path,
        *,
        what: str,
        name: str,
        engine: EngineName | None = None,
        device: str | None = None,
        device_setting: str,
        local_files_only: bool = True,
    ) -> Self:
        """Find a checkpoint, and read its configuration and tokenizer; for the settings see `server.llm.local.Local`.

        In errors, `what` stands for the checkpoint, `name` for the model and `device_setting` for the setting `device`.

        Raises:
            ConfigError: There is no such checkpoint, engine or device here, or they do not fit together.
        """
        _choose_device(engine, device, device_setting)  # before any file is read
        folder = checkpoints.language_model(model, what=what, local_files_only=local_files_only)
        engine = _choose_engine(engine, folder, name)
        device = _choose_device(engine, device, device_setting)
        if engine == "openvino":
            openvino.weights(folder, name=name)
        config, tokenizer = checkpoints.configuration(folder, "causal"), checkpoints.tokenizer(folder)
        return cls(folder=folder, engine=engine, device=device, config=config, tokenizer=tokenizer)

    def require_chat_template(self, what: str, *, do: str) -> None:
        """Raise `ConfigError` about `what` if the tokenizer has no chat template."""
        if not self.tokenizer.chat_template:
            raise ConfigError(what, expected="a chat template", got="none", where=self.folder, do=do)

    @property
    def context(self) -> int:
        """The context length in tokens: the maximum number of positions, or else the tokenizer's limit."""
        stated = getattr(self.config.get_text_config(), "max_position_embeddings", None)
        return int(stated or self.tokenizer.model_max_length)

    def longest_prompt(self, answer: int) -> int:
        """Return the number of tokens in the longest prompt that leaves room for an answer; 0 or less for none."""
        room = self.context - answer
        return min(room, openvino.LONGEST_PROMPT) if self.engine == "openvino" else room

    def ids(self, prompt: str, **settings: bool) -> list[int]:
        """Return the token ids of a prompt."""
        return list(self.tokenizer(prompt, verbose=False, **settings)["input_ids"])

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of token ids."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def load(self, *, name: str, dtype: str, batch_tokens: int) -> Engine:
        """Load the weights; the last two settings are for transformers alone.

        Raises:
            ConfigError: The weights cannot be loaded.
        """
        if self.engine == "openvino":
            return OpenVino(self.folder, name=name)
        return Transformers(self.folder, name=name, device=self.device, dtype=dtype, batch_tokens=batch_tokens)


def _choose_engine(engine: EngineName | None, model: Path, name: str) -> EngineName:
    engine = engine or ("openvino" if model.is_file() else "transformers")
    one_of(f"engine of {name}", engine, among=("transformers", "openvino"))
    if model.is_file() and engine != "openvino":
        do = "Leave engine out, or give a folder with the files of transformers"
        raise ConfigError(f"engine of {name}", expected="openvino for a GGUF file", got=engine, where=model, do=do)
    return engine


def _choose_device(engine: str | None, device: str | None, setting: str) -> str:
    if engine != "openvino":
        return device_here(device, setting)
    if device not in (None, "cpu"):
        expected, do = "cpu or null for the engine openvino", "Choose engine: transformers for a GPU"
        raise ConfigError(setting, expected=expected, got=repr(device), do=do)
    return "cpu"

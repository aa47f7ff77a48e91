"""The engine for a checkpoint: the choice of engine and device, and the lengths that fit."""

from pathlib import Path
from typing import Any, Literal

from common.errors import ConfigError
from common.models.devices import device_here
from common.validate import one_of
from server.llm.engines import openvino
from server.llm.engines.base import Engine
from server.llm.engines.openvino import OpenVino
from server.llm.engines.transformers import Transformers

EngineName = Literal["transformers", "openvino"]


def choose_engine(engine: EngineName | None, model: Path, name: str) -> EngineName:
    """Return the engine, chosen by the model's form if none is given: only OpenVINO computes with a GGUF file alone.

    Raises:
        ConfigError: There is no such engine, or it does not read GGUF files.
    """
    engine = engine or ("openvino" if model.is_file() else "transformers")
    one_of(f"engine of {name}", engine, among=("transformers", "openvino"))
    if model.is_file() and engine != "openvino":
        do = "Leave engine out, or give a folder with the files of transformers"
        raise ConfigError(f"engine of {name}", expected="openvino for a GGUF file", got=engine, where=model, do=do)
    return engine


def choose_device(engine: str | None, device: str | None, setting: str) -> str:
    """Return the device asked for, checked, or else the best that the engine can use here.

    Raises:
        ConfigError: There is no such device here, or the engine cannot use it. The error names the setting.
    """
    if engine != "openvino":
        return device_here(device, setting)
    if device not in (None, "cpu"):
        expected, do = "cpu or null for the engine openvino", "Choose engine: transformers for a GPU"
        raise ConfigError(setting, expected=expected, got=repr(device), do=do)
    return "cpu"


def load_engine(engine: EngineName, folder: Path, *, name: str, device: str, dtype: str, batch_tokens: int) -> Engine:
    """Load the weights of a checkpoint; the last three settings are for transformers alone.

    Raises:
        ConfigError: The weights cannot be loaded.
    """
    if engine == "openvino":
        return OpenVino(folder, name=name)
    return Transformers(folder, name=name, device=device, dtype=dtype, batch_tokens=batch_tokens)


def context_length(config: Any, tokenizer: Any) -> int:
    """Return the model's context length in tokens: its maximum number of positions, or else its tokenizer's limit."""
    stated = getattr(config.get_text_config(), "max_position_embeddings", None)
    return int(stated or tokenizer.model_max_length)


def longest_prompt(engine: EngineName, room: int) -> int:
    """Return the number of tokens in the longest prompt that the engine reads, if the context leaves `room` for it."""
    return min(room, openvino.LONGEST_PROMPT) if engine == "openvino" else room

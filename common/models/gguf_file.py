"""One GGUF file as a whole model: its header states what the other files of a checkpoint would.

The header has the architecture, the context length, the tokens and the chat template, then the place of every weight.
transformers reads it; what an engine could not use is refused here in a second, before it reads gigabytes.
"""

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

SUFFIX = ".gguf"

_ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""Architectures that OpenVINO reads."""
_TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 8: "Q8_0", 12: "Q4_K", 14: "Q6_K"}
"""Types of weights that OpenVINO reads, keyed by their number in a file."""


def find_gguf_file(path: Path) -> Path | None:
    """Return the path if it names a GGUF file, or the one in a folder without `config.json`; otherwise None.

    Raises:
        ConfigError: There is no such file, or the folder has several.
    """
    if path.suffix == SUFFIX and not path.is_dir():
        if not path.is_file():
            raise ConfigError("GGUF file", expected="a file", got="none", where=path, do="Correct the path")
        return path
    files = [] if (path / "config.json").is_file() else sorted(path.glob(f"*{SUFFIX}"))
    if len(files) > 1:
        do = "Give the path of one of them"
        raise ConfigError("GGUF file", expected="one in the folder", got=len(files), where=path, do=do)
    return files[0] if files else None


def read_configuration(file: Path) -> "PreTrainedConfig":
    """Return what a causal model's `config.json` would state: the architecture and the context length.

    Raises:
        ConfigError: The file is damaged or cut off, or has an architecture or types of weights that OpenVINO does not
            read.
    """
    from transformers import PreTrainedConfig
    from transformers.integrations.gguf.reader import GgufHeader, read_gguf_metadata

    try:
        stated, _ = read_gguf_metadata(str(file))
        header = GgufHeader.from_file(str(file))
        context = int(stated[f"{header.architecture}.context_length"])
    except (struct.error, OSError, ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise _refusal(file, f"one whose header cannot be read ({type(error).__name__}: {error})") from error
    size = header.data_start + max((part.offset + part.nbytes for part in header.tensors), default=0)
    there = file.stat().st_size
    if there < size or context < 1:
        raise _refusal(file, f"one of {there:,} bytes where its header states {size:,}, with {context:,} tokens")
    if header.architecture not in _ARCHITECTURES:
        raise _refusal(file, f"one of the architecture {header.architecture!r}")
    if other := [part for part in header.tensors if part.ggml_type not in _TYPES]:
        raise _refusal(file, f"one with weights of type {other[0].ggml_type} ({other[0].name!r})")
    values: dict[str, Any] = {"model_type": header.architecture, "max_position_embeddings": context}
    return PreTrainedConfig(**values)


def load_tokenizer(file: Path) -> "PreTrainedTokenizerBase":
    """Load the tokenizer in a file, with its chat template and end token.

    transformers' class for any model would read the file three times, and take 9 CPU seconds where this one takes one.
    """
    from transformers import PreTrainedTokenizerFast

    loaded: PreTrainedTokenizerBase = PreTrainedTokenizerFast.from_pretrained(
        file.parent, gguf_file=file.name, local_files_only=True
    )
    return loaded


def _refusal(file: Path, got: str) -> ConfigError:
    return ConfigError(
        "GGUF file",
        expected=f"a whole file of a {' or '.join(_ARCHITECTURES)} model, with weights of {', '.join(_TYPES.values())}",
        got=got,
        where=file,
        do="Fetch or copy it again, choose another file of the model, or give its folder for transformers",
    )

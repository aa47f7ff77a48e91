"""One GGUF file as a whole model: its header states what the other files of a checkpoint would.

The header has the architecture, the context length, the tokens and the chat template, then the place of every weight.
All of it is read and checked here in a fraction of a second, before an engine reads gigabytes. The format: the page
`docs/gguf.md` of github.com/ggml-org/ggml.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from common.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

SUFFIX = ".gguf"

_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Python's letter for each type of a value that has a fixed size."""

_BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 8: (32, 34), 12: (256, 144), 14: (256, 210)}
"""Weights and bytes in a block of each type that OpenVINO reads: F32, F16, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K."""

_ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""Architectures that OpenVINO reads."""

_LONGEST, _MOST_DIMENSIONS = 1 << 20, 4
"""Bytes of a text and dimensions of a weight; a header with more is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a file states about its model.

    Attributes:
        architecture: Name of the architecture, such as "qwen2".
        context: Context length in tokens.
        size: Least number of bytes that the whole file has.
    """

    architecture: str
    context: int
    size: int


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


def read_header(file: Path) -> Header:
    """Read a file's header, and check that the file is whole and that OpenVINO can read it.

    Raises:
        ConfigError: The file is damaged or cut off, or has another architecture or other types of weights.
    """
    try:
        with file.open("rb") as opened:
            header = _read(opened, file)
    except (struct.error, OSError, ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise _damaged(file, f"one whose header cannot be read ({type(error).__name__})") from error
    if (size := file.stat().st_size) < header.size:
        raise _damaged(file, f"one of {size:,} bytes where its header states {header.size:,}")
    return header


def read_configuration(file: Path) -> "PreTrainedConfig":
    """Return what a causal model's `config.json` would state: the architecture and the context length.

    Raises:
        ConfigError: See `read_header`.
    """
    from transformers import PreTrainedConfig

    header = read_header(file)
    stated: dict[str, Any] = {"model_type": header.architecture, "max_position_embeddings": header.context}
    return PreTrainedConfig(**stated)


def load_tokenizer(file: Path) -> "PreTrainedTokenizerBase":
    """Load the tokenizer in a file, with its chat template and end token.

    transformers' class for any model would read the file three times, and take 9 CPU seconds where this one takes one.
    """
    from transformers import PreTrainedTokenizerFast

    loaded: PreTrainedTokenizerBase = PreTrainedTokenizerFast.from_pretrained(
        file.parent, gguf_file=file.name, local_files_only=True
    )
    return loaded


def _read(opened: IO[bytes], file: Path) -> Header:
    magic = opened.read(len(_MAGIC))
    if magic != _MAGIC:
        raise _damaged(file, "one that does not begin as a GGUF file")
    version, tensors, pairs = _take(opened, "IQQ")
    if version not in _VERSIONS:
        raise _damaged(file, f"version {version}")
    values = {_text(opened): _value(opened, *_take(opened, "I")) for _ in range(pairs)}
    architecture = str(values["general.architecture"])
    if architecture not in _ARCHITECTURES:
        raise _unreadable(file, f"a model of the architecture {' or '.join(_ARCHITECTURES)}", repr(architecture))
    end = 0
    for _ in range(tensors):
        name = _text(opened)
        (dimensions,) = _take(opened, "I")
        if dimensions > _MOST_DIMENSIONS:
            raise ValueError(dimensions)
        *shape, kind, offset = _take(opened, f"{dimensions}QIQ")
        if kind not in _BLOCKS:
            known = "F32, F16, Q4_0, Q4_1, Q8_0, Q4_K or Q6_K"
            raise _unreadable(file, f"weights of the types {known}", f"type {kind} ({name!r})")
        weights, size = _BLOCKS[kind]
        end = max(end, offset + math.prod(shape) // weights * size)
    context, alignment = int(values[f"{architecture}.context_length"]), int(values.get("general.alignment", 32))
    if min(context, alignment) < 1:
        raise ValueError(context, alignment)
    return Header(architecture=architecture, context=context, size=opened.tell() + -opened.tell() % alignment + end)


def _value(opened: IO[bytes], kind: int) -> Any:
    """Return a value; of an array, whose elements the tokenizer alone needs, None."""
    if kind == _STRING:
        return _text(opened)
    if kind != _ARRAY:
        return _take(opened, _SCALARS[kind])[0]
    elements, count = _take(opened, "IQ")
    if elements == _STRING:
        for _ in range(count):
            _text(opened)
    else:
        opened.seek(count * struct.calcsize(_SCALARS[elements]), 1)
    return None


def _text(opened: IO[bytes]) -> str:
    (length,) = _take(opened, "Q")
    if length > _LONGEST:
        raise ValueError(length)
    (text,) = _take(opened, f"{length}s")
    return bytes(text).decode()


def _take(opened: IO[bytes], form: str) -> tuple[Any, ...]:
    form = f"<{form}"
    return struct.unpack(form, opened.read(struct.calcsize(form)))


def _damaged(file: Path, got: str) -> ConfigError:
    return ConfigError("GGUF file", expected="a whole file", got=got, where=file, do="Fetch or copy it again")


def _unreadable(file: Path, expected: str, got: str) -> ConfigError:
    return ConfigError(
        "GGUF file",
        expected=expected,
        got=got,
        where=file,
        do="Choose another file of the model, export the model with optimum-intel, or give its folder for transformers",
    )

"""Locates transformers checkpoints by name or path, checks them before anything is loaded, and computes their digests.

Without these checks errors would appear late: if tokenizer files are missing, transformers creates a tokenizer that
consists of five special tokens, and if a network lacks the requested head, it adds one with random weights. Code that
comes with a checkpoint is never run. transformers takes seconds to import, so it is imported only when a checkpoint is
checked.
"""

import hashlib
import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from common.errors import ConfigError
from common.models import catalogue, gguf_file
from common.models.devices import device_here
from common.system.extras import needs
from common.system.progress import progress
from common.validate import suggest_name

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

Head = Literal["causal", "masked", "sequence-to-sequence", "classification"]

_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "sentencepiece.model",
    "vocab.json",
    "vocab.txt",
    "tekken.json",
    "bpe.codes",
)
_WEIGHTS = (".safetensors", ".bin", ".pt")
_DIGESTED = (*_WEIGHTS, ".gguf", ".xml", ".json", ".txt", ".model", ".jinja", ".codes")
_OTHER_FRAMEWORKS = ("*.h5", "*.msgpack", "*.ot", "*.onnx", "*.gguf", "onnx/*", "openvino/*", "original/*")
_COPY = "Copy the model's folder here and give its path, or download it where there is a network"
_BFLOAT16 = ("avx512_bf16", "amx_bf16", "bf16")
"""CPU flags that indicate instructions for bfloat16; the last is Arm's."""
_DAMAGED = (
    *(OSError, EOFError, ValueError, RuntimeError, KeyError, TypeError, ImportError, AttributeError),
    pickle.UnpicklingError,
)
"""Errors that libraries raise for damaged files, or for files that require additional code or libraries."""


def model_folder(name_or_path: str | Path, *, what: str = "model", local_files_only: bool = True) -> Path:
    """Return the folder of a checkpoint: the path itself, or the named model's folder in the catalogue or local cache.

    Args:
        name_or_path: A name in the catalogue such as "smollm2", a folder, or a name in the cache such as
            "bert-base-uncased".
        what: Purpose of the model, for error messages.
        local_files_only: If False, files that are missing from the cache are downloaded.

    Raises:
        ConfigError: There is no such checkpoint here, or the folder does not contain a model.
    """
    folder = catalogue.model_path(name_or_path)
    if not folder.is_dir():
        folder = _snapshot(what, str(name_or_path), local_files_only=local_files_only)
    if not any((folder / file).is_file() for file in ("config.json", "modules.json")):
        raise ConfigError(what, expected="a folder with config.json", got="one without", where=folder, do=_COPY)
    if not any(file.suffix in _WEIGHTS for file in folder.rglob("*")):
        raise ConfigError(
            what, expected="weights, as .safetensors or .bin", got="a folder without", where=folder, do=_COPY
        )
    return folder


def language_model(name_or_path: str | Path, *, what: str, local_files_only: bool = True) -> Path:
    """Return a language model's one GGUF file if it has no other form; otherwise its folder, as `model_folder` does.

    Raises:
        ConfigError: There is no such model here, or the folder has several GGUF files.
    """
    file = gguf_file.find_gguf_file(catalogue.model_path(name_or_path))
    return file or model_folder(name_or_path, what=what, local_files_only=local_files_only)


def with_tokenizer(folder: Path) -> Path:
    """Return the folder if it contains a tokenizer; otherwise raise ConfigError."""
    if not any((at / file).is_file() for at in (folder, *folder.glob("*_*/")) for file in _TOKENIZERS):
        raise ConfigError(
            "model",
            expected="a tokenizer next to the weights, such as tokenizer.json or vocab.txt",
            got="none",
            where=folder,
            do="Copy the tokenizer's files into the folder",
        )
    return folder


def configuration(folder: Path, *heads: Head) -> "PreTrainedConfig":
    """Read the configuration of a checkpoint whose network has one of these heads.

    A classification head is created for each task, so any network that can have one is accepted. A GGUF file, which may
    be given in place of a folder, is of a causal model.

    Raises:
        ConfigError: The configuration cannot be read, needs additional code, or has another head.
    """
    _needs("configuration")
    if folder.is_file():
        return gguf_file.read_configuration(folder)
    from transformers import AutoConfig, PreTrainedConfig
    from transformers.models.auto import modeling_auto as auto

    with explain_load_errors("configuration", folder):
        config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    kinds = {
        "causal": auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        "masked": auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        "sequence-to-sequence": auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        "classification": auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    }
    has = tuple(config.architectures or ())
    for head in heads:
        fits = config.model_type in kinds[head]
        if fits and (head == "classification" or _names(kinds[head][config.model_type]) & set(has)):
            return config
    raise ConfigError(
        "model",
        expected=f"a network with a {' or '.join(heads)} head",
        where=folder,
        got=f"{', '.join(has) or 'no architecture'} ({config.model_type})",
        do="Choose a checkpoint of that kind",
    )


def tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """Load the tokenizer in a folder or a GGUF file.

    Raises:
        ConfigError: The tokenizer does not exist, or cannot be read.
    """
    _needs("tokenizer")
    if folder.is_file():
        with explain_load_errors("tokenizer", folder):
            return gguf_file.load_tokenizer(folder)
    from transformers import AutoTokenizer, PreTrainedTokenizerBase

    with explain_load_errors("tokenizer", with_tokenizer(folder)):
        loaded = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    assert isinstance(loaded, PreTrainedTokenizerBase)
    return loaded


def digest(folder: Path, **settings: object) -> str:
    """Return the hex SHA-256 of a folder's weights, configuration and tokenizer files, and of additional settings.

    A GGUF file may be given in place of a folder. The digest does not depend on the folder's name and path, or on the
    origin of its files. The weights are read, at about a gigabyte a second, but not loaded.
    """
    whole = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    with progress(f"reading {folder.name} for its digest"):
        for file in [folder] if folder.is_file() else sorted(folder.iterdir()):
            if file.name != catalogue.MANIFEST and file.is_file() and file.suffix in _DIGESTED:
                whole.update(f"{file.name} {file_digest(file)}\n".encode())
    return whole.hexdigest()


def file_digest(path: Path) -> str:
    """Return the hex SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_checkpoint(
    name_or_path: str | Path,
    auto: str,
    *,
    what: str,
    device: str = "cpu",
    configure: Callable[[Any], None] = lambda _: None,
) -> tuple[Any, Any]:
    """Load a model from this machine's disk, in single precision, and its tokenizer.

    Args:
        name_or_path: A folder, or a name in the local cache.
        auto: Name of the transformers class that loads the model, such as "AutoModelForSeq2SeqLM".
        what: Purpose of the model, for error messages.
        device: Device in torch's notation.
        configure: Function that changes the network's configuration before the network is loaded.

    Raises:
        ConfigError: There is no such model here, or no such device.
    """
    folder = model_folder(name_or_path, what=what)
    return network(folder, auto, what=what, device=device, configure=configure), tokenizer(folder)


def network(
    folder: Path,
    auto: str,
    *,
    what: str,
    device: str,
    configure: Callable[[Any], None] = lambda _: None,
    **settings: object,
) -> Any:
    """Load the model in a folder, ready for use; see `load_checkpoint`. Other settings go to `from_pretrained`."""
    _needs(what)
    device_here(device)  # before weights are read
    import transformers

    options = {"local_files_only": True, "trust_remote_code": False}
    with explain_load_errors(what, folder):
        config = transformers.AutoConfig.from_pretrained(folder, **options)
        configure(config)
        # Without this argument the search for adapters would use the network.
        model = getattr(transformers, auto).from_pretrained(
            folder,
            config=config,
            adapter_kwargs={"local_files_only": True},
            **options,
            **{"dtype": "float32"} | settings,
        )
    return model.to(device).eval()


def own_dtype(config: Any, device: str) -> str:
    """Return the data type to use for a checkpoint's weights on a device: the saved type if the device is fast with it.

    A CPU with special instructions for bfloat16 computes about twice as fast in bfloat16 as in float32. Any other CPU
    emulates bfloat16, which is many times slower. Every CPU emulates half precision.
    """
    import torch

    if torch.device(device).type != "cpu":
        return "auto"
    saved = str(getattr(config, "dtype", None)).removeprefix("torch.")
    has = torch.cpu.get_capabilities()
    fast = any(has.get(instructions) for instructions in _BFLOAT16)
    return "bfloat16" if saved == "bfloat16" and fast else "float32"


@contextmanager
def explain_load_errors(what: str, where: object) -> Iterator[None]:
    """Convert errors as `readable` does. Meanwhile, hide the output of slow libraries and show a clock instead."""
    with readable(what, where), quiet(), progress(f"loading the {what}"):
        yield


@contextmanager
def readable(what: str, where: object) -> Iterator[None]:
    """Convert errors from libraries that load model files to ConfigError.

    Raises:
        ConfigError: The files are damaged or unsuitable.
    """
    from safetensors import SafetensorError

    try:
        yield
    except (*_DAMAGED, SafetensorError) as error:
        raise ConfigError(
            f"the {what} cannot be loaded",
            expected="files that transformers reads, without additional code",
            got=type(error).__name__,
            where=where,
            do="Copy the folder again; a model that brings code cannot be used",
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress progress bars and advisory messages from transformers."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _needs(what: str) -> None:
    needs(what, "torch", "transformers", extra="transformers")


def _names(architectures: Any) -> set[str]:  # one name, or several
    return {architectures} if isinstance(architectures, str) else set(architectures)


def _snapshot(what: str, name: str, *, local_files_only: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(snapshot_download(name, local_files_only=local_files_only, ignore_patterns=list(_OTHER_FRAMEWORKS)))
    except (OSError, ValueError, HFValidationError) as error:
        raise ConfigError(
            what,
            expected="a folder, or the name of a model in the local cache",
            got=repr(name),
            do=suggest_name(Path(name).name, catalogue.catalogue()) or _COPY,
        ) from error

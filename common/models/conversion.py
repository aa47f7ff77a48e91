"""One-time conversion of the weights in a package to the form that transformers loads.

The fetched file stays in the same folder, where its own engine reads it unchanged.
"""

from collections.abc import Mapping
from contextlib import redirect_stderr
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

from common.models.checkpoints import explained, quiet
from common.system.extras import needs

VERSION = 2
"""Version of the conversions' output; raise it with every change, or existing folders keep the old files."""

_NEEDS: Mapping[str, tuple[str, ...]] = {"none": (), "gguf to safetensors": ("gguf", "transformers")}
"""Packages that each conversion needs; the converted files may depend on the packages' versions."""


def check(conversion: str) -> None:
    """Check that a conversion is possible here, before anything is downloaded for it.

    Raises:
        ConfigError: A package that the conversion needs is not installed.
    """
    needs(f"conversion {conversion}", *_NEEDS[conversion], extra="models")


def convert(conversion: str, folder: Path) -> dict[str, str]:
    """Convert the files in a folder, and write the results to the same folder.

    Args:
        conversion: One of `common.models.catalogue.CONVERSIONS`.
        folder: Folder of the model.

    Returns:
        Versions of the packages that were used, keyed by name.

    Raises:
        ConfigError: The files cannot be read.
        OSError: The results cannot be written.
    """
    if conversion != "none":
        _gguf_to_safetensors(folder)
    return {package: version(package) for package in _NEEDS[conversion]}


def _gguf_to_safetensors(folder: Path) -> None:
    """Write float32 weights, configuration, tokenizer and chat template from the one GGUF file in a folder."""
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (file,) = folder.glob("*.gguf")
    options = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    # transformers shows the progress of this one with a bar that cannot be turned off.
    with explained("GGUF file", file), redirect_stderr(StringIO()):
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype="float32", **options)
    # The weights are plain numbers now, but the model remembers their old form and would refuse to be saved.
    model.config.__dict__.pop("quantization_config", None)
    model.hf_quantizer = None
    model.generation_config.do_sample = True  # or else transformers' server ignores temperature and seed
    try:
        with quiet():
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    except SafetensorError as error:  # a disk that is full
        raise OSError(str(error)) from error

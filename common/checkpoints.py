"""Transformers checkpoints from a folder or the local cache: nothing is downloaded, and none of their code is run."""

from typing import Any

from common.errors import ConfigError


def load(name_or_path: str, auto: str, *, what: str, device: str = "cpu") -> tuple[Any, Any]:
    """A model, ready to be used, and its tokenizer.

    Args:
        name_or_path: A folder, or a name in the local cache.
        auto: Class of transformers that knows what to make of it, such as "AutoModelForSeq2SeqLM".
        what: What it is for, for errors.
        device: As torch names it.

    Raises:
        ConfigError: There is no such model here.
    """
    import transformers  # noqa: PLC0415 — seconds to import
    from safetensors import SafetensorError  # noqa: PLC0415

    known = {"local_files_only": True, "trust_remote_code": False}
    try:
        # Without its own word the look for adapters would ask the network.
        model = getattr(transformers, auto).from_pretrained(
            name_or_path, adapter_kwargs={"local_files_only": True}, **known
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(name_or_path, **known)
        return model.to(device).eval(), tokenizer
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, SafetensorError) as error:
        raise ConfigError(
            f"{what} cannot be loaded",
            expected=f"a transformers checkpoint for {auto}, in a folder or the local cache",
            got=f"{name_or_path!r} ({type(error).__name__})",
            do="Correct its name or path in this party's own file.",
        ) from error

"""The device on which a model computes, as torch names it; its presence is checked before any weights are read."""

from importlib.util import find_spec

from common.errors import ConfigError
from common.system.extras import needs


def device_here(device: str | None, setting: str = "device") -> str:
    """Return the device if this machine has it. If it is None, return the machine's GPU or, without one, its processor.

    Args:
        device: "cpu", or another device as torch names it: "cuda", "cuda:1", "mps".
        setting: Name of the setting, for the error.

    Raises:
        ConfigError: Torch finds no such device here, or is not installed.
    """
    if device == "cpu" or (device is None and find_spec("torch") is None):
        return "cpu"
    needs(setting, "torch", extra="transformers")
    import torch

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if device is None:
        return accelerator.type if accelerator else "cpu"
    try:
        wanted = torch.device(device)
    except RuntimeError:
        wanted = None
    if wanted is not None and wanted.type == "cpu":
        return device
    count = torch.accelerator.device_count() if accelerator else 0
    if accelerator and wanted is not None and wanted.type == accelerator.type and (wanted.index or 0) < count:
        return device
    here = ["cpu", *(f"{accelerator.type}:{number}" for number in range(count) if accelerator)]
    raise ConfigError(
        setting,
        expected=f"a device of this machine: {' or '.join(here)}",
        got=repr(device),
        do="Set it to cpu; a GPU needs its driver, and a torch that was built for it: torch.cuda.is_available()",
    )

"""The versions that both sides must agree on."""

from importlib.metadata import version

from common.secagg.messages import VERSION


def versions() -> str:
    """Return the versions of Caucus, of its protocol and of Flower."""
    return f"caucus {version('caucus')}, protocol {VERSION}, flwr {version('flwr')}"

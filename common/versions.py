"""The versions that both sides must agree on."""

from importlib.metadata import version

from common.secagg.messages import VERSION

CAUCUS = version("caucus")
"""Version of Caucus that this process runs."""


def versions() -> str:
    """Return the versions of Caucus, of its protocol and of Flower."""
    return f"caucus {CAUCUS}, protocol {VERSION}, flwr {version('flwr')}"

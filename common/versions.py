"""The versions that both sides must agree on."""

from importlib.metadata import version

from common.secagg.messages import VERSION

DISTRIBUTION = "caucus-dp"
"""Name of the distribution that is installed: `caucus` on the package index is another project."""
CAUCUS = version(DISTRIBUTION)
"""Version of Caucus that this process runs."""


def versions() -> str:
    """Return the versions of Caucus, of its protocol and of Flower."""
    return f"caucus {CAUCUS}, protocol {VERSION}, flwr {version('flwr')}"

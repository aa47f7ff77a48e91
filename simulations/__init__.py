"""Whole federations on one machine, using the same code that hospitals and the coordinator run.

Their results are compared with published papers.

    from simulations import plan, simulate

The functions are in `simulations/api/api.py` and are imported only when they are first used, since they need torch.
"""

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

runpy.run_path(str(Path(__file__).parents[1] / "common" / "system" / "packages.py"))["refuse_strangers"]()

if TYPE_CHECKING:
    from simulations.api.api import plan, resume, simulate
    from simulations.api.result import Result

__all__ = ["Result", "plan", "resume", "simulate"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from common.system.extras import needs

    needs(f"simulations.{name}", "hydra", "pandas", extra="simulation")
    from simulations.api import api

    return getattr(api, name)

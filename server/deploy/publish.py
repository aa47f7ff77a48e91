"""`caucus-coordinator publish`: a folder with a run's texts, as data set hubs expect them. Nothing is uploaded."""

import argparse
import datetime as dt
import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from common.errors import ConfigError
from common.system.commands import Commands, add_command
from common.system.extras import needs
from common.system.files import new_folder, text_of, write_atomic
from server.deploy.results import add_run, run_folder
from server.documents.files import Document, write_json, write_lines
from server.documents.privacy import Privacy
from server.documents.run import TEXTS, RunSummary
from server.documents.run import TRANSFER as PUBLIC_TEXTS
from server.domain import Candidate
from server.failure import CANCELLED, FAILURE
from server.guarantee.case import lacks_guarantee
from server.report import croissant, dataset_card
from server.report.dataset_card import JSON_LINES, PARQUET, SYNTHETIC, TRANSFER, Card, Terms
from server.run_folder import read_candidates

FOLDER = "dataset"
CARD = "README.md"
_D = TypeVar("_D", bound=Document)
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9.+-]*")
_NO_LICENSE = ("other", "unknown", "unlicensed")
_EXPECTED = "an identifier as hubs have it, such as cc-by-4.0 or cc0-1.0, or the https address of its text"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_LANGUAGE = re.compile(r"[a-z]{2,3}")


def register(commands: Commands) -> None:
    """Add the `publish` command."""
    parser = add_command(
        commands,
        "publish",
        _publish,
        summary="write a folder with a run's texts, a card and Croissant, as hubs want it; nothing is uploaded",
        description="Write the texts of a finished run as Parquet and JSON Lines, with a dataset card and a "
        "description in Croissant, which state the guarantee. Nothing else of the run gets into the folder, and "
        "nothing is uploaded: the command that does it is printed. What only you can say is never guessed.",
        example="caucus-coordinator publish runs/mine --license cc-by-4.0",
    )
    add_run(parser)
    parser.add_argument("folder", metavar="FOLDER", type=Path, nargs="?", help=f"a new folder; default: RUN/{FOLDER}")
    parser.add_argument("--license", metavar="LICENCE", help=f"licence of the synthetic texts (required): {_EXPECTED}")
    public = parser.add_mutually_exclusive_group()
    public.add_argument("--public-license", metavar="LICENCE", help=f"licence of the public texts in {PUBLIC_TEXTS}")
    public.add_argument("--without-public-text", action="store_true", help=f"leave out {PUBLIC_TEXTS}")
    parser.add_argument("--language", metavar="CODE", help="language of the texts, such as en or de")
    parser.add_argument("--creator", metavar="NAME", help="the organization that publishes the texts")
    parser.add_argument("--repository", metavar="OWNER/NAME", help="name of the data set on the hub")
    parser.add_argument(
        "--without-guarantee", action="store_true", help="publish although nothing protects the private records"
    )


def _publish(chosen: argparse.Namespace) -> Iterator[str]:
    run = run_folder(chosen)
    needs("publish", "pyarrow", extra="parquet")
    texts = read_candidates(run)
    public = [] if chosen.without_public_text else read_candidates(run, PUBLIC_TEXTS)
    summary, privacy = _finished(run, texts), _guaranteed(run, without=chosen.without_guarantee)
    terms = _terms(chosen, public=bool(public))
    card = dataset_card.card(
        summary, privacy, terms, texts=texts, public=public, published=dt.datetime.now(dt.UTC).date()
    )
    folder = chosen.folder or run / FOLDER
    new_folder(folder)
    write_dataset(folder, card, {SYNTHETIC: texts, TRANSFER: public})
    yield f"texts:     {card.texts:,}" + (f", and {card.public_texts:,} public texts" if public else "")
    yield f"guarantee: {card.guarantee.title}"
    yield f"folder:    {folder}; read its {CARD} before anybody else does"
    name = shlex.quote(terms.repository or "OWNER/NAME")
    yield f"upload:    hf upload {name} {shlex.quote(str(folder))} . --repo-type dataset"


def write_dataset(folder: Path, card: Card, parts: Mapping[str, list[Candidate]]) -> None:
    """Write the files of a published folder into an empty one.

    The card contains everything except the texts. These are keyed by the name of their part; a part without texts is
    left out.
    """
    digests = {}
    for part, texts in parts.items():
        if not texts:
            continue
        (folder / part).mkdir()
        columns = card.columns_of(part)
        rows = dataset_card.card_rows(texts, columns, list(card.labels))
        write_lines(folder / part / JSON_LINES, rows)
        _write_parquet(folder / part / PARQUET, rows, columns)
        for name in (PARQUET, JSON_LINES):
            digests[f"{part}/{name}"] = hashlib.sha256((folder / part / name).read_bytes()).hexdigest()
    write_json(folder / croissant.FILE, croissant.description(card, digests))
    write_atomic(folder / CARD, dataset_card.page(card).encode())


def _write_parquet(path: Path, rows: list[dict[str, Any]], columns: Sequence[str]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    ends = [("start", pa.int64()), ("end", pa.int64())]
    of = {"probabilities": pa.float64(), "labels": pa.string()}
    of |= {column: pa.struct([*ends, (name, pa.string())]) for column, name in dataset_card.MARKED.items()}
    types = {"round": pa.int64(), "weight": pa.float64(), **{name: pa.list_(kind) for name, kind in of.items()}}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in columns])
    parquet.write_table(pa.Table.from_pylist(rows, schema), path)


def _finished(run: Path, texts: list[Candidate]) -> RunSummary:
    """Return the run's `run.json`; raise an error if the run is incomplete, failed or cancelled, or has no texts."""
    summary = _read(run, RunSummary)
    reason = text_of(run / FAILURE).strip() or summary.reason
    if (run / CANCELLED).exists():
        reason = "it was cancelled"
    if reason or not summary.complete:
        got = f"a {summary.status} one" + (f": {reason}" if reason else "")
        do = "Resume the run, or publish another one"
        raise ConfigError("run folder", expected="one of a run that has ended well", got=got, where=run, do=do)
    if not texts:
        raise ConfigError("run folder", expected=f"texts in {TEXTS}", got="none", where=run)
    return summary


def _guaranteed(run: Path, *, without: bool) -> Privacy:
    """Return the run's `privacy.json`; raise an error if the run has no guarantee, unless `without` is true."""
    privacy = _read(run, Privacy)
    if lacks_guarantee(privacy) and not without:
        what = "the texts of this run can show private records (epsilon is infinite)"
        do = "Publish such texts only if no record needs protection, and say so: --without-guarantee"
        raise ConfigError(what, where=run, do=do)
    return privacy


def _read(run: Path, kind: type[_D]) -> _D:
    problems: list[str] = []
    document = kind.read(run, problems)
    if document is None:
        expected = f"one with a {kind.FILE} that can be read"
        raise ConfigError("run folder", expected=expected, got=problems[0], where=run)
    return document


def _terms(chosen: argparse.Namespace, *, public: bool) -> Terms:
    """Return the terms of publication, all from the command's arguments, since a person must decide on them."""
    _check_license("--license", chosen.license, do="Say under which licence the texts are published: it is not guessed")
    if public:
        do = f"Say under which licence the texts of {PUBLIC_TEXTS} were published, or --without-public-text"
        _check_license("--public-license", chosen.public_license, do=do)
    for name, value, form, expected in (
        ("--language", chosen.language, _LANGUAGE, "a code of two or three letters, such as en"),
        ("--repository", chosen.repository, _REPOSITORY, "OWNER/NAME"),
    ):
        if value is not None and not form.fullmatch(value):
            raise ConfigError(name, expected=expected, got=value)
    return Terms(
        license=chosen.license,
        public_license=chosen.public_license if public else None,
        language=chosen.language,
        creator=chosen.creator,
        repository=chosen.repository,
    )


def _check_license(option: str, name: str | None, *, do: str) -> None:
    named = name is not None and (dataset_card.is_address(name) or _IDENTIFIER.fullmatch(name))
    if not named or name in _NO_LICENSE:
        raise ConfigError(option, expected=_EXPECTED, got=name or "none", do=do)

"""Copies a hospital's records out of a database: the rows of one query, in a transaction that can only read.

    url: postgresql://reader@db.hospital:5432/notes    # or sqlite:///notes.db, beside this file
    password: 'as it is, in single quotes'             # PostgreSQL's; the url never has it
    query: SELECT text, label, patient AS "user" FROM notes ORDER BY id

stands in a file NAME.sql.yaml with mode 0600. `caucus-party init --records NAME.sql.yaml` and `caucus-party refresh`
run the query and write the rows into FOLDER/private/records.jsonl. That copy is the hospital's file of records from
then on. So a run keeps to the records that it began with although the database changes, a restart needs no database,
and the service that faces the coordinator has no password and no connection.

No message quotes a value, the url, the password or a driver's words, which can hold any of them.
"""

import ipaddress
import json
import re
import sqlite3
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from common import file_diagnosis
from common.domain import Record
from common.errors import ConfigError, DataError
from common.labelled_files import named_by, read_records
from common.system.extras import needs
from common.system.files import check_secret
from common.system.yaml_file import YamlFile
from common.validate import known_keys

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

ENDING = file_diagnosis.QUERY
COPY = "records.jsonl"
"""Name of the copy in the hospital's private folder."""
_KEYS, _REQUIRED = ("url", "query", "password"), ("url", "query")
_URL = "postgresql://USER@HOST/DATABASE or sqlite:///FILE, without a password"
_STATES = {
    "08": "no connection to the database",
    "22": "a value that the query cannot convert",
    "25": "a query that writes",
    "28": "a user or a password that the database refuses",
    "3D": "no database of this name",
    "42": "a query that is malformed, or that names what does not exist or may not be read",
}
"""Meanings of errors of PostgreSQL, by the first two letters of their SQLSTATE."""
_CODES = {
    "SQLITE_CANTOPEN": "no database in this file",
    "SQLITE_NOTADB": "no database in this file",
    "SQLITE_READONLY": "a query that writes",
    "SQLITE_BUSY": "a database that another program writes: try again",
    "SQLITE_ERROR": _STATES["42"],
}
"""Meanings of errors of SQLite."""
_CAST = "Convert it in the query: CAST(... AS text), or for bytes convert_from(..., 'LATIN1') or what they are in."
_OTHER = "an error of the database"
_NO_TLS = "Server refuses SSL"
"""The driver's words, which have no code."""
_STATE = re.compile("[0-9A-Z]{5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSource:
    """The content of a `.sql.yaml` file. Its repr omits what may be secret.

    The url is without the password, which is None if none is needed, as for a socket of this machine.
    """

    path: Path
    url: "URL" = field(repr=False)
    query: str = field(repr=False)
    password: str | None = field(default=None, repr=False)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file.

        Raises:
            ConfigError: The file is missing, open to others or malformed, a value is no text, or the url is of another
                kind or has a password.
            MissingPackageError: SQLAlchemy or the driver is not installed.
        """
        needs("a database", "sqlalchemy", "pg8000", extra="sql")
        check_secret(path)
        values = _values(path)
        for key in _KEYS:
            if not isinstance(value := values.get(key), str | None) or (key in _REQUIRED and not value):
                raise ConfigError(key, expected="a text, in single quotes", got="something else", where=path)
        url = _url(values["url"])
        if url is None:
            do = "Put the password into the line `password`, in single quotes, as it is."
            raise ConfigError("url", expected=_URL, got="another form (not shown)", where=path, do=do)
        return cls(path=path, url=url, query=values["query"], password=values.get("password"))


def is_query(path: Path) -> bool:
    """Return whether a file of records is a query to a database."""
    return path.name.lower().endswith(ENDING)


def read_database(path: Path, *, labelled: bool, remarks: list[str]) -> list[Record]:
    """Return the rows of a query as records, as `client.records.load_records` does for a file.

    Spaces at the end of labels and users are left out, since a column of the type CHAR is padded with them.

    Raises:
        ConfigError: See `DatabaseSource.load`.
        DataError: The query fails, or a row is invalid; the message contains the row's number.
        MissingPackageError: SQLAlchemy or the driver is not installed.
    """
    source = DatabaseSource.load(path)
    with named_by("records"):
        return read_records(path, may_be_empty=True, labelled=labelled, remarks=remarks, reader=partial(_rows, source))


def as_json_lines(records: Sequence[Record], *, labelled: bool) -> bytes:
    """Return the content of a `.jsonl` file from which the same records are read, with labels or without."""
    return b"".join(json.dumps(_row(record, labelled=labelled)).encode() + b"\n" for record in records)


def _row(record: Record, *, labelled: bool) -> dict[str, Any]:
    label = {"label": record.label} if record.more is None else {"labels": list(record.labels)}
    user = {} if record.user is None else {"user": record.user}
    return {"text": record.text} | (label if labelled else {}) | user


def _values(path: Path) -> dict[str, Any]:
    """Return the file's keys and values; no error shows a line or another key, which can be of the password."""
    try:
        values = YamlFile.load(path).values
    except ConfigError as error:
        got, where = "malformed YAML (not shown)", error.where
    else:
        if not isinstance(values, dict) or values.keys() <= set(_KEYS):
            return dict(known_keys("", values, among=_KEYS, required=_REQUIRED))
        got, where = "another key (not shown)", path
    expected, do = f"YAML with the keys {', '.join(_KEYS)} alone, each once", "Put each value into single quotes."
    raise ConfigError(path.name, expected=expected, got=got, where=where, do=do)


def _url(given: str) -> "URL | None":
    """Return an address of one of the two kinds; None if it is another or has a password."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        return None
    if url.password is not None or not url.database:
        return None
    if url.drivername == "sqlite":
        return None if url.host or url.username or url.query else url
    complete = url.drivername == "postgresql" and url.username and set(url.query) <= {"unix_sock"}
    return url if complete and bool(url.host) != bool(url.query) else None


def _engine(source: DatabaseSource) -> "Engine":
    from sqlalchemy import NullPool, create_engine

    if source.url.drivername == "sqlite":
        file = source.path.absolute().parent / str(source.url.database)

        def opened() -> sqlite3.Connection:
            connection = sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)
            connection.text_factory = _decoded
            return connection

        return create_engine("sqlite://", creator=opened, poolclass=NullPool)
    # To another machine over TLS alone, with a certificate of an authority that this machine trusts.
    tls = False if _is_here(source.url.host) else ssl.create_default_context()
    return create_engine(
        source.url.set(drivername="postgresql+pg8000", password=source.password),
        client_encoding="utf8",
        connect_args={"ssl_context": tls},
        poolclass=NullPool,
    )


def _decoded(content: bytes) -> str | bytes:
    """Return a text of SQLite; unchanged if it is in another encoding, for which the driver's error would quote it."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _is_here(host: str | None) -> bool:
    """Return whether a host is this machine."""
    try:
        return not host or host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _rows(source: DatabaseSource, columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[file_diagnosis.Row]:
    names, table, fault = _answer(source)
    if fault:
        unasked = source.password is None and source.url.drivername == "postgresql"
        do = "If the database asks for a password, put it into the line `password`." if unasked else None
        raise DataError("database", expected="the rows of its query", got=fault, where=source.path, do=do)
    wanted = file_diagnosis.columns_of(names, columns, optional, where=str(source.path), show_names=False)
    for number, row in enumerate(table, start=1):
        place = f"{source.path}, row {number}"
        try:
            texts = file_diagnosis.text_values({name: row[names.index(name)] for name in wanted}, place)
        except DataError as error:
            error.do = "Leave such rows out: WHERE ... IS NOT NULL." if error.got == "null" else _CAST
            raise
        yield place, {name: value if name == "text" else value.rstrip(" ") for name, value in texts.items()}


def _answer(source: DatabaseSource) -> tuple[list[str], Sequence[Sequence[Any]], str]:
    """Return the names of the query's columns, its rows, and what went wrong, which is empty if nothing did."""
    try:
        with _engine(source).connect() as connection:
            if connection.dialect.name == "postgresql":
                # For the session and not only the transaction, which a query could end.
                connection.exec_driver_sql("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
                connection.commit()
            result = connection.exec_driver_sql(source.query)
            if not result.returns_rows:
                return [], [], "a query without rows"
            return list(result.keys()), result.all(), ""
    except Exception as error:  # noqa: BLE001 a driver's message can quote a value or the password
        return [], [], _fault(error)


def _fault(error: BaseException | None) -> str:
    """Return what went wrong, from codes alone: those of the first error that has one, or of its causes."""
    while error is not None:
        if meaning := _meaning(error):
            return meaning
        error = error.__cause__
    return _OTHER


def _meaning(error: BaseException) -> str | None:
    """Return the meaning of an error's code; None if it has none."""
    details = error.args[0] if error.args else None
    state = details.get("C") if isinstance(details, dict) else None
    code = getattr(error, "sqlite_errorname", None)
    if isinstance(state, str) and _STATE.fullmatch(state):
        return f"{_STATES.get(state[:2], _OTHER)} ({state})"
    if code is not None:
        return f"{_CODES.get(code, _OTHER)} ({code})"
    if isinstance(error, ssl.SSLError):
        return "a certificate that this machine does not trust: SSL_CERT_FILE names a file of authorities"
    if isinstance(error, OSError):
        return f"no connection to the database ({error.strerror or type(error).__name__})"
    if isinstance(error, UnicodeDecodeError):
        return "a text in another encoding than the database says"
    return "a server without TLS, which has to be on this machine" if str(error) == _NO_TLS else None

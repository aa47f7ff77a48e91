"""Cache of replies on disk, so that a resumed or repeated run never pays twice for a text.

One SQLite file serves any number of models and processes. It contains synthetic texts and hashes of requests, but never
a prompt. Each reply is a separate transaction and is written when it arrives, not at the end of its batch.

A reply without a usable text is final only once a query depends on what was written instead of it (`server/tools.py`):
then even a failed one is kept, so that the interrupted step repeats exactly. If its step ends in an error before that,
it is forgotten, and a resumed run asks again.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from common.errors import ProviderError
from server.llm.base import Arrived, Provider, Reply, Request

_WAIT_S = 60.0  # maximum wait for another process to finish its write
_SCHEMA = """
create table if not exists answers (
    key text primary key, texts text not null, input_tokens integer not null, cached_tokens integer not null,
    output_tokens integer not null, loss text
)
"""
_FINAL = "create table if not exists final (key text primary key)"
# With rowid: a row stored with its key would have to move its texts to another page, which doubles the file.


class Cached:
    """A provider that forwards to the wrapped provider only the requests whose replies are not on disk yet.

    Args:
        provider: The model to ask.
        path: The SQLite file; created, with its folder, at the first use.

    Attributes:
        calls: Number of requests sent to the model since construction. Equal requests of one batch are sent once.
    """

    def __init__(self, *, provider: Provider, path: str | Path) -> None:
        self.name = provider.name
        self.identity = provider.identity
        self.remote = provider.remote
        self.declines = provider.declines
        self.check = provider.check
        self.calls = 0
        self._provider = provider
        self._path = Path(path)

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """Generate the replies (`server.llm.base.Provider`). A reply with neither tokens nor texts is not stored.

        Raises:
            ProviderError: The wrapped model failed (the replies that arrived are stored), or the file is not a cache.
        """
        keys = [request.key(self.identity) for request in requests]
        with self._database() as database:
            cached = _read(database, set(keys))
            places: dict[str, list[int]] = {}
            for place, key in enumerate(keys):
                if key in cached:
                    _tell(arrived, [place], cached[key])
                else:
                    places.setdefault(key, []).append(place)

            def store(position: int, reply: Reply) -> None:
                key = missing[position]
                if reply.texts or reply.input_tokens or reply.output_tokens:
                    _write(database, key, reply)
                _tell(arrived, places[key], reply)

            missing = list(places)
            self.calls += len(missing)
            asked = [requests[places[key][0]] for key in missing]
            fresh = self._provider.generate(asked, arrived=store) if asked else []
        replies = cached | dict(zip(missing, fresh, strict=True))
        return [replies[key] for key in keys]

    def keep(self, request: Request, reply: Reply) -> None:
        """Store a reply for good, even one with neither tokens nor texts, unless there is one for this request."""
        with self._database() as database:
            _write(database, request.key(self.identity), reply)
            database.execute("insert or ignore into final values (?)", (request.key(self.identity),))

    def forget(self, request: Request) -> None:
        """Delete the stored reply to a request, unless it was stored for good, so that the model is asked again."""
        # Another run that shares the file may have stored it for good.
        command = "delete from answers where key = ? and key not in (select key from final)"
        with self._database() as database:
            database.execute(command, (request.key(self.identity),))

    def estimate(self, request: Request) -> tuple[int, int]:
        """Return the expected input and output tokens, which are zero if the reply is on disk."""
        if self._path.exists():
            key = request.key(self.identity)
            with self._database() as database:
                if key in _read(database, {key}):
                    return 0, 0
        return self._provider.estimate(request)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for this call only: connections must not be shared between threads or forks."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Without isolation level each statement commits by itself, so a killed process loses no reply.
            with closing(sqlite3.connect(self._path, timeout=_WAIT_S, isolation_level=None)) as database:
                # This holds for a new file: a reply of 2000 characters would leave half of the usual 4096 bytes unused.
                database.execute("pragma page_size = 8192")
                # Write-ahead log: no wait for the disk at each reply, and a killed process loses none.
                database.execute("pragma journal_mode = wal")
                database.execute("pragma synchronous = normal")
                database.execute(_SCHEMA)
                database.execute(_FINAL)
                yield database
        except sqlite3.Error as error:
            raise ProviderError(
                "the cache of replies cannot be used",
                got=type(error).__name__,
                where=self._path,
                do="free the disk, or move the file away and start a new cache",
            ) from error


def _read(database: sqlite3.Connection, keys: set[str]) -> dict[str, Reply]:
    replies = {}
    for key in keys:
        row = database.execute(
            "select texts, input_tokens, cached_tokens, output_tokens, loss from answers where key = ?", (key,)
        ).fetchone()
        if row is not None:
            texts, read, cached, written, loss = row
            replies[key] = Reply(
                texts=tuple(json.loads(texts)),
                input_tokens=read,
                cached_tokens=cached,
                output_tokens=written,
                loss=loss,
            )
    return replies


def _write(database: sqlite3.Connection, key: str, reply: Reply) -> None:
    row = (key, json.dumps(reply.texts), reply.input_tokens, reply.cached_tokens, reply.output_tokens, reply.loss)
    database.execute("insert or ignore into answers values (?, ?, ?, ?, ?, ?)", row)


def _tell(arrived: Arrived | None, places: list[int], reply: Reply) -> None:
    if arrived is not None:
        for place in places:
            arrived(place, reply)

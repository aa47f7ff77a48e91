"""Caches of vectors in memory and on disk, so that no text is embedded twice by the same encoder.

The cache on disk is meant for the coordinator's candidates, which are synthetic. A party's file would contain vectors
of private records, from which much of a text can be guessed. So a party caches nothing unless its own configuration
names a file. Only its owner can read this file, which needs the same care as the records. The coordinator and a party
must never share a file.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError
from common.models.encoder import Encoder

_WAIT_S = 60.0  # time for another process to finish its write
_KEYS_PER_QUERY = 500
_SCHEMA = """
create table if not exists width (dimensions integer primary key);
create table if not exists vectors (key blob primary key, vector blob not null);
"""
# With rowid: a row stored with its key would have to move its vector to another page, which doubles the file.
_BLOCK = 4096
"""Number of texts embedded between two writes, the same number that the encoder sorts together, so that its batches
stay the same."""


class RememberingEncoder:
    """An encoder that embeds each text once and keeps the vectors in memory, since many are needed again."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embeddings of texts, (texts, dimensions) float32, unit norm."""
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        self._vectors |= dict(zip(new, self.encoder.encode(new), strict=True))
        return np.stack([self._vectors[text] for text in texts]) if texts else self.encoder.encode([])


class Remembered(Encoder):
    """An encoder that calls the wrapped encoder only for texts whose vectors are not in its file.

    Every vector from the file is bit-identical to the vector that was stored. A transformer's vectors vary by about
    1e-6 with the batch in which they are computed, so a party, which needs only the vectors of its records, uses a
    separate file.

    Args:
        encoder: The wrapped encoder.
        path: The SQLite file; created at once, readable only by its owner.

    Raises:
        ConfigError: The file contains vectors with another number of dimensions, or is not a readable cache.
    """

    def __init__(self, encoder: Encoder, path: str | Path) -> None:
        self._inside = encoder
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch(mode=0o600)
        self._path.chmod(0o600)
        with self._database() as database:
            database.executescript(_SCHEMA)
            database.execute("insert into width select ? where not exists (select * from width)", (encoder.dimensions,))
            ((cached_dimensions,),) = database.execute("select dimensions from width").fetchall()
        if cached_dimensions != encoder.dimensions:
            raise ConfigError(
                "cache of vectors",
                expected=f"vectors of {encoder.dimensions} dimensions",
                got=f"some of {cached_dimensions}",
                where=self._path,
                do="Choose another file for this encoder, or the encoder that the file was made with",
            )

    @property
    def dimensions(self) -> int:
        """Number of dimensions of each vector."""
        return self._inside.dimensions

    @property
    def digest(self) -> str:
        """Digest of the wrapped encoder."""
        return self._inside.digest

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed each text, as `common.models.encoder.Encoder` does; equal texts in one call are embedded once."""
        named = (f"{self.digest}\x1f{text}".encode(errors="surrogatepass") for text in texts)
        keys = [hashlib.sha256(name).digest() for name in named]
        missing = dict(zip(keys, texts, strict=True))
        places = {key: place for place, key in enumerate(missing)}
        vectors = np.empty((len(places), self.dimensions), np.float32)
        with self._database() as database:
            for key, vector in _stored(database, list(places)):
                vectors[places[key]] = np.frombuffer(vector, np.float32)
                del missing[key]
            new = list(missing.items())
            for start in range(0, len(new), _BLOCK):
                block = new[start : start + _BLOCK]
                fresh = self._inside.encode([text for _, text in block])
                vectors[[places[key] for key, _ in block]] = fresh
                rows = [(key, vector.tobytes()) for (key, _), vector in zip(block, fresh, strict=True)]
                database.execute("begin")
                database.executemany("insert or ignore into vectors values (?, ?)", rows)
                database.execute("commit")
        return vectors if len(places) == len(keys) else vectors[[places[key] for key in keys]]

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=_WAIT_S, isolation_level=None)) as database:
                yield database
        except sqlite3.Error as error:
            raise ConfigError(
                "cache of vectors",
                expected="a file that can be read and written",
                got=type(error).__name__,
                where=self._path,
                do="Free the disk, or move the file away and start a new one",
            ) from error


def _stored(database: sqlite3.Connection, keys: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, len(keys), _KEYS_PER_QUERY):
        batch = keys[start : start + _KEYS_PER_QUERY]
        marks = ",".join("?" * len(batch))
        yield from database.execute(f"select key, vector from vectors where key in ({marks})", batch)  # noqa: S608 marks

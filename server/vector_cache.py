"""Cache of vectors on disk: no text is embedded twice by the same encoder.

The cache is meant for the coordinator's candidates, which are synthetic. At a party the file has vectors of private
records, from which much of a text can be guessed: nothing is cached there unless the party's own configuration names a
file, which only its owner can read and which needs the same care as the records. Never share one file between the two.
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
create table if not exists vectors (key blob primary key, vector blob not null) without rowid;
"""


class Remembered(Encoder):
    """An encoder that calls the encoder inside only for texts whose vectors are not in its file.

    Cached vectors are bit-identical to the stored ones. The vectors of a transformer vary by about 1e-6 with the batch
    they were computed in, so a party, which needs the vectors of its records alone, uses a separate file.

    Args:
        encoder: The encoder inside.
        path: The SQLite file; created at once, readable by its owner alone.

    Raises:
        ConfigError: The file has vectors of another width, or is not a readable cache.
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
        """Width of a vector."""
        return self._inside.dimensions

    @property
    def digest(self) -> str:
        """Digest of the encoder inside."""
        return self._inside.digest

    def save(self, folder: str | Path) -> None:
        """Save the encoder inside."""
        self._inside.save(folder)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Encoder.encode`. Equal texts of one call are embedded once."""
        keys = [hashlib.sha256(f"{self.digest}\x1f".encode() + _bytes(text)).digest() for text in texts]
        with self._database() as database:
            cached = self._read(database, list(set(keys)))
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in cached}
            fresh = dict(zip(missing, self._inside.encode(list(missing.values())), strict=True))
            rows = [(key, vector.tobytes()) for key, vector in fresh.items()]
            database.execute("begin")
            database.executemany("insert or ignore into vectors values (?, ?)", rows)
            database.execute("commit")
        vectors = cached | fresh
        return np.array([vectors[key] for key in keys], np.float32).reshape(len(keys), self.dimensions)

    def _read(self, database: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, NDArray[np.float32]]:
        vectors = {}
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            batch = keys[start : start + _KEYS_PER_QUERY]
            marks = ",".join("?" * len(batch))
            rows = database.execute(f"select key, vector from vectors where key in ({marks})", batch)  # noqa: S608 marks
            for key, vector in rows:
                vectors[key] = np.frombuffer(vector, np.float32)
        return vectors

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


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass")

"""Files that survive a kill at any point: the method's state, each query as first asked, and each answer.

    state.json           the method's state after its last completed step
    query-003.npz        query 3, written before any party sees it
    answer-003.npy       noised total of query 3, written before anyone uses it

Every file is written to a temporary name, flushed to disk and renamed, so each is whole or absent. An interrupted step
is repeated from `state.json`: texts come from the reply cache, and a reserved query is asked again with the same bytes,
at no cost to the parties' privacy (see `client/answer.py`). If a model wrote other texts since, the stored query and
its answer are about texts that the run no longer has, which is an error.
"""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import CheckpointError
from common.queries.closed_set import Query, inputs, make_query, spec_from_dict, spec_to_dict
from common.system.files import write_atomic

_ROUNDING = 1e-3
"""Difference of two coordinates of one text's unit vector on two machines; those of two texts differ by far more."""


class Checkpoint:
    """The coordinator's stored state of one run.

    Args:
        folder: Folder for the files; created if absent.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def load(self) -> dict[str, Any] | None:
        """Return the state after the last completed step, or None before the first."""
        path = self._folder / "state.json"
        if not path.exists():
            return None
        try:
            state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, UnicodeDecodeError) as error:
            raise CheckpointError("state.json is damaged", where=path, do="Restore it, or begin a new run") from error
        return state

    def save(self, state: dict[str, Any]) -> None:
        """Store the state after a completed step."""
        write_atomic(self._folder / "state.json", json.dumps(state, ensure_ascii=False).encode())

    def reserve(self, index: int, query: Query) -> Query:
        """Store a query before it is asked, or before its stored answer is used.

        Returns:
            The query that was first stored under this index, byte for byte, so that parties recognise it; if no query
            was stored, `query` itself.

        Raises:
            CheckpointError: The stored query differs by more than rounding, so its answer is no answer to this one.
        """
        path = self._folder / f"query-{index:03}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as saved:
                spec = spec_from_dict(json.loads(str(saved["spec"])))
                stored = make_query(spec, {name: saved[name] for name in saved.files if name != "spec"})
            if not _alike(stored, query):
                raise CheckpointError(
                    "query of a resumed run",
                    expected="the one that was asked before the interruption",
                    got="one about other texts, since a model gave another reply",
                    where=path,
                    do="Start a new run: the stored answers say nothing about these texts",
                )
            return stored
        buffer = io.BytesIO()
        np.savez(buffer, spec=np.array(json.dumps(spec_to_dict(query.spec))), **inputs(query))  # type: ignore[arg-type]
        write_atomic(path, buffer.getvalue())
        return query

    def answer(self, index: int) -> NDArray[np.int64] | None:
        """Return the stored noised total of a query; None if no total is stored."""
        path = self._folder / f"answer-{index:03}.npy"
        return np.load(path, allow_pickle=False) if path.exists() else None

    def commit(self, index: int, total: NDArray[np.int64]) -> None:
        """Store an answer."""
        buffer = io.BytesIO()
        np.save(buffer, total)
        write_atomic(self._folder / f"answer-{index:03}.npy", buffer.getvalue())


def _alike(one: Query, other: Query) -> bool:
    """Return whether two queries have the same spec, and arrays that differ by rounding at most."""
    pairs = zip(inputs(one).values(), inputs(other).values(), strict=True)
    return one.spec == other.spec and all(a.shape == b.shape and np.allclose(a, b, atol=_ROUNDING) for a, b in pairs)

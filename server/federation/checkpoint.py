"""What survives a kill at any point: the method's state, each query as it was first asked, and each answer.

    state.json           the method's state after its last whole step
    query-003.npz        query 3, written before any party sees them
    answer-003.npy       noised total of query 3, written before anyone uses it

Every file is written beside its place, flushed to disk and renamed, so each is whole or absent. A step that was
interrupted is run again from `state.json`: texts come from the reply cache, and a query that was reserved is asked
again with the same bytes, which costs the parties nothing (see `client/answer.py`).
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


class Checkpoint:
    """The coordinator's memory of one run.

    Args:
        folder: Where it lives; created if absent.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def load(self) -> dict[str, Any] | None:
        """The state after the last whole step, or None before the first."""
        path = self._folder / "state.json"
        if not path.exists():
            return None
        try:
            state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, UnicodeDecodeError) as error:
            raise CheckpointError("state.json", expected="JSON as this program writes it", where=path) from error
        return state

    def save(self, state: dict[str, Any]) -> None:
        """Keep the state after a whole step."""
        write_atomic(self._folder / "state.json", json.dumps(state, ensure_ascii=False).encode())

    def reserve(self, index: int, query: Query) -> Query:
        """The query to ask at this place: the one reserved before, or this one, now on disk.

        Returns:
            The very bytes of the first attempt, so that parties recognise it.
        """
        path = self._folder / f"query-{index:03}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as saved:
                spec = spec_from_dict(json.loads(str(saved["spec"])))
                return make_query(spec, {name: saved[name] for name in saved.files if name != "spec"})
        buffer = io.BytesIO()
        np.savez(buffer, spec=np.array(json.dumps(spec_to_dict(query.spec))), **inputs(query))  # type: ignore[arg-type]
        write_atomic(path, buffer.getvalue())
        return query

    def answer(self, index: int) -> NDArray[np.int64] | None:
        """The noised total of a query that was answered, or None."""
        path = self._folder / f"answer-{index:03}.npy"
        return np.load(path, allow_pickle=False) if path.exists() else None

    def commit(self, index: int, total: NDArray[np.int64]) -> None:
        """Keep an answer; the query's own file has done its duty."""
        buffer = io.BytesIO()
        np.save(buffer, total)
        write_atomic(self._folder / f"answer-{index:03}.npy", buffer.getvalue())
        (self._folder / f"query-{index:03}.npz").unlink(missing_ok=True)

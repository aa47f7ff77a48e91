"""Answers before noise, from the code that computes a party's real answers: `client/answer.py` from end to end.

During a replay, noise is 0 and secret bytes are the same for each answer, so that two answers use the same subsample,
the same sample of choosers and the same coin tosses. A mechanism inside a party releases no sum; the rows to which it
would add noise are recorded instead.

    sums             (1, coordinates): counts, bounded as in a real answer
    length range     (2, cap): for each length, the numbers of longer and of shorter records
    seed choice      (choices, candidates): each chooser's utilities
    fine-tuning      (steps, weights): each step's sum of clipped gradients

DP-SGD's steps depend on the noised steps before them, just as later queries depend on earlier answers. A replay
therefore starts each step with the weights that the first replay had at that step. A record's coin tosses are derived
from its own gradient, so that an additional record does not change the coin tosses of other records.
"""

import functools
import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from client import answer, records
from client.records import PartyRecords
from client.writers import fine_tuning
from common.ledger.ledger import Ledger
from common.ledger.log import Entry
from common.plan.plan import Plan
from common.privacy import mechanisms
from common.privacy.accountant import ReleasedAnswers
from common.queries.closed_set import digest
from common.queries.page import Query

if TYPE_CHECKING:
    from torch import Tensor


class Replay:
    """Replays of one query; `simulations/laboratory/audit/replay.py` runs them on random data sets.

    Args:
        query: The query that was broadcast.
        index: The query's index in the plan.
        plan: The plan.
        party: The party without its records; its ledger is replaced.
    """

    def __init__(self, query: Query, *, index: int, plan: Plan, party: answer.Party) -> None:
        self._query, self._index, self._plan = query, index, plan
        self._party = replace(party, ledger=_Blank())
        # Not for each answer: a plan keeps the digest that it computes.
        self._bounded = functools.cache(lambda most: replace(plan, max_records_per_party=most))
        self._rows: list[NDArray[np.int64]] = []
        self._weights: list[list[Tensor]] = []
        self._drawn = 0

    def before_noise(self, private: PartyRecords, *, max_records_per_party: int | None = None) -> NDArray[np.int64]:
        """Return the (rows, length) contribution of a party with these records, before noise is added.

        Args:
            private: The records.
            max_records_per_party: Bound that replaces the plan's, so that the party must leave out records; None keeps
                the plan's bound.
        """
        most = max_records_per_party or self._plan.max_records_per_party
        self._rows.clear()
        self._drawn = 0
        values = answer.answer(
            self._query,
            digest=digest(self._query),
            run="replay",
            index=self._index,
            plan=self._bounded(most),
            records=private.for_plan(
                self._plan.labels,
                unit=self._plan.unit,
                labels_per_record=self._plan.labels_per_record,
                by_section=self._plan.by_section,
            ),
            party=self._party,
        )
        return np.array(self._rows, dtype=np.int64) if self._rows else values[None]

    @contextmanager
    def replaced(self) -> Iterator[Self]:
        """Patch the party's code for the duration of the context: no noise, fixed randomness, recorded mechanisms."""
        with ExitStack() as stack:
            # That some records have labels that the plan does not know is meant.
            stack.enter_context(mock.patch.object(records.log, "disabled", new=True))
            for module in (answer, fine_tuning):
                stack.enter_context(mock.patch.object(module, "secure_bytes", self._secret))
                stack.enter_context(mock.patch.object(module, "discrete_gaussian", _none))
            stack.enter_context(mock.patch.object(answer, "discrete_laplace", _none))
            stack.enter_context(mock.patch.object(mechanisms, "_first_at_most_zero", self._counts))
            stack.enter_context(mock.patch.object(mechanisms, "noisy_max", self._utilities))
            for name in ("rounded", "clipped_sum", "update", "tuned"):
                real, ours = getattr(fine_tuning.Tuner, name), getattr(self, f"_{name}")
                stack.enter_context(mock.patch.object(fine_tuning.Tuner, name, _bound(ours, real)))
            yield self

    def _secret(self, count: int) -> bytes:
        self._drawn += 1
        return hashlib.shake_256(b"replay %d" % self._drawn).digest(count)

    def _counts(self, counts: list[int], *_: object) -> int:
        self._rows.append(np.array(counts, dtype=np.int64))
        return 0

    def _utilities(self, steps: NDArray[np.int64], *_: object, **__: object) -> int:
        self._rows.append(steps)
        return 0

    def _rounded(self, real: Any, tuner: Any, rows: "Tensor", **how: float) -> "Tensor":
        tuner._coins.manual_seed(int.from_bytes(hashlib.sha256(rows.numpy().tobytes()).digest()[:7]))  # noqa: SLF001
        return real(tuner, rows, **how)  # type: ignore[no-any-return]

    def _clipped_sum(self, real: Any, *arguments: object, **how: float) -> "Tensor":
        total: Tensor = real(*arguments, **how)
        self._rows.append(total.numpy().astype(np.int64))
        return total

    def _update(self, real: Any, tuner: Any, *arguments: object) -> None:
        step = len(self._rows) - 1
        if step == len(self._weights):
            real(tuner, *arguments)
            self._weights.append([weight.detach().clone() for weight in tuner.weights])
        for weight, known in zip(tuner.weights, self._weights[step], strict=True):
            weight.data.copy_(known)

    def _tuned(self, *_: object) -> "_Silent":
        return _Silent()


class _Silent:
    """A trained model that writes no texts. A replay needs no texts, as only the model's weights depend on records."""

    def write(self, *_: object, **__: object) -> list[str]:
        return []


class _Blank(Ledger):
    """A ledger that stores nothing, so that every answer is computed; the key of a subsample is a hash of its name."""

    def __init__(self) -> None:
        """Create a ledger that opens no file."""

    def reserve(
        self,
        *,
        run: str,
        index: int,
        plan_digest: bytes,
        query_digest: bytes,
        release: ReleasedAnswers,
        **_: object,
    ) -> Entry:
        return Entry(run=run, index=index, plan_digest=plan_digest, query_digest=query_digest, release=release)

    def commit_before(self, run: str, index: int) -> None:
        del run, index

    def keep(self, run: str, index: int, answer: bytes) -> bytes:
        del run, index
        return answer

    def sample_key(self, run: str, draw: str, fresh: bytes) -> bytes:
        del run, fresh
        return hashlib.sha256(draw.encode()).digest()


def _none(_scale: float, size: int, _key: bytes, **_: int) -> NDArray[np.int64]:
    return np.zeros(size, dtype=np.int64)


def _bound(ours: Any, real: Any) -> Any:
    """Return a replacement of the `real` method that calls `ours` with `real` as its first argument."""

    def method(tuner: Any, *arguments: Any, **how: Any) -> Any:
        return ours(real, tuner, *arguments, **how)

    return method

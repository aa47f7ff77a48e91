"""The closed set of private queries: what a party can be asked, and how far one privacy unit can move the answer.

A query has a public specification (here `VotesSpec`), which the plan fixes, prices and hashes before anything private
is touched, and an asked form (here `Votes`), which adds what the coordinator learns to ask about during the run. Each
answer is an integer vector. A query that is not in this file cannot be asked.
"""

import hashlib
import math
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from common.errors import ConfigError, ProtocolError
from common.validate import in_range

MOST_VOTES = 20
"""Largest Q: keeps 2^(Q-1) times any plausible number of records far below 2^63."""

_NORM_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesSpec:
    r"""Nearest and furthest votes of WASP (section 3.3), on the integer grid that is `scale` = 2^(Q-1) times votes.

    A record gives its q-th nearest candidate of its own label 2^-(q-1) votes, q = 1..Q, and, in a second half of the
    vector, its q-th furthest candidate the same. On the grid these are the integers 2^(Q-q).

    Sensitivity, for one record added or removed. The answer is a sum over records, and which candidates a record
    ranks where depends on that record and on public candidates alone, so the change is this record's own
    contribution. Its label has n candidates and it ranks r = min(Q, n) of them, in each direction all different. So,
    on the grid, the nearest half changes in exactly r coordinates, by 2^(Q-1), 2^(Q-2), ..., 2^(Q-r), and so does the
    furthest half. The halves are separate coordinates even if a candidate is among the nearest and the furthest
    (certain for n < 2Q); in one common histogram both would land on one coordinate and n = 2 would give an l2 change
    of 2.121 votes. r < Q drops the smallest changes and moves nothing more, so r = Q is the worst case:

        l1 = k (2^Q - 1),   l2^2 = k (4^Q - 1) / 3   on the grid, with k = 2 halves (1 without the furthest),

    in votes l2^2 = (k 4/3)(1 - 4^-Q). Both are reached as soon as n >= Q.

    User level: a unit is all records of one user, of which the party keeps at most m = `max_records` by a rule that
    looks at that user's records only. The change is a sum of at most m contributions, so by the triangle inequality
    both norms are at most m times as large, reached by m equal records. `shifts` is then that extreme case; other
    users' changes touch up to m times as many coordinates by smaller amounts, inside the same l2 bound.

    Attributes:
        top: Q >= 1, votes of one record in each direction.
        furthest: Whether the furthest candidates are voted on too.
        max_records: m, the records that one privacy unit may hold; 1 is sample level.
    """

    top: int
    furthest: bool = True
    max_records: int = 1

    def __post_init__(self) -> None:
        for name, value in (("top", self.top), ("max_records", self.max_records)):
            if type(value) is not int:
                raise ConfigError(name, expected="an integer", got=repr(value))
        if type(self.furthest) is not bool:
            raise ConfigError("furthest", expected="true or false", got=repr(self.furthest))
        in_range(1, MOST_VOTES, top=self.top)
        in_range(1, 2**20, max_records=self.max_records)

    @property
    def scale(self) -> int:
        """Grid units in one vote: 2^(Q-1)."""
        return 1 << (self.top - 1)

    @property
    def shifts(self) -> tuple[int, ...]:
        """Worst absolute change of each touched coordinate by one unit, in grid units; untouched ones are left out."""
        half = tuple(self.max_records << q for q in range(self.top))
        return half + half if self.furthest else half

    @property
    def sensitivity_l1(self) -> float:
        """Largest l1 change by one unit, in votes."""
        return self.grid_l1 / self.scale

    @property
    def sensitivity_l2(self) -> float:
        """Largest l2 change by one unit, in votes."""
        return self.grid_l2 / self.scale

    @property
    def grid_l1(self) -> int:
        """Largest l1 change by one unit, in grid units."""
        return sum(self.shifts)

    @property
    def grid_l2(self) -> float:
        """Largest l2 change by one unit, in grid units."""
        return math.sqrt(sum(shift * shift for shift in self.shifts))

    def length(self, candidates: int) -> int:
        """Coordinates of an answer about that many candidates."""
        return 2 * candidates if self.furthest else candidates

    def largest(self, records: int) -> int:
        """Largest value that a coordinate can reach with that many records, in grid units, before noise."""
        return records * self.scale


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Votes:
    """Votes as asked: which candidates there are.

    Attributes:
        spec: The planned specification.
        vectors: (candidates, dim) float32, unit norm: the candidates under the agreed encoder.
        labels: (candidates,) int32, at least 0: position of each candidate's label in the plan.

    Raises:
        ProtocolError: If the arrays are not such.
    """

    spec: VotesSpec
    vectors: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        vectors, labels = self.vectors, self.labels
        if vectors.ndim != 2 or vectors.dtype != np.float32 or 0 in vectors.shape:
            raise _malformed("vectors", "a non-empty (candidates, dim) float32 array", vectors)
        if labels.shape != vectors.shape[:1] or labels.dtype != np.int32:
            raise _malformed("labels", f"an ({len(vectors)},) int32 array", labels)
        if labels.min() < 0:
            raise ProtocolError("labels of a votes query", expected="numbers >= 0", got=int(labels.min()))
        # NaN and infinity fail this comparison too.
        norms = np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64)
        wrong = np.flatnonzero(~(np.abs(norms - 1) <= 2 * _NORM_TOLERANCE))
        if len(wrong):
            raise ProtocolError(
                "vectors of a votes query",
                expected="finite vectors of norm 1",
                got=f"squared norm {norms[wrong[0]]:.6g}",
                where=f"candidate {wrong[0]}",
            )

    @property
    def length(self) -> int:
        """Coordinates of an answer: nearest first, then furthest."""
        return self.spec.length(len(self.labels))

    def digest(self) -> bytes:
        """SHA-256 over specification, shape and little-endian contents: two queries are the same if these agree."""
        spec = self.spec
        header = struct.pack(
            "<16sIBIQQ", b"caucus/votes/1", spec.top, spec.furthest, spec.max_records, *self.vectors.shape
        )
        digest = hashlib.sha256(header)
        digest.update(self.vectors.astype("<f4").tobytes())
        digest.update(self.labels.astype("<i4").tobytes())
        return digest.digest()


def _malformed(name: str, expected: str, got: npt.NDArray[np.generic]) -> ProtocolError:
    return ProtocolError(f"{name} of a votes query", expected=expected, got=f"{got.shape} {got.dtype}")

"""Queries as asked: the planned specification and, as arrays, all that is public about the question.

Two queries are the same if their digests agree; the digest binds the ledger's entry, the masks and the signatures. The
arrays of each travel under the names that they have here.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import texts
from common.errors import ProtocolError
from common.queries import (
    CorrectCountSpec,
    LabelHistogramSpec,
    LengthHistogramSpec,
    LengthRangeSpec,
    SeedChoiceSpec,
    SelfSimilaritySpec,
    SketchSpec,
    Spec,
    VocabularySpec,
    VotesSpec,
    spec_to_dict,
)
from common.text_queries import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec, TextSpec

_NORM_TOLERANCE = 1e-3
_LARGEST_ENTRY = 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Votes:
    """Which candidates there are.

    Attributes:
        spec: The planned specification.
        vectors: (candidates, dim) float32, unit norm: the candidates under the agreed encoder.
        labels: (candidates,) int32, at least 0: position of each candidate's label in the plan.

    Raises:
        ProtocolError: If the arrays are not such; so for all queries below.
    """

    spec: VotesSpec
    vectors: NDArray[np.float32]
    labels: NDArray[np.int32]

    def __post_init__(self) -> None:
        _labelled_rows(self.spec, self.vectors, self.labels)

    @property
    def length(self) -> int:
        """Coordinates of an answer: nearest first, then furthest."""
        return len(self.labels) * (2 if self.spec.furthest else 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelHistogram:
    """Nothing more to ask: the labels are the plan's."""

    spec: LabelHistogramSpec

    @property
    def length(self) -> int:
        """Coordinates of an answer: one a label."""
        return self.spec.labels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthHistogram:
    """Where the bins lie.

    Attributes:
        spec: The planned specification.
        edges: (bins - 1,) int32, ascending: a text of w words is in the bin after the last edge that is at most w.
    """

    spec: LengthHistogramSpec
    edges: NDArray[np.int32]

    def __post_init__(self) -> None:
        _shaped(self.spec, "edges", self.edges, np.int32, (self.spec.bins - 1,))
        if (np.diff(self.edges.astype(np.int64)) <= 0).any():
            raise _wrong(self.spec, "edges", "ascending numbers", "others")

    @property
    def length(self) -> int:
        """Coordinates of an answer: one a bin."""
        return self.spec.bins


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vocabulary:
    """Which terms to look for.

    Attributes:
        spec: The planned specification.
        terms: (bytes,) uint8: the terms in UTF-8, each followed by a line feed; see `encode_terms`.
    """

    spec: VocabularySpec
    terms: NDArray[np.uint8]

    def __post_init__(self) -> None:
        _check_terms(self.spec, self.terms)

    @property
    def length(self) -> int:
        """Coordinates of an answer: one a term."""
        return int(np.count_nonzero(self.terms == ord("\n")))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch:
    """The terms with their vectors, and the sketch's frequencies.

    Attributes:
        spec: The planned specification.
        terms: As in `Vocabulary`.
        vectors: (terms, dim) float32, unit norm.
        frequencies: (features, blocks * dim) float32, half as many rows for paired features; blocks is `prefix`, or 1.
            The kernel's bandwidth is in them.
        phases: (features,) float32; (0,) for paired features.
    """

    spec: SketchSpec
    terms: NDArray[np.uint8]
    vectors: NDArray[np.float32]
    frequencies: NDArray[np.float32]
    phases: NDArray[np.float32]

    def __post_init__(self) -> None:
        _check_terms(self.spec, self.terms)
        _unit_rows(self.spec, vectors=self.vectors)
        terms = int(np.count_nonzero(self.terms == ord("\n")))
        if len(self.vectors) != terms:
            raise _wrong(self.spec, "vectors", f"one for each of {terms} terms", len(self.vectors))
        rows = self.spec.features // (2 if self.spec.paired else 1)
        columns = max(1, self.spec.prefix) * self.vectors.shape[1]
        _shaped(self.spec, "frequencies", self.frequencies, np.float32, (rows, columns))
        _shaped(self.spec, "phases", self.phases, np.float32, (0 if self.spec.paired else rows,))
        _bounded(self.spec, frequencies=self.frequencies, phases=self.phases)

    @property
    def length(self) -> int:
        """Coordinates of an answer: the features of the first label, then of the next."""
        return self.spec.labels * self.spec.features


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SelfSimilarity:
    """Nothing more to ask."""

    spec: SelfSimilaritySpec

    @property
    def length(self) -> int:
        """Coordinates of an answer: the sum of cosines, the number of pairs."""
        return 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrectCount:
    """A linear classifier over the agreed encoder's vectors.

    Attributes:
        spec: The planned specification.
        weights: (labels, dim) float32.
        intercepts: (labels,) float32. The prediction is the label of the highest weights . x + intercept, of equals
            the first.
    """

    spec: CorrectCountSpec
    weights: NDArray[np.float32]
    intercepts: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or self.weights.dtype != np.float32 or 0 in self.weights.shape:
            raise _wrong(self.spec, "weights", "a non-empty (labels, dim) float32 array", _shape(self.weights))
        _shaped(self.spec, "intercepts", self.intercepts, np.float32, (len(self.weights),))
        _bounded(self.spec, weights=self.weights, intercepts=self.intercepts)

    @property
    def length(self) -> int:
        """Coordinates of an answer: records it is right on, records."""
        return 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthRange:
    """Nothing more to ask."""

    spec: LengthRangeSpec

    @property
    def length(self) -> int:
        """Coordinates of an answer: shortest, longest."""
        return 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeedChoice:
    """The public pool to choose from.

    Attributes:
        spec: The planned specification.
        vectors: (candidates, dim) float32, unit norm.
        labels: (candidates,) int32, at least 0: position of each candidate's label in the plan.
    """

    spec: SeedChoiceSpec
    vectors: NDArray[np.float32]
    labels: NDArray[np.int32]

    def __post_init__(self) -> None:
        _labelled_rows(self.spec, self.vectors, self.labels)

    @property
    def length(self) -> int:
        """Coordinates of an answer: one a choice."""
        return self.spec.choices


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texts:
    """Nothing more to ask, whichever kind it is: labels are the plan's, models and records the party's."""

    spec: TextSpec

    @property
    def length(self) -> int:
        """Coordinates of an answer, as `common/texts.py` writes texts down."""
        return texts.length(self.spec.texts, self.spec.longest)


Summed = Votes | LabelHistogram | LengthHistogram | Vocabulary | Sketch | SelfSimilarity | CorrectCount
Query = Summed | LengthRange | SeedChoice | Texts

_ASKED: dict[str, type[Query]] = {
    VotesSpec.kind: Votes,
    LabelHistogramSpec.kind: LabelHistogram,
    LengthHistogramSpec.kind: LengthHistogram,
    VocabularySpec.kind: Vocabulary,
    SketchSpec.kind: Sketch,
    SelfSimilaritySpec.kind: SelfSimilarity,
    CorrectCountSpec.kind: CorrectCount,
    LengthRangeSpec.kind: LengthRange,
    SeedChoiceSpec.kind: SeedChoice,
    AbstractedSeedsSpec.kind: Texts,
    FineTunedSpec.kind: Texts,
    RewrittenSpec.kind: Texts,
}


DTYPES = {
    "vectors": "<f4",
    "labels": "<i4",
    "edges": "<i4",
    "terms": "|u1",
    "frequencies": "<f4",
    "phases": "<f4",
    "weights": "<f4",
    "intercepts": "<f4",
}
"""Of each array, as it travels."""


def inputs(query: Query) -> dict[str, NDArray[Any]]:
    """The query's arrays by name."""
    return {field.name: getattr(query, field.name) for field in fields(query) if field.name != "spec"}


def to_bytes(query: Query) -> bytes:
    """The contents of all arrays, one after the other, little-endian, row by row."""
    return b"".join(array.astype(DTYPES[name], copy=False).tobytes() for name, array in inputs(query).items())


def from_bytes(spec: Spec, shapes: Mapping[str, tuple[int, ...]], data: bytes) -> Query:
    """The query whose arrays have these shapes and contents.

    Raises:
        ProtocolError: They are not its arrays, or sizes disagree.
    """
    arrays, start = {}, 0
    for name, shape in shapes.items():
        if name not in DTYPES:
            raise ProtocolError(f"arrays of a {spec.kind} query", expected=f"among {', '.join(DTYPES)}", got="another")
        dtype = np.dtype(DTYPES[name])
        end = start + math.prod(shape) * dtype.itemsize
        if end > len(data):
            raise ProtocolError(f"{name} of a {spec.kind} query", expected=f"{shape} {dtype}", got="fewer bytes")
        arrays[name] = np.frombuffer(data[start:end], dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="))
        start = end
    if start < len(data):
        raise ProtocolError(f"arrays of a {spec.kind} query", expected=f"{start} bytes", got=len(data))
    return asked(spec, arrays)


def asked(spec: Spec, arrays: Mapping[str, NDArray[Any]]) -> Query:
    """The query of that specification with these arrays.

    Raises:
        ProtocolError: They are not its arrays.
    """
    kind = _ASKED[spec.kind]
    expected = {field.name for field in fields(kind)} - {"spec"}
    if set(arrays) != expected:
        raise ProtocolError(f"arrays of a {spec.kind} query", expected=sorted(expected), got=sorted(arrays))
    return kind(spec=spec, **arrays)  # type: ignore[arg-type]


def digest(query: Query) -> bytes:
    """SHA-256 over specification, names, shapes and little-endian contents: equal for equal queries and no others."""
    header = [spec_to_dict(query.spec), *([name, *array.shape] for name, array in inputs(query).items())]
    running = hashlib.sha256(b"caucus/query/2" + json.dumps(header, sort_keys=True).encode() + b"\0")
    running.update(to_bytes(query))
    return running.digest()


def encode_terms(terms: tuple[str, ...]) -> NDArray[np.uint8]:
    """The array form of a vocabulary.

    Raises:
        ProtocolError: There is none; one is empty, holds a line feed or half of a character, or stands there twice.
    """
    expected = "different terms in Unicode, none empty, each on one line"
    if not terms or "" in terms or len(set(terms)) < len(terms) or any("\n" in term for term in terms):
        raise ProtocolError("vocabulary", expected=expected, got="others")
    try:
        return np.frombuffer("".join(f"{term}\n" for term in terms).encode(), dtype=np.uint8)
    except UnicodeEncodeError as error:
        raise ProtocolError("vocabulary", expected=expected, got="others") from error


def decode_terms(terms: NDArray[np.uint8]) -> tuple[str, ...]:
    """Inverse of `encode_terms`."""
    return tuple(terms.tobytes().decode().split("\n")[:-1])


def _check_terms(spec: Spec, terms: NDArray[np.uint8]) -> None:
    if terms.ndim != 1 or terms.dtype != np.uint8 or not len(terms) or terms[-1] != ord("\n"):
        raise _wrong(spec, "terms", "bytes that end with a line feed", _shape(terms))
    try:
        encode_terms(decode_terms(terms))
    except (UnicodeDecodeError, ProtocolError) as error:
        raise _wrong(spec, "terms", "different terms in UTF-8, none empty", "others") from error


def _labelled_rows(spec: Spec, vectors: NDArray[np.float32], labels: NDArray[np.int32]) -> None:
    _unit_rows(spec, vectors=vectors)
    _shaped(spec, "labels", labels, np.int32, (len(vectors),))
    if labels.min() < 0:
        raise _wrong(spec, "labels", "numbers >= 0", int(labels.min()))


def _unit_rows(spec: Spec, *, vectors: NDArray[np.float32]) -> None:
    if vectors.ndim != 2 or vectors.dtype != np.float32 or 0 in vectors.shape:
        raise _wrong(spec, "vectors", "a non-empty (rows, dim) float32 array", _shape(vectors))
    # NaN and infinity fail this comparison too.
    norms = np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64)
    wrong = np.flatnonzero(~(np.abs(norms - 1) <= 2 * _NORM_TOLERANCE))
    if len(wrong):
        raise _wrong(spec, f"vectors, row {wrong[0]}", "finite and of norm 1", f"squared norm {norms[wrong[0]]:.6g}")


def _shaped(spec: Spec, name: str, array: NDArray[Any], dtype: type, shape: tuple[int, ...]) -> None:
    if array.shape != shape or array.dtype != dtype:
        raise _wrong(spec, name, f"{shape} {np.dtype(dtype)}", _shape(array))


def _bounded(spec: Spec, **arrays: NDArray[np.float32]) -> None:
    for name, array in arrays.items():
        # NaN and infinity fail this comparison too.
        if not (np.abs(array) <= _LARGEST_ENTRY).all():
            raise _wrong(spec, name, f"numbers within +-{_LARGEST_ENTRY:g}", "others")


def _shape(array: NDArray[Any]) -> str:
    return f"{array.shape} {array.dtype}"


def _wrong(spec: Spec, name: str, expected: str, got: object) -> ProtocolError:
    return ProtocolError(f"{name} of a {spec.kind} query", expected=expected, got=got)

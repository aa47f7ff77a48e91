"""The closed set of private queries that a party answers, and the sensitivity of each.

Each query has a page in this package, which contains its specification, the proof of its sensitivity and its arrays
(`common/queries/page.py`). Each answer is a vector of integers. A query that is not in `QUERIES` cannot be asked.

    specification        one record adds                              noise                     answer of L parties
    VotesSpec            integers 2^(Q-q) to its Q nearest (furthest) Gaussian, Laplace         sum
    LabelHistogramSpec   1 to its label                               Laplace, Gaussian         sum
    LabelSetsSpec        1 to the size of its label set, each label   Gaussian, Laplace         sum
                         and each pair of labels
    SectionOrderSpec     1 to its first section, its last one, and Gaussian, Laplace         sum
                         each two that follow one another
    LengthHistogramSpec  1 to the bin of its length                   Laplace, Gaussian         sum
    VocabularySpec       1 to each of its first k terms               Laplace, Gaussian         sum
    SketchSpec           random Fourier features of its phrases       Gaussian, Laplace         sum
    ClassSumsSpec        its coordinates in k directions, and A       Gaussian, Laplace         sum
    QuestionnaireSpec    as ClassSumsSpec, its answers, first m terms Gaussian, Laplace         sum
    SelfSimilaritySpec   the cosine of its pair, and 1                Laplace, Gaussian         sum
    CorrectCountSpec     1 if a model is right about it, and 1        Laplace, Gaussian         sum
    LengthRangeSpec      1 to "how many are longer than x"            sparse vector, in a party one each
    SeedChoiceSpec       its choice of a candidate                    noisy max, in a party     one each
    TextSpec             a text: three kinds in `texts.py`           see there                 one each

A keyword histogram (each record votes for the nearest keyword of its label) is `VotesSpec(top=1, furthest=False)`.

Two data sets are neighbours if one has one unit more than the other. A unit is a record or, at user level, all records
of one user. A party keeps at most m = `max_records` records of a user, by a rule that depends only on that user's
records. If these m records are added one after the other, their changes add up, so by the triangle inequality l1 and l2
are at most m times as large as for one record. Each proof is therefore for one record. A record with several labels
counts once, under the first, except in answers whose specification has `labels_per_record`: in these, it counts under
at most that many of its labels. In a plan that takes records section by section (`section_order.py`), the labels are
headings, and a record counts under each of its headings with the vector of that section: no proof needs the vectors of
one record to be equal.

The answers to all queries but the last three are sums over the parties' disjoint records; each record belongs to one
party, so the bounds hold unchanged for the sum, and also for the list of all parties' answers.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError, ProtocolError
from common.queries.class_sums import ClassSums, ClassSumsSpec
from common.queries.correct_count import CorrectCount, CorrectCountSpec
from common.queries.histograms import (
    LabelHistogram,
    LabelHistogramSpec,
    LengthHistogram,
    LengthHistogramSpec,
    Vocabulary,
    VocabularySpec,
)
from common.queries.label_sets import LabelSets, LabelSetsSpec
from common.queries.length_range import LengthRange, LengthRangeSpec
from common.queries.page import Query as Query  # noqa: PLC0414 the types of the closed set's members, exported with it
from common.queries.page import Spec as Spec  # noqa: PLC0414
from common.queries.questionnaire import Questionnaire, QuestionnaireSpec
from common.queries.section_order import SectionOrder, SectionOrderSpec
from common.queries.seed_choice import SeedChoice, SeedChoiceSpec
from common.queries.self_similarity import SelfSimilarity, SelfSimilaritySpec
from common.queries.sketch import Sketch, SketchSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec, Texts
from common.queries.votes import Votes, VotesSpec
from common.validate import check_fields

QUERIES: tuple[tuple[type[Spec], type[Query]], ...] = (
    (VotesSpec, Votes),
    (LabelHistogramSpec, LabelHistogram),
    (LabelSetsSpec, LabelSets),
    (SectionOrderSpec, SectionOrder),
    (LengthHistogramSpec, LengthHistogram),
    (VocabularySpec, Vocabulary),
    (SketchSpec, Sketch),
    (ClassSumsSpec, ClassSums),
    (QuestionnaireSpec, Questionnaire),
    (SelfSimilaritySpec, SelfSimilarity),
    (CorrectCountSpec, CorrectCount),
    (LengthRangeSpec, LengthRange),
    (SeedChoiceSpec, SeedChoice),
    (AbstractedSeedsSpec, Texts),
    (FineTunedSpec, Texts),
    (RewrittenSpec, Texts),
)
"""The closed set: each specification with its query."""

KINDS = tuple(spec.kind for spec, _ in QUERIES)
"""Names of all queries."""

_AS_BEFORE = (("labels_per_record", 1),)
"""Fields added later, with the values assumed in a specification without them, so that plans keep their digests."""

PROVEN = tuple(spec.kind for spec, _ in QUERIES if not spec.unproven)
"""Names of the queries whose answers have a privacy proof."""


def spec_to_dict(spec: Spec) -> dict[str, Any]:
    """Return plain values for JSON, with the query's name; omit fields of `_AS_BEFORE` that have the assumed values."""
    plain = {"kind": spec.kind, **asdict(spec)}
    return {name: value for name, value in plain.items() if (name, value) not in _AS_BEFORE}


def spec_from_dict(plain: Mapping[str, Any]) -> Spec:
    """Return the specification from which `spec_to_dict` made these values.

    Raises:
        ConfigError: No query of that name has exactly these fields, or a value is of another type or out of range.
    """
    values = dict(plain)
    kind = values.pop("kind", "")
    for spec, _ in QUERIES:
        names = {field.name for field in fields(spec)}
        if spec.kind == kind and names >= set(values) >= names - dict(_AS_BEFORE).keys():
            check_fields(spec, values)
            return spec(**values)
    raise ConfigError("query", expected=f"one of {', '.join(KINDS)}, with its fields", got="another")


def inputs(query: Query) -> dict[str, NDArray[Any]]:
    """Return the query's arrays, keyed by name."""
    return {name: getattr(query, name) for name in query.dtypes}


def to_bytes(query: Query) -> bytes:
    """Return the contents of all arrays, one array after the other, little-endian, row by row."""
    return b"".join(array.astype(query.dtypes[name], copy=False).tobytes() for name, array in inputs(query).items())


def from_bytes(spec: Spec, shapes: Mapping[str, tuple[int, ...]], data: bytes) -> Query:
    """Return the query whose arrays have these shapes and contents.

    Raises:
        ProtocolError: The query has different arrays, or sizes disagree.
    """
    dtypes = _query_type(spec).dtypes
    arrays, start = {}, 0
    for name, shape in shapes.items():
        if name not in dtypes:
            raise ProtocolError(f"arrays of a {spec.kind} query", expected=list(dtypes), got="another")
        dtype = np.dtype(dtypes[name])
        end = start + math.prod(shape) * dtype.itemsize
        if end > len(data):
            raise ProtocolError(f"{name} of a {spec.kind} query", expected=f"{shape} {dtype}", got="fewer bytes")
        arrays[name] = np.frombuffer(data[start:end], dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="))
        arrays[name].flags.writeable = False  # parties of a simulation share them
        start = end
    if start < len(data):
        raise ProtocolError(f"arrays of a {spec.kind} query", expected=f"{start} bytes", got=len(data))
    return make_query(spec, arrays)


def make_query(spec: Spec, arrays: Mapping[str, NDArray[Any]]) -> Query:
    """Return the query of that specification with these arrays.

    Raises:
        ProtocolError: The query has different arrays.
    """
    query = _query_type(spec)
    if set(arrays) != set(query.dtypes):
        raise ProtocolError(f"arrays of a {spec.kind} query", expected=sorted(query.dtypes), got=sorted(arrays))
    return query(spec=spec, **arrays)  # type: ignore[call-arg]


def digest(query: Query) -> bytes:
    """Return the SHA-256 of specification, names, shapes and little-endian contents, equal only for equal queries."""
    header = [spec_to_dict(query.spec), *([name, *array.shape] for name, array in inputs(query).items())]
    running = hashlib.sha256(b"caucus/query/2" + json.dumps(header, sort_keys=True).encode() + b"\0")
    running.update(to_bytes(query))
    return running.digest()


def _query_type(spec: Spec) -> type[Query]:
    for specification, query in QUERIES:
        if specification is type(spec):
            return query
    raise ProtocolError("query", expected=f"one of {', '.join(KINDS)}", got=spec.kind)

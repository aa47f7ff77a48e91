import dataclasses

import numpy as np
import pytest

from common.errors import ProtocolError
from common.queries import closed_set
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
from common.queries.questionnaire import Questionnaire, QuestionnaireSpec
from common.queries.section_order import SectionOrder, SectionOrderSpec
from common.queries.seed_choice import SeedChoice, SeedChoiceSpec
from common.queries.self_similarity import SelfSimilarity, SelfSimilaritySpec
from common.queries.sketch import Sketch, SketchSpec
from common.queries.terms import decode_terms, encode_terms
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec, Texts
from common.queries.votes import Votes, VotesSpec

_TERMS = encode_terms(("fever", "chest pain"))
_VECTORS = np.array([[1, 0], [0.6, 0.8]], np.float32)


def _votes(vectors=_VECTORS, labels=(0, 1), **spec):
    return Votes(spec=VotesSpec(**{"top": 8, **spec}), vectors=vectors, labels=np.array(labels, np.int32))


def _sketch(paired=True, prefix=0, **changes):
    rows = 2 if paired else 4
    spec = SketchSpec(labels=3, features=4, paired=paired, prefix=prefix)
    arrays = {
        "terms": _TERMS,
        "vectors": _VECTORS,
        "frequencies": np.arange(rows * 2 * max(1, prefix), dtype=np.float32).reshape(rows, -1),
        "phases": np.arange(0 if paired else rows, dtype=np.float32),
    }
    return Sketch(spec=spec, **(arrays | changes))


def _lengths(edges=(10, 20), **spec):
    return LengthHistogram(spec=LengthHistogramSpec(bins=3, **spec), edges=np.array(edges, np.int32))


def _classifier(weights=((1, 2, 3), (4, 5, 6)), intercepts=(0, 1)):
    return CorrectCount(
        spec=CorrectCountSpec(), weights=np.array(weights, np.float32), intercepts=np.array(intercepts, np.float32)
    )


def _sums(labels=3, radius=(0.5,), **changes):
    arrays = {
        "basis": np.array([[1, 0, 0], [0, 0.6, 0.8]], np.float32),
        "centres": np.full((labels, 3), 0.3, np.float32),
        "radius": np.array(radius, np.float32),
    }
    return ClassSums(spec=ClassSumsSpec(labels=labels, directions=2, count=512), **(arrays | changes))


def _questionnaire(terms=_TERMS, arrays=None, **changes):
    settings = {"labels": 3, "directions": 2, "count": 512, "person": 9, "first": 2, "term": 1}
    sums = closed_set.inputs(_sums()) | (arrays or {})
    return Questionnaire(spec=QuestionnaireSpec(**settings | changes), terms=terms, **sums)


_NO_TERMS = np.zeros(0, np.uint8)


def _vocabulary(terms=_TERMS, **spec):
    return Vocabulary(spec=VocabularySpec(**{"first": 2, **spec}), terms=terms)


def _seeds(vectors=_VECTORS, labels=None, **spec):
    labels = np.zeros(len(vectors), np.int32) if labels is None else labels
    return SeedChoice(spec=SeedChoiceSpec(**{"choices": 5, **spec}), vectors=vectors, labels=labels)


_QUERIES = {
    "votes": (_votes(), 4),
    "nearest votes": (_votes(furthest=False), 2),
    "label histogram": (LabelHistogram(spec=LabelHistogramSpec(labels=3)), 3),
    "section order": (SectionOrder(spec=SectionOrderSpec(labels=3, labels_per_record=2)), 3 * 4),
    "label sets": (LabelSets(spec=LabelSetsSpec(labels=3, labels_per_record=2)), 2 + 3 + 3),
    "length histogram": (_lengths(), 3),
    "one bin": (LengthHistogram(spec=LengthHistogramSpec(bins=1), edges=np.zeros(0, np.int32)), 1),
    "vocabulary": (_vocabulary(), 2),
    "paired sketch": (_sketch(), 12),
    "single sketch": (_sketch(paired=False), 12),
    "sketch of prefixes": (_sketch(prefix=3), 12),
    "class sums": (_sums(), 9),
    "questionnaire": (_questionnaire(), 9 + 4 + 2),
    "questionnaire without terms": (_questionnaire(_NO_TERMS, first=0, term=0), 9 + 4),
    "questionnaire of terms": (_questionnaire(person=0), 9 + 2),
    "self-similarity": (SelfSimilarity(spec=SelfSimilaritySpec(buckets=9)), 2),
    "correct count": (_classifier(), 2),
    "length range": (LengthRange(spec=LengthRangeSpec(cap=100)), 2),
    "seed choice": (_seeds(), 5),
    "abstracted seeds": (Texts(spec=AbstractedSeedsSpec(choices=5, longest=9)), 50),
    "fine-tuned samples": (Texts(spec=FineTunedSpec(texts=5, longest=9)), 50),
    "rewritten records": (Texts(spec=RewrittenSpec(texts=5, longest=9)), 50),
}


def test_there_is_a_query_of_each_kind_here():
    assert {type(query) for query, _ in _QUERIES.values()} == {query for _, query in closed_set.QUERIES}


@pytest.mark.parametrize("name", _QUERIES)
def test_the_fields_are_the_specification_and_then_the_arrays_in_the_order_of_the_wire(name):
    query, _ = _QUERIES[name]
    assert [field.name for field in dataclasses.fields(query)] == ["spec", *query.dtypes]
    for key, dtype in query.dtypes.items():
        assert getattr(query, key).dtype == np.dtype(dtype)


@pytest.mark.parametrize("name", _QUERIES)
def test_length_and_both_ways_back_from_arrays(name):
    query, length = _QUERIES[name]
    assert query.length == length
    arrays = closed_set.inputs(query)
    again = closed_set.make_query(query.spec, arrays)
    assert type(again) is type(query)
    assert closed_set.digest(again) == closed_set.digest(query)
    shapes = {key: array.shape for key, array in arrays.items()}
    data = closed_set.to_bytes(query)
    from_data = closed_set.from_bytes(query.spec, shapes, data)
    assert closed_set.digest(from_data) == closed_set.digest(query)
    for key, array in closed_set.inputs(from_data).items():
        assert array.dtype == arrays[key].dtype
        assert np.array_equal(array, arrays[key])
    for wrong in (data + b"\0", data[:-1]):
        if wrong != data:
            with pytest.raises(ProtocolError):
                closed_set.from_bytes(query.spec, shapes, wrong)


@pytest.mark.parametrize("name", _QUERIES)
def test_other_arrays_than_its_own_are_refused(name):
    query, _ = _QUERIES[name]
    arrays = closed_set.inputs(query)
    more = arrays | {"secrets": np.zeros(3)}
    with pytest.raises(ProtocolError, match="arrays"):
        closed_set.make_query(query.spec, more)
    with pytest.raises(ProtocolError, match="arrays"):
        closed_set.from_bytes(query.spec, {key: array.shape for key, array in more.items()}, closed_set.to_bytes(query))
    for left_out in arrays:
        fewer = {key: array for key, array in arrays.items() if key != left_out}
        with pytest.raises(ProtocolError, match="arrays"):
            closed_set.make_query(query.spec, fewer)


@pytest.mark.parametrize("name", _QUERIES)
def test_the_digest_depends_on_every_part(name):
    query, _ = _QUERIES[name]
    digests = {closed_set.digest(query)}
    changed = [dataclasses.replace(query, spec=dataclasses.replace(query.spec, max_records=2))]
    for key, array in closed_set.inputs(query).items():
        if key in ("vectors", "terms", "basis") and len(array):
            # Rows, or letters of the first word, in another order.
            changed.append(dataclasses.replace(query, **{key: array[[1, 0, *range(2, len(array))]]}))
        elif len(array):
            for place in range(array.size):
                other = array.copy()
                other.flat[place] += 0.25 if array.dtype.kind == "f" else 1
                changed.append(dataclasses.replace(query, **{key: other}))
    digests |= {closed_set.digest(other) for other in changed}
    assert len(digests) == len(changed) + 1
    assert all(len(digest) == 32 for digest in digests)


def test_digests_of_all_queries_differ():
    assert len({closed_set.digest(query) for query, _ in _QUERIES.values()}) == len(_QUERIES)
    # The same bytes in other shapes are another question.
    flat = _classifier(weights=np.arange(6).reshape(2, 3))
    tall = CorrectCount(
        spec=flat.spec, weights=np.arange(6, dtype=np.float32).reshape(2, 3)[:, :2].copy(), intercepts=flat.intercepts
    )
    assert closed_set.digest(flat) != closed_set.digest(tall)


def test_memory_layout_and_byte_order_are_not_content():
    reference = _votes()
    other = _votes(vectors=np.asfortranarray(reference.vectors))
    assert closed_set.digest(other) == closed_set.digest(reference)
    assert closed_set.to_bytes(other) == closed_set.to_bytes(reference)
    assert closed_set.to_bytes(_lengths((1, 256))) == b"\1\0\0\0\0\1\0\0"


_NAN = np.array([[np.nan, 0], [0, 1]], np.float32)


@pytest.mark.parametrize(
    "vectors",
    [
        _VECTORS.astype(np.float64),
        _VECTORS[0],
        np.empty((0, 2), np.float32),
        np.empty((2, 0), np.float32),
        2 * _VECTORS,
        0.99 * _VECTORS,
        _NAN,
        np.full((2, 2), np.inf, np.float32),
    ],
)
def test_vectors_that_are_not_finite_unit_rows_are_refused(vectors):
    for build in (_votes, _seeds, lambda vectors: _sketch(vectors=vectors)):
        with pytest.raises(ProtocolError, match="vectors"):
            build(vectors=vectors)


@pytest.mark.parametrize(
    "labels", [np.zeros(3, np.int32), np.zeros(2, np.int64), np.array([0, -1], np.int32), np.zeros((2, 1), np.int32)]
)
def test_labels_of_candidates_are_one_number_each(labels):
    for kind, spec in ((Votes, VotesSpec(top=1)), (SeedChoice, SeedChoiceSpec(choices=5))):
        with pytest.raises(ProtocolError, match="labels"):
            kind(spec=spec, vectors=_VECTORS, labels=labels)


@pytest.mark.parametrize(
    "edges",
    [
        np.array([1], np.int32),
        np.array([1, 2, 3], np.int32),
        np.array([1, 2], np.int64),
        np.array([1.0, 2.0]),
        np.array([2, 2], np.int32),
        np.array([2, 1], np.int32),
        # The difference does not fit into 32 bits.
        np.array([2**31 - 1, -(2**31)], np.int32),
    ],
)
def test_edges_are_ascending_and_one_fewer_than_bins(edges):
    with pytest.raises(ProtocolError, match="edges"):
        LengthHistogram(spec=LengthHistogramSpec(bins=3), edges=edges)
    assert _lengths((-(2**31), 2**31 - 1)).length == 3


@pytest.mark.parametrize(
    "terms",
    [
        np.zeros(0, np.uint8),
        np.frombuffer(b"fever", np.uint8),
        np.frombuffer(b"fever\n\n", np.uint8),
        np.frombuffer(b"\n", np.uint8),
        np.frombuffer(b"fever\npain\nfever\n", np.uint8),
        np.frombuffer(b"\xff\n", np.uint8),
        np.frombuffer(b"\xed\xa0\x80\n", np.uint8),
        np.frombuffer(b"fever\n", np.int8),
        _TERMS[None],
        np.frombuffer(b"a b c d e f g h i\n", np.uint8),
        np.frombuffer("\ufdfa \ufdfa i\n".encode(), np.uint8),  # two characters of four words each
        np.frombuffer(b"x" * 257 + b"\n", np.uint8),
    ],
)
def test_terms_are_different_lines_of_utf_8(terms):
    with pytest.raises(ProtocolError, match="terms"):
        _vocabulary(terms)
    with pytest.raises(ProtocolError, match="terms"):
        _sketch(terms=terms)
    with pytest.raises(ProtocolError, match="terms of"):
        _questionnaire(terms)


@pytest.mark.parametrize("terms", [_TERMS, np.zeros(0, np.int8), np.zeros((0, 1), np.uint8)])
def test_a_questionnaire_without_terms_has_no_list(terms):
    with pytest.raises(ProtocolError, match="terms of"):
        _questionnaire(terms, first=0, term=0)


def test_terms_become_bytes_and_back():
    terms = ("naïve", "a b", "ﬁ", "x\ty", "\u2028")
    assert decode_terms(encode_terms(terms)) == terms
    assert _vocabulary(encode_terms(terms)).length == 5
    assert decode_terms(encode_terms(("a b c d e f g h", "x" * 256))) == ("a b c d e f g h", "x" * 256)
    for wrong in ((), ("a b c d e f g h i",), ("\ud800",), ("",), ("a", "a"), ("a\nb",)):
        with pytest.raises(ProtocolError, match="vocabulary"):
            encode_terms(wrong)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"terms": encode_terms(("one",))}, "vectors"),
        ({"frequencies": np.zeros((4, 2), np.float32)}, "frequencies"),
        ({"frequencies": np.zeros((2, 4), np.float32)}, "frequencies"),
        ({"frequencies": np.zeros((2, 2))}, "frequencies"),
        ({"frequencies": _NAN}, "frequencies"),
        ({"frequencies": np.full((2, 2), 2e6, np.float32)}, "frequencies"),
        ({"frequencies": np.full((2, 2), -np.inf, np.float32)}, "frequencies"),
        ({"phases": np.zeros(2, np.float32)}, "phases"),
        ({"phases": np.zeros(0)}, "phases"),
        ({"paired": False, "phases": np.zeros(0, np.float32)}, "phases"),
        ({"paired": False, "phases": np.full(4, np.nan, np.float32)}, "phases"),
        ({"paired": False, "frequencies": np.zeros((2, 2), np.float32)}, "frequencies"),
        ({"prefix": 2, "frequencies": np.zeros((2, 2), np.float32)}, "frequencies"),
    ],
)
def test_sketches_have_vectors_frequencies_and_phases_that_fit(changes, named):
    with pytest.raises(ProtocolError, match=named):
        _sketch(**changes)


@pytest.mark.parametrize(
    ("weights", "intercepts"),
    [
        (np.zeros((2, 3)), np.zeros(2, np.float32)),
        (np.zeros(3, np.float32), np.zeros(3, np.float32)),
        (np.zeros((0, 3), np.float32), np.zeros(0, np.float32)),
        (np.zeros((2, 3), np.float32), np.zeros(3, np.float32)),
        (np.zeros((2, 3), np.float32), np.zeros(2)),
        (np.full((2, 3), np.nan, np.float32), np.zeros(2, np.float32)),
        (np.full((2, 3), 1e7, np.float32), np.zeros(2, np.float32)),
        (np.zeros((2, 3), np.float32), np.array([0, np.inf], np.float32)),
    ],
)
def test_classifiers_are_finite_and_fit(weights, intercepts):
    with pytest.raises(ProtocolError):
        CorrectCount(spec=CorrectCountSpec(), weights=weights, intercepts=intercepts)


_BASIS = np.array([[1, 0, 0], [0, 0.6, 0.8]], np.float32)
_CENTRES = np.full((3, 3), 0.3, np.float32)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"basis": _BASIS.astype(np.float64)}, "basis"),
        ({"basis": _BASIS[0]}, "basis"),
        ({"basis": _BASIS[:0]}, "basis"),
        ({"basis": np.empty((2, 0), np.float32)}, "basis"),
        ({"basis": _BASIS[:1]}, "basis"),
        ({"basis": np.eye(3, dtype=np.float32)}, "basis"),
        ({"basis": 2 * _BASIS}, "basis, row 0"),
        ({"basis": 0 * _BASIS}, "basis, row 0"),
        ({"basis": _BASIS * np.array([[1], [np.nan]], np.float32)}, "basis, row 1"),
        ({"basis": np.full((2, 3), np.inf, np.float32)}, "basis, row 0"),
        ({"basis": np.full((2, 3), 3e38, np.float32)}, "basis, row 0"),
        ({"basis": _BASIS[[0, 0]]}, "basis.*orthogonal"),
        ({"basis": -_BASIS[[1, 1]]}, "basis.*orthogonal"),
        ({"basis": np.array([[1, 0, 0], [0.01, 0.99995, 0]], np.float32)}, "basis.*orthogonal.*0.01"),
        # More directions than dimensions.
        ({"basis": np.ones((2, 1), np.float32), "centres": np.zeros((3, 1), np.float32)}, "basis.*at most 1 rows"),
        ({"centres": _CENTRES[:2]}, "centres"),
        ({"centres": _CENTRES[:, :2]}, "centres"),
        ({"centres": _CENTRES[0]}, "centres"),
        ({"centres": _CENTRES.astype(np.float64)}, "centres"),
        ({"centres": 2 * _CENTRES}, "centres, row 0"),
        ({"centres": _CENTRES + np.diag([0, 0, np.nan]).astype(np.float32)}, "centres, row 2"),
        ({"centres": np.full((3, 3), -np.inf, np.float32)}, "centres, row 0"),
        *(({"radius": (wrong,)}, "radius") for wrong in (0, -0.5, 9e-4, 4.1, 3e38, np.inf, -np.inf, np.nan)),
        ({"radius": ()}, "radius"),
        ({"radius": (0.5, 0.5)}, "radius"),
        ({"radius": 0.5}, "radius"),
    ],
)
def test_a_subspace_is_orthonormal_and_finite_and_fits(changes, named):
    arrays = {key: np.asarray(value, np.float32) if key == "radius" else value for key, value in changes.items()}

    def used(build):
        query = build()
        query.check(3, query.basis.shape[1])

    for kind, build in {
        "class sums": lambda: _sums(**changes),
        "questionnaire": lambda: _questionnaire(arrays=arrays),
    }.items():
        with pytest.raises(ProtocolError, match=f"^{named}") as caught:
            used(build)
        assert f"of a {kind} query" in str(caught.value)


_OF_ENCODER = {
    name: next(getattr(query, array).shape[1] for array in ("vectors", "weights", "basis") if array in query.dtypes)
    for name, (query, _) in _QUERIES.items()
    if {"vectors", "weights", "basis"} & set(query.dtypes) and not isinstance(query, Sketch)  # of its own terms
}


@pytest.mark.parametrize("name", _OF_ENCODER)
def test_a_query_for_another_encoder_is_refused(name):
    with pytest.raises(ProtocolError, match="dimension"):
        _QUERIES[name][0].check(3, _OF_ENCODER[name] + 1)


def test_a_basis_is_multiplied_with_itself_only_once_its_sizes_are_known_to_be_right():
    query = _sums(basis=_BASIS[[0, 0]])
    with pytest.raises(ProtocolError, match="4 dimensions"):
        query.check(3, 4)
    with pytest.raises(ProtocolError, match="orthogonal"):
        query.check(3, 3)


def test_what_rounding_leaves_of_a_subspace_is_accepted():
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.standard_normal((384, 64)))[0].T.astype(np.float32)
    spec = ClassSumsSpec(labels=1, directions=64, count=512)
    for radius in (1e-3, 4.0):
        sums = {"basis": basis, "centres": basis[:1], "radius": np.array([radius], np.float32)}
        query = ClassSums(spec=spec, **sums)
        query.check(1, 384)
        with pytest.raises(ProtocolError, match="basis"):
            query.check(1, 385)


def test_errors_show_shapes_and_no_contents():
    with pytest.raises(ProtocolError) as caught:
        _votes(vectors=np.full((2, 2), 0.123, np.float32))
    assert "squared norm" in str(caught.value)
    with pytest.raises(ProtocolError) as caught:
        _sketch(terms=np.frombuffer(b"fever\nfever\n", np.uint8))
    assert "fever" not in str(caught.value)

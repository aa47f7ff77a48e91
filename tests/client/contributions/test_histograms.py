import numpy as np
import pytest

from client.contributions import counts
from common.queries import terms
from common.queries.histograms import (
    LabelHistogram,
    LabelHistogramSpec,
    LengthHistogram,
    LengthHistogramSpec,
    Vocabulary,
    VocabularySpec,
)
from tests.support.asking import TERMS, embedded


def test_labels():
    records = embedded("abcde", [2, 0, 2, 1, 5])
    of_labels = counts.count_labels(LabelHistogram(spec=LabelHistogramSpec(labels=4)), records)
    assert of_labels.tolist() == [1, 1, 2, 0]


def test_lengths_are_words_between_white_space():
    records = embedded(["", "one", " two\twords \n", "don't - count, that", "x" * 1000])
    assert counts.lengths(records).tolist() == [0, 1, 2, 4, 1]
    assert counts.lengths(embedded([])).dtype == np.int64


@pytest.mark.parametrize(("edges", "expected"), [([2, 4], [3, 1, 1]), ([-5, 0], [0, 0, 5]), ([], [5]), ([9], [5, 0])])
def test_bins_cover_everything(edges, expected):
    query = LengthHistogram(spec=LengthHistogramSpec(bins=len(edges) + 1), edges=np.array(edges, dtype=np.int32))
    records = embedded(["", "a", "a", "a b", "a b c d"])
    assert counts.count_lengths(query, records).tolist() == expected


def test_terms_among_the_first_k_count_once_a_record():
    query = Vocabulary(spec=VocabularySpec(first=2), terms=terms.encode_terms(TERMS))
    texts = ["Fever, fever; chest pain and a cough", "pain relief", "nothing", "cough cough"]
    assert counts.count_terms(query, embedded(texts)).tolist() == [1, 1, 1, 1, 0]

"""Each feature finds what it says, by pool and texts alone."""

import numpy as np
import pytest

from client.disclosures import features
from client.disclosures.features import FEATURES, flag_disclosed, nearest, words_of

PERSONAL, RARE, SPANS, ALONE, NEAREST = FEATURES
NOTHING = tuple(f"nothing here is common to text number {number}, or nearly so" for number in range(20))


def flags_of(records, texts, *, personal=None, nearness=None):
    nearness = np.zeros((len(records), 2), dtype=np.float32) if nearness is None else nearness
    found = flag_disclosed(records, texts, personal=personal, nearness=nearness)
    return {name: np.flatnonzero(flags).tolist() for name, flags in found.items()}


def test_a_rare_sequence_is_in_one_record_alone_and_crosses_no_end_of_a_text():
    records = ["The cough, which began on Monday, is dry.", "No fever since Monday.", "the cough which began on Friday"]
    assert flags_of(records, ["It said: cough which began on MONDAY"])[RARE] == [0]
    assert flags_of(records, ["the cough which began on"])[RARE] == []  # two records have it
    assert flags_of(records, ["which began on monday", "is dry"])[RARE] == []  # four words, and another text
    assert flags_of(["one two three", "four five six"], ["two three four five six"])[RARE] == []


def test_the_longest_spans_are_counted_in_words():
    records = [f"alpha beta {number} " + " ".join(["gamma"] * number) for number in range(15)]
    assert flags_of(records, records)[SPANS] == list(range(3, 15))
    assert flags_of(records, ["nothing of them"])[SPANS] == []


@pytest.mark.parametrize("seed", range(3))
def test_the_longest_span_is_that_of_a_plain_search(seed):
    generator = np.random.default_rng(seed)
    pool, released = (
        [tuple(map(str, generator.integers(4, size=generator.integers(12)))) for _ in range(30)] for _ in range(2)
    )

    def spans(words, length):
        return {words[start : start + length] for start in range(len(words) - length + 1)}

    rare, longest = features._sequences(pool, released)
    for position, record in enumerate(pool):
        shared = [
            length
            for length in range(1, len(record) + 1)
            if any(spans(record, length) & spans(text, length) for text in released)
        ]
        assert longest[position] == max(shared, default=0)
        mine = spans(record, 5) - {
            span for other in (*pool[:position], *pool[position + 1 :]) for span in spans(other, 5)
        }
        assert rare[position] == any(mine & spans(text, 5) for text in released)


def test_personal_information_counts_if_one_record_alone_has_it_even_undetected():
    values = {"call 555 0199": {words_of("555-0199")}, "Dr. Smith": {("smith",)}, "smith was here": set()}
    flags = flags_of([*values], ["call 555-0199, said Smith"], personal=values.__getitem__)
    assert flags[PERSONAL] == [0]
    assert PERSONAL not in flags_of([*values], ["call"])


def test_patterns_find_values():
    pytest.importorskip("presidio_analyzer")
    assert features.personal_values("Call Dr. Smith at 212-555-0123") >= {("212", "555", "0123")}


def test_the_nearest_tenth_is_flagged_with_its_ties():
    similarity = nearest(np.eye(30, dtype=np.float32), np.eye(30, dtype=np.float32)[[3, 5, 8, 9]])
    assert flags_of(["x"] * 30, ["y"], nearness=similarity)[NEAREST] == [3, 5, 8, 9]


def test_one_near_text_stands_out_and_two_do_not():
    texts = np.eye(30, dtype=np.float32)[[*range(12), 20, 20]]
    similarity = nearest(np.eye(30, dtype=np.float32), texts)
    assert similarity[[0, 20, 25]].tolist() == [[1, 0], [1, 1], [0, 0]]
    assert flags_of(["x"] * 30, ["y"], nearness=similarity)[ALONE] == list(range(12))
    assert nearest(texts, texts[:1])[:2].tolist() == [[1, -1], [0, -1]]


def test_without_a_word_in_common_only_the_ranking_by_the_encoder_is_left():
    assert flags_of([*NOTHING], ["?"]) == {RARE: [], SPANS: [], ALONE: list(range(20)), NEAREST: list(range(20))}

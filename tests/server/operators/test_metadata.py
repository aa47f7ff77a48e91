from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ProviderError
from common.queries.histograms import LengthHistogram, LengthHistogramSpec
from common.rng import experiment
from server.domain import Task
from server.llm.base import Reply
from server.llm.generate import write_texts
from server.operators.metadata import (
    Metadata,
    bins,
    first_tau,
    keyword_shares,
    label_shares,
    length_range,
    length_shares,
    list_keywords,
)

TASK = Task(name="t", kind="note", labels={"a": "A", "b": "B", "c": "C"})


def test_labels_get_their_share_and_one_without_counts_is_named():
    shares, notes = label_shares(np.array([30.0, -2.0, 10.0]), TASK)
    assert shares == {"a": 0.75, "b": 0.0, "c": 0.25}
    assert [note[:3] for note in notes] == ["b: "]
    shares, notes = label_shares(np.array([-3.0, 0.0, -1.0]), TASK)
    assert set(shares.values()) == {1 / 3}
    assert "equal" in notes[0]


def test_the_range_is_the_median_of_the_parties_ends():
    ends = np.array([[4.0, 30.0], [6.0, 36.0], [190.0, 200.0]])
    assert length_range(ends, 200) == ((6, 36), [])
    assert length_range(ends[:2], 200) == ((5, 33), [])
    assert length_range(ends[:1], 200) == ((4, 30), [])
    span, notes = length_range(np.array([[3.0, 200.0]]), 200)  # a search that ends at the cap
    assert (span, "200" in notes[0]) == ((3, 200), True)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 120))
def test_bins_cover_the_range_once_and_go_with_what_parties_count(low, extent, count):
    span = (low, low + extent)
    edges, spans = bins(span, count)
    LengthHistogram(spec=LengthHistogramSpec(bins=count), edges=edges)  # or it is refused
    assert [length for first, last in spans for length in range(first, last + 1)] == list(range(span[0], span[1] + 1))
    assert len(spans) <= count
    for place, (first, last) in enumerate(spans):
        assert set(np.searchsorted(edges, [first, last], side="right")) == {place}


def test_lengths_are_drawn_by_their_bins_shares_and_evenly_within():
    rows, notes = length_shares(np.array([1.0, 3.0, -5.0, 99.0]), [(0, 1), (2, 3), (4, 5)])
    assert rows == [(0, 1, 0.25), (2, 3, 0.75), (4, 5, 0.0)]
    assert not notes
    genes = Metadata(labels={"a": 1.0}, lengths=rows, keywords={}, tau=0.0)
    drawn = Counter(genes.draw_length(experiment(0, place)) for place in range(4000))
    # A count of mean 1500 lies within 5.3 standard deviations of it but once in ten million.
    assert drawn.keys() == {1, 2, 3}, "a text has a word at least"
    assert all(abs(drawn[length] - 1500) < 163 for length in (2, 3))


def test_no_length_above_zero_means_all_of_the_range():
    rows, notes = length_shares(np.array([-1.0, 0.0]), [(1, 1), (2, 2)])
    assert [share for *_, share in rows] == [0.5, 0.5]
    assert "equally" in notes[0]


def test_labels_are_dealt_by_share_to_the_last_text():
    genes = Metadata(labels={"a": 0.5, "b": 0.0, "c": 0.5}, lengths=[], keywords={}, tau=0.0)
    assert genes.deal(5) == ["a", "a", "a", "c", "c"]


def test_a_softmax_over_the_keywords_of_each_label():
    keywords = {"a": ["x", "y"], "b": ["z"]}
    shares = keyword_shares(np.array([3.0, 1.0, -4.0]), keywords, softmax=2.0)
    assert shares["a"]["x"] / shares["a"]["y"] == pytest.approx(np.e)
    assert sum(shares["a"].values()) == pytest.approx(1)
    assert shares["b"] == {"z": 1.0}
    assert keyword_shares(np.array([3e4, -3e4, 0.0]), keywords, softmax=1.0)["a"] == {"x": 1.0, "y": 0.0}


@pytest.mark.parametrize(
    ("total", "pairs", "tau"), [(12.0, 20.0, 0.6), (5.0, 0.5, None), (5.0, -3.0, None), (9.0, 4.0, None), (-2, 4, None)]
)
def test_tau_is_the_mean_similarity_or_starts_at_0_where_noise_left_none(total, pairs, tau):
    tau_of_votes, notes = first_tau(np.array([total, pairs]))
    assert tau_of_votes == pytest.approx(tau or 0.0)
    assert bool(notes) == (tau is None)


class Lister:
    """A model that lists these phrases, whatever is asked."""

    remote = False

    def __init__(self, phrases):
        self.phrases, self.requests = phrases, []

    def generate(self, requests, *, arrived=None):
        self.requests += requests
        return [Reply(texts=tuple(self.phrases), input_tokens=1, output_tokens=1) for _ in requests]


def listed(*models, count=4, maker=Lister):
    providers = {str(number): maker(phrases) for number, phrases in enumerate(models)}
    tools = SimpleNamespace(
        task=TASK,
        models=tuple(providers),
        experiment_seed=0,
        write=lambda requests: write_texts(providers, requests),
    )
    return list_keywords(tools, ["a", "b"], count, temperature=1.4), providers


def test_each_model_lists_its_part_of_the_keywords_of_each_label():
    (keywords, written, notes), providers = listed(["x", "y"], ["z", "w"])
    assert keywords == {"a": ["x", "y", "z", "w"], "b": ["x", "y", "z", "w"]}
    assert not notes
    assert written.use.calls == 4
    for provider in providers.values():
        assert [(request.label, request.n, request.phrases) for request in provider.requests] == [
            ("a", 2, True),
            ("b", 2, True),
        ]
        assert {request.temperature for request in provider.requests} == {1.4}


def test_fewer_keywords_than_asked_and_repetitions_are_stated():
    (keywords, written, notes), _ = listed(["x"], ["y", "X", "more than was asked"])
    assert keywords["a"] == ["x", "y"]
    assert any(note.startswith("a: 2 of 4") for note in notes)
    assert written.lost["0"] == 2


USABLE = ["costs", "X-ray", "type 2 diabetes", "patient's rights", "terms & conditions", "Kosten (privat)"]
USABLE += ["Größe: 4 cm."]
RUBBISH = ["", "...", "12", "mdl fighters🌶ෝ輩🏻}/>", "pleforcement่ม", "five words are too many", "a_b", "<b>cost"]
RUBBISH += ["費用"]


@pytest.mark.parametrize(("phrases", "number"), [(USABLE, len(USABLE)), (RUBBISH, 0)])
def test_a_keyword_has_one_to_four_words_in_the_task_s_script(phrases, number):
    for phrase in phrases:  # most of the letters are Latin
        (keywords, _, _), _ = listed(["first", "second", phrase], count=3)
        assert keywords["a"] == ["first", "second", phrase][: 3 if number else 2]


def test_keywords_may_be_in_a_script_of_their_own():
    (keywords, _, _), _ = listed(["стоимость", "срок службы", "cost"], count=3)
    assert keywords["b"] == ["стоимость", "срок службы", "cost"]


@pytest.mark.parametrize("phrases", [[], ["costs", "🌶", "}/>", "费 用 costs 🌶"]])
def test_models_that_list_less_than_half_of_the_keywords_stop_the_run(phrases):
    with pytest.raises(ProviderError, match=r"of a; .* 4 .*method\.keyword_temperature"):
        listed(phrases)


def test_a_label_with_too_few_keywords_is_asked_about_again_and_no_other():
    class Talker(Lister):
        def generate(self, requests, *, arrived=None):
            sentences = ("What do patients ask about this?", "x")
            return [
                replace(reply, texts=sentences) if request.label == "b" and len(self.requests) == 2 else reply
                for request, reply in zip(requests, super().generate(requests), strict=True)
            ]

    (keywords, written, _), providers = listed(["x", "y", "z"], maker=Talker)
    assert keywords == {"a": ["x", "y", "z"], "b": ["x", "y", "z"]}
    asked = [request.label for request in providers["0"].requests]
    assert asked == ["a", "b", "b"]
    assert len({request.seed for request in providers["0"].requests}) == written.use.calls == len(asked)


def test_half_of_the_keywords_are_enough_even_if_models_list_the_same_ones():
    (keywords, _, notes), _ = listed(["x", "🌶"], ["X", "🌶"])
    assert keywords == {"a": ["x"], "b": ["x"]}
    assert [note.partition(" keywords")[0] for note in notes] == ["a: 1 of 4", "b: 1 of 4"]

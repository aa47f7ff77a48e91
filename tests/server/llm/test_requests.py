import dataclasses
from functools import partial

import numpy as np
import pytest

from common.errors import ConfigError
from server.domain import Task, Wording
from server.llm.requests import (
    abstracts,
    by_example,
    crossover,
    fill_in,
    paraphrase,
    request_from_abstract,
    request_from_words,
    subtopics,
    with_keyphrases,
)

TASK = Task(
    name="t",
    kind="note",
    labels={"a": "first", "b": "second"},
    attributes=("by day", "at night"),
    wording=Wording(writer="a nurse", label="diagnosis"),
)
SET_BY = {
    "zero-shot": (partial(by_example, TASK, "a", texts=3, words=40), {"attribute", "words"}),
    "by example": (partial(by_example, TASK, "a", texts=3, good=["g"]), {"attribute", "good"}),
    "contrastive": (partial(by_example, TASK, "a", texts=3, good=["g"], bad=["w"]), {"attribute", "good", "bad"}),
    "paraphrase": (partial(paraphrase, TASK, "a", "one", texts=3), {"source"}),
    "abstracts": (partial(abstracts, TASK, "a", texts=3, words=30), {"attribute", "abstract", "words"}),
    "from abstract": (partial(request_from_abstract, TASK, "a", "one", texts=3), {"source", "abstract"}),
    "fill in": (partial(fill_in, TASK, "a", "one", blanks=0.5, texts=3), {"source", "blanks"}),
    "crossover": (partial(crossover, TASK, "a", ("one", "two"), texts=3), {"source"}),
    "keyphrases": (partial(with_keyphrases, TASK, ["p", "q"], texts=3), {"must"}),
    "few-shot": (
        partial(with_keyphrases, TASK, ["p"], texts=3, examples=[("text", ["q", "r"])]),
        {"must", "good", "good_must"},
    ),
    "words": (partial(request_from_words, TASK, list("xyz"), count=2, texts=3), {"must"}),
    "subtopics": (partial(subtopics, TASK, "a", phrases=3), {"phrases"}),
}
LABEL_FREE = {"keyphrases", "few-shot", "words"}


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("mode", SET_BY)
def test_a_mode_sets_its_own_fields_and_no_others_and_draws_by_its_seed(mode):
    write, own_fields = SET_BY[mode]
    request = write(rng=rng())
    assert write(rng=rng()) == request != write(rng=rng(1))
    always = {"task_kind", "labels", "n", "seed", "wording"} | ({"label"} if mode not in LABEL_FREE else set())
    blank = {field.name: field.default for field in dataclasses.fields(request)}
    assert {name for name, default in blank.items() if getattr(request, name) != default} == own_fields | always
    assert (request.n, request.wording, request.labels) == (3, TASK.wording, tuple(TASK.labels.items()))


def test_values_arrive():
    few = with_keyphrases(TASK, ["p"], texts=1, rng=rng(), examples=[("t", ["q", "r"]), ("u", ["s"])])
    assert (few.must, few.good, few.good_must) == (("p",), ("t", "u"), (("q", "r"), ("s",)))
    crossed = crossover(TASK, None, ("one", "two"), texts=1, rng=rng(), attribute="keyword", words=7)
    assert (crossed.source, crossed.attribute, crossed.words, crossed.label) == (("one", "two"), "keyword", 7, None)
    assert by_example(TASK, "b", texts=1, rng=rng(), attribute="keyword").attribute == "keyword"
    assert fill_in(TASK, "a", "s", blanks=0.3, texts=1, rng=rng(), temperature=1.5).temperature == 1.5


def test_random_words_are_distinct_and_all_come_up():
    vocabulary = [f"w{number}" for number in range(6)]
    drawn = [request_from_words(TASK, vocabulary, count=3, texts=1, rng=rng(seed)).must for seed in range(60)]
    assert all(len(set(words)) == 3 for words in drawn)
    assert {word for words in drawn for word in words} == set(vocabulary)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: fill_in(TASK, "a", "s", blanks=0, texts=1, rng=rng()),
        lambda: fill_in(TASK, "a", "s", blanks=1.1, texts=1, rng=rng()),
        lambda: with_keyphrases(TASK, [], texts=1, rng=rng()),
        lambda: with_keyphrases(TASK, ["p"], texts=1, rng=rng(), examples=[("t", [" "])]),
        lambda: request_from_words(TASK, ["x"], count=2, texts=1, rng=rng()),
        lambda: paraphrase(TASK, "c", "s", texts=1, rng=rng()),
    ],
)
def test_what_would_be_another_mode_is_refused(wrong):
    with pytest.raises(ConfigError):
        wrong()

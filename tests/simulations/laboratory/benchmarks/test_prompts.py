"""The figures of each kind of prompt come from the replies, the cleaning and the real texts."""

from dataclasses import replace

import numpy as np
import pytest

from common.domain import Record
from server.domain import Candidate, Task
from server.llm.base import PROMPTS, Reply
from simulations.laboratory.benchmarks.prompts import COLUMNS, KINDS, Bench, exemplars, main
from tests.support.asking import unit

SMALL = ["task=demo_messages", "task.test_records=90", "federation.parties=2", "llm=builtin", "llm.use=[broad]"]
NO_LABEL = {"section", "keyphrases", "subtopics"}  # parts of a text, texts without a label, and phrases


class Copies:
    """A model that writes real test texts of the label, each twice, and nothing to every second request."""

    name = identity = "copies"
    remote = False

    def __init__(self, texts, declines=()):
        self._texts, self.declines, self.requests = texts, frozenset(declines), []

    def generate(self, requests, *, arrived=None):
        del arrived
        self.requests += requests
        return [
            Reply(
                texts=(self._texts[each.label][nth // 4 % len(self._texts[each.label])],) if nth % 2 else (),
                input_tokens=3,
                output_tokens=2,
            )
            for nth, each in enumerate(requests)
        ]


def test_every_kind_of_prompt_for_texts_of_a_label_is_measured():
    assert {*KINDS, *NO_LABEL} == set(PROMPTS)
    assert not NO_LABEL & set(KINDS)


def test_a_line_for_each_kind(capsys):
    main([*SMALL, "--texts", "30", "method.words=9"])
    head, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head == ["model", "prompt", *COLUMNS]
    assert [line[:2] for line in lines] == [["broad", kind] for kind in KINDS]
    for line in lines:
        figures = dict(zip(COLUMNS, line[2:], strict=True))
        assert all(0 <= float(figures[name].removesuffix("%")) <= 100 for name in COLUMNS[:6])
        assert float(figures["kept"].removesuffix("%")) <= float(figures["parsed"].removesuffix("%"))
        assert figures["asked"] == "9"
        assert int(figures["written"]) > 0


@pytest.fixture
def bench(tmp_path):
    made = Bench([*SMALL, "method.texts_per_request=1"], 144, tmp_path)
    texts = {}
    for record in made.parts.source.held_out():
        texts.setdefault(record.label, []).append(record.text)

    def with_copies(declines=()):
        model = Copies(texts, declines)
        made.parts = replace(made.parts, providers={"copies": model})
        return made, model

    return with_copies


def test_the_shares_are_those_of_the_replies(bench, capsys):
    made, model = bench()
    made.measure("copies", ["zero_shot"])
    figures = dict(zip(COLUMNS, capsys.readouterr().out.split()[2:], strict=True))
    assert [figures[name] for name in ("parsed", "read", "written", "asked")] == ["50.0%", "432", "288", "-"]
    kept, distinct = (float(figures[name].removesuffix("%")) for name in ("kept", "distinct"))
    assert kept == pytest.approx(distinct / 2, abs=0.1)
    assert distinct < 100
    assert float(figures["agree"].removesuffix("%")) > 80  # all are real texts of their label
    assert len(model.requests) == 144


def test_a_declined_kind_has_no_figures(bench, capsys):
    made, model = bench(["contrast", "abstracts"])
    made.measure("copies", ["zero_shot", "contrast", "abstracts", "from_abstract"])
    assert [line.split()[1:3] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["contrast", "declines"],
        ["abstracts", "declines"],
    ]
    assert {each.prompt for each in model.requests} == {"zero_shot"}


def test_good_exemplars_are_near_real_texts_and_bad_ones_far():
    places = {"real": [1, 0], "near": [9, 1], "nearer": [19, 1], "far": [1, 9], "farther": [0, 1], "alone": [1, 1]}

    class Placed:
        def encode(self, texts):
            return unit([places[text] for text in texts]).astype(np.float32)

    task = Task(name="any", kind="text", labels={"a": "first", "b": "second"})
    texts = [Candidate(text=text, label="a", model="m", round=0) for text in ("farther", "near", "far", "nearer")]
    texts.append(Candidate(text="alone", label="b", model="m", round=0))
    pools = exemplars(texts, [Record("real", "a")], task, Placed())
    assert pools == {"good": {"a": ["nearer", "near"]}, "bad": {"a": ["farther", "far"]}}


def test_a_label_without_exemplars_and_an_unknown_kind_are_one_line(capsys):
    with pytest.raises(SystemExit, match=r"^error: prompt examples; .*--texts"):
        main([*SMALL, "--texts", "6", "--modes", "examples"])
    with pytest.raises(SystemExit):
        main([*SMALL, "--modes", "haiku"])
    assert "--modes haiku" in capsys.readouterr().err

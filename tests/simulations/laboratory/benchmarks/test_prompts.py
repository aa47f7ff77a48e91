"""The figures of each kind of prompt come from the replies, the cleaning and the real texts."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from common.domain import Record
from server.domain import Candidate, Task
from server.llm.base import PROMPTS, Reply, Request
from server.llm.render import SAMPLES, Prompts
from simulations.laboratory.benchmarks.prompts import COLUMNS, KINDS, Bench, main, voted_pools
from tests.support.asking import unit

SMALL = ["task=demo_messages", "task.test_records=90", "federation.parties=2", "llm=builtin", "llm.use=[broad]"]
PUBLISHED = sorted((Path(main.__code__.co_filename).parent / "published_prompts").glob("*/*"))


class Copies:
    """A model that writes real test texts of the label, each twice, and nothing to every second request.

    Without a label, it takes the one whose texts have most of the phrases.
    """

    name = identity = "copies"
    remote = False

    def __init__(self, texts, declines=()):
        self._texts, self.declines, self.requests = texts, frozenset(declines), []

    def generate(self, requests, *, arrived=None):
        del arrived
        self.requests += requests
        return [
            Reply(
                texts=(texts[nth // 4 % len(texts)],) if nth % 2 else (),
                input_tokens=3,
                output_tokens=2,
            )
            for nth, each in enumerate(requests)
            for texts in [self._texts[each.label] if each.label else self._nearest(each.must)]
        ]

    def _nearest(self, phrases):
        return max(
            self._texts.values(), key=lambda texts: sum(" ".join(texts).casefold().count(each) for each in phrases)
        )


def test_every_kind_of_prompt_is_measured_but_parts_of_a_text():
    assert {*KINDS, "section"} == set(PROMPTS)


def test_a_line_for_each_kind(capsys):
    main([*SMALL, "--texts", "30", "method.words=9"])
    head, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head == ["model", "prompt", *COLUMNS]
    assert [line[:2] for line in lines] == [["broad", kind] for kind in KINDS]
    for line in lines:
        figures = dict(zip(COLUMNS, line[2:], strict=True))
        phrases = line[1] == "subtopics"
        assert all(0 <= float(figures[name].removesuffix("%")) <= 100 for name in COLUMNS[: 3 if phrases else 6])
        assert float(figures["kept"].removesuffix("%")) <= float(figures["parsed"].removesuffix("%"))
        assert figures["asked"] == ("-" if phrases else "9")
        assert (figures["agree"] == "-") == phrases
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


def test_keyphrases_come_from_good_exemplars_and_stand_in_for_their_label(bench, capsys):
    made, model = bench()
    made.measure("copies", ["zero_shot", "keyphrases"])
    asked = [each for each in model.requests if each.prompt == "keyphrases"]
    assert {(each.label, len({*each.must})) for each in asked} == {(None, 2)}
    agree = capsys.readouterr().out.splitlines()[1].split()[2 + COLUMNS.index("agree")]
    assert float(agree.removesuffix("%")) > 40  # of six labels


def test_seeds_add_the_mean_and_the_range_of_different_samples(capsys):
    main([*SMALL, "--texts", "30", "--modes", "zero_shot", "--seeds", "3"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line[0] for line in lines] == ["broad"] * 3 + ["broad/mean", "broad/range"]
    written = [int(line[2 + COLUMNS.index("written")]) for line in lines]
    assert written[3] == pytest.approx(sum(written[:3]) / 3, abs=1)
    assert written[4] == max(written[:3]) - min(written[:3]) > 0


@pytest.mark.parametrize("setting", ["task.spans=true", "task.labels_per_text=2"])
def test_marks_and_sets_of_labels_are_only_parsed(setting, capsys):
    main(["task=demo_notes", "task.public_notes=60", "method=class_sums", setting, *SMALL[1:], "--texts", "12"])
    lines = {line.split()[1]: line.split()[2:] for line in capsys.readouterr().out.splitlines()[1:]}
    assert lines.keys() == {"zero_shot", "subtopics", "abstracts", "from_abstract"}
    assert lines["zero_shot"][:6] == ["100.0%"] * 3 + ["-"] * 3


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_published_words_name_their_source_and_ask_for_what_the_request_says(file):
    source = r"\{# (\w+): .*(table|section|appendix) \w.* Changed: .* #\}\n"
    kind = re.match(source, file.read_text("utf-8"))[1]
    assert kind == file.stem
    assert {each.parent.name for each in PUBLISHED} == {"aug_pe", "dp_kps", "dpga", "rpsg", "wasp"}
    for n, label in product((1, 3), ("a", None)):
        asked = Request(task_kind="text", labels=(("a", "first"), ("b", "second")), label=label, n=n, **SAMPLES[kind])
        system, user = Prompts(file.parent).render(asked)
        assert f"{system} {user}" != " ".join(Prompts().render(asked))
        assert all(text in user for text in (*asked.must, *(() if asked.blanks else asked.shown)))
        assert ("JSON list" in user) == (n > 1)
        assert "  " not in user


def test_good_exemplars_are_near_real_texts_and_bad_ones_far():
    places = {"real": [1, 0], "near": [9, 1], "nearer": [19, 1], "far": [1, 9], "farther": [0, 1], "alone": [1, 1]}

    class Placed:
        def encode(self, texts):
            return unit([places[text] for text in texts]).astype(np.float32)

    task = Task(name="any", kind="text", labels={"a": "first", "b": "second"})
    texts = [Candidate(text=text, label="a", model="m", round=0) for text in ("farther", "near", "far", "nearer")]
    texts.append(Candidate(text="alone", label="b", model="m", round=0))
    pools = voted_pools(texts, [Record("real", "a")], task, Placed())
    assert pools == {"good": {"a": ["nearer", "near"]}, "bad": {"a": ["farther", "far"]}}


def test_a_label_without_exemplars_a_task_with_sections_and_an_unknown_kind_are_one_line(capsys):
    with pytest.raises(SystemExit, match="--texts"):
        main([*SMALL, "--texts", "6", "--modes", "examples"])
    with pytest.raises(SystemExit, match="without sections"):
        main(["task=demo_letters", "method=class_sums", *SMALL[2:]])
    with pytest.raises(SystemExit):
        main([*SMALL, "--modes", "haiku"])
    assert "--modes haiku" in capsys.readouterr().err

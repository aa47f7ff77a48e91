"""Tasks of texts in sections: letters of the demo, files, and settings that are refused."""

import pytest

from common.domain import UNLABELLED
from common.errors import ConfigError, DataError
from common.sections import sections
from server.domain import Wording
from server.tasks.demo_letters import HEADINGS, held_out_letters, private_letters, public_sections
from server.tasks.sources import LabelledFiles
from simulations.federation.parties import deal
from tests.support.runs import settings

SECTIONS = {"History": "what was told", "Plan": None}
TEXT = "History: a cough\nPlan: rest"


def files(tmp_path, text=TEXT, **changes):
    (tmp_path / "public.jsonl").write_text('{"text": "Plan: tea\\nHistory:\\nno fever"}\n{"text": "no heading"}\n')
    (tmp_path / "test.csv").write_text(f'text\n"{TEXT}"\n"{text}"\n')
    known = {"name": "t", "kind": "letter", "sections": SECTIONS, "test": str(tmp_path / "test.csv")}
    return LabelledFiles(**known | {"public_text": str(tmp_path / "public.jsonl")} | changes)


def test_the_same_seed_gives_the_same_letters_in_all_sections_and_of_the_stated_lengths():
    assert private_letters(1, 3, 7) == private_letters(1, 5, 7)[:3] != private_letters(1, 3, 8)
    assert held_out_letters(3, 7) == held_out_letters(5, 7)[:3]
    letters = [letter for hospital in range(3) for letter in private_letters(hospital, 60, 0)]
    assert {letter.label for letter in letters} == {UNLABELLED}
    lengths = [len(letter.text.split()) for letter in letters]
    assert min(lengths) > 300
    assert max(lengths) < 1700
    found = [[part.heading for part in sections(letter.text, HEADINGS)] for letter in letters]
    assert {len(headings) for headings in found} == {6, 7}
    assert {headings[1] for headings in found} > {"History", "Previous illnesses", "Investigations"}
    assert not [letter.text for letter in letters if "{" in letter.text]
    public = public_sections(20, 0)
    assert {example.topic for example in public} == set(HEADINGS)
    assert {example.text for example in public}.isdisjoint(letter.text for letter in letters)


def test_the_headings_of_files_are_the_labels_and_public_texts_are_read_by_section(tmp_path):
    source = files(tmp_path)
    task = source.task()
    assert task.labels == {"History": "what was told", "Plan": "Plan"}
    assert (task.labels_per_text, task.sectioned, task.wording) == (2, True, Wording(label="section"))
    assert files(tmp_path, sections_per_text=1).task().labels_per_text == 1
    assert [(example.topic, example.text) for example in source.public_examples()] == [
        ("Plan", "tea"),
        ("History", "no fever"),
        (None, "no heading"),
    ]
    assert source.public_texts() == ["tea", "no fever", "no heading"]
    parts = task.classifier_inputs(source.held_out()[:1])
    assert [(part.label, part.text) for part in parts] == [("History", "a cough"), ("Plan", "rest")]


def test_a_text_without_any_heading_is_refused_by_its_number_and_not_quoted(tmp_path):
    with pytest.raises(DataError, match=r"History, Plan, and text under it; got none; at .*csv, record 2") as error:
        files(tmp_path, text="zqx alone").held_out()
    assert "zqx" not in str(error.value)


@pytest.mark.parametrize("planted", ["canaries=2", "style_site=0"])
def test_what_a_simulation_plants_has_no_sections_and_is_refused(planted):
    with pytest.raises(ConfigError, match="texts without sections"):
        deal(settings("task=demo_letters", "task.records_per_party=2", "method=class_sums", f"federation.{planted}"))


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"sections": {"Plan": "x", "PLAN ": "y"}}, "sections"),
        ({"sections": {"a\nb": "x"}}, "sections"),
        ({"sections": {"": "x"}}, "sections"),
        ({"sections": {str(number): "x" for number in range(65)}}, "sections"),
        ({"sections_per_text": 3}, "sections_per_text"),
        ({"sections": None, "sections_per_text": 1}, "sections_per_text"),
        ({"labels": {"a": "x", "b": "y"}}, "labels"),
        ({"labels": "unlabelled"}, "labels"),
        ({"labels_per_text": 2}, "labels_per_text"),
        ({"spans": {"drug": "x"}}, "spans"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_before_any_file_is_read(changes, setting):
    with pytest.raises(ConfigError, match=setting):
        LabelledFiles(**{"name": "t", "kind": "letter", "sections": SECTIONS} | changes)

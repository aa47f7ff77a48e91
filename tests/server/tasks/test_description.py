import pytest

from common.domain import UNLABELLED
from common.errors import ConfigError
from server.domain import Wording
from server.tasks.sources import LabelledFiles


def task_from(settings):
    return LabelledFiles(**settings).task()


GOOD = {
    "name": "banking-10",
    "kind": "customer message",
    "labels": {"age_limit": "asks how old one must be", "cash": " ", "top_up": None},
    "attributes": ["short", "angry"],
}


def test_a_task_keeps_the_order_of_its_labels_and_describes_all_of_them():
    task = task_from(GOOD)
    assert (task.name, task.kind, task.attributes) == ("banking-10", "customer message", ("short", "angry"))
    assert list(task.labels.items()) == [
        ("age_limit", "asks how old one must be"),
        ("cash", "cash"),
        ("top_up", "top up"),
    ]


def test_wording_is_optional_in_all_its_parts():
    assert task_from(GOOD).wording == task_from(GOOD | {"wording": None}).wording == Wording()
    wording = {"writer": "a customer ", "style": None, "label": "intent"}
    assert task_from(GOOD | {"wording": wording}).wording == Wording(writer="a customer", label="intent")


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"wording": "terse"}, "task.wording"),
        ({"wording": {"tone": "terse"}}, "writer, style, label, plural"),
        ({"wording": {"style": ""}}, "task.wording.style"),
        ({"name": "../evil"}, "task.name"),
        ({"name": ""}, "task.name"),
        ({"kind": None}, "task.kind"),
        ({"labels": {"one": "x"}}, "two labels"),
        ({"labels": ["a", "a"]}, "more than once"),
        ({"labels": ["a", "a "]}, "more than once"),
        ({"labels": ["a", ""]}, "task.labels"),
        ({"labels": {"a": "x", True: "y"}}, "task.labels"),
        ({"labels": {"a": 3, "b": "y"}}, "task.labels.a"),
        ({"labels": "ab"}, "expected one of unlabelled"),
        ({"attributes": ["short", ""]}, "task.attributes"),
    ],
)
def test_wrong_settings_are_named(change, names):
    with pytest.raises(ConfigError, match=names):
        task_from(GOOD | change)


def test_without_labels_all_texts_are_one_population_that_no_prompt_names():
    task = task_from(GOOD | {"labels": "unlabelled", "wording": {"writer": "a clerk", "label": "intent"}})
    assert task.labels == {UNLABELLED: "customer message"}
    assert not task.labelled
    assert task.wording == Wording(writer="a clerk")
    assert task_from(GOOD).labelled


@pytest.mark.parametrize("labels", ["none", "Unlabelled", ["one"], [UNLABELLED, "b"]])
def test_no_other_word_means_no_labels_and_no_label_may(labels):
    with pytest.raises(ConfigError, match="task"):
        task_from(GOOD | {"labels": labels})


@pytest.mark.parametrize("letter", ["\n", "\r", "\x1b", "\x85", "\u2028"])
@pytest.mark.parametrize("made", [list, dict.fromkeys])
def test_a_label_with_a_control_character_is_refused(letter, made):
    with pytest.raises(ConfigError, match="names on one line"):
        task_from(GOOD | {"labels": made([f"a{letter}b", "c"])})


def test_texts_may_have_several_labels_whose_names_have_no_semicolon():
    known = {"name": "t", "kind": "note", "labels": {"a": "x", "b": "y", "c": "z"}, "labels_per_text": 2}
    assert (task_from(known).labels_per_text, task_from(known).several) == (2, True)
    for wrong, message in (
        ({"labels": ["a;b", "c"]}, "names without ';'"),
        ({"labels_per_text": 4}, "at most the number"),
    ):
        with pytest.raises(ConfigError, match=message):
            task_from(known | wrong)
    assert not task_from(known | {"labels": ["a;b", "c"], "labels_per_text": 1}).several

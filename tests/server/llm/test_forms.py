import pytest

from common.errors import ConfigError
from server.domain import Example, Task, Wording
from server.llm.completion import Completion, opening_words
from server.llm.forms import FORMS, kinds_of, label_in_words, plural, plural_of, undescribed
from tests.support.provider_contract import OTHER, REQUESTS, SOURCE, requests

PUBLIC = [Example(text="Is the office open?", topic="hours"), Example(text='She said "no" to me.', topic="refusal")]
ODD = (("late_card", 'a "late"\ncard'), ("lost", ""))
ENDS = {"fields": ":", "headings": "-", "quoted": ': "'}


def prompt(form, fields=None, **settings):
    return Completion(form=form, **settings).beginning(requests(1, **fields or {})[0], PUBLIC).prompt


def test_headings_list_each_text_under_its_topic_and_end_at_the_new_one():
    lines = prompt("headings", {"labels": ODD, "label": "lost"}).split("\n")
    assert sorted(lines[:4:2]) == ['Customer\'s questions, about "hours":', 'Customer\'s questions, about "refusal":']
    assert sorted(lines[1:4:2]) == ["- Is the office open?", '- She said "no" to me.']
    assert lines[4:] == ['Customer\'s questions, about "lost":', "-"]


def test_exemplars_of_one_label_share_a_heading():
    shown = prompt("headings", {"good": (SOURCE, OTHER), "wording": Wording(writer="a customer", label="problem")})
    heading = 'Customer\'s questions, problem "late card (a card that has not come)":'
    assert shown.split("\n")[:2] == ["Written by: a customer.", heading]
    assert shown.count(heading) == 1
    assert sorted(shown.split("\n")[2:]) == ["-", *sorted((f"- {SOURCE}", f"- {OTHER}"))]


def test_a_quoted_text_stands_in_its_sentence_and_no_quotation_mark_in_it_or_in_a_topic_ends_it():
    shown = prompt("quoted", {"labels": ODD, "label": "late_card"})
    assert 'Customer\'s question, about "refusal": "She said \'no\' to me."\n' in shown
    assert shown.endswith("\nCustomer's question, about \"late card (a 'late' card)\": \"")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", [None, "###"])
@pytest.mark.parametrize("fields", [fields for fields in REQUESTS.values() if "must" not in fields])
def test_a_completion_is_read_up_to_the_end_of_its_text(form, end, fields):
    completion, (request,) = Completion(form=form, end=end), requests(1, **fields)
    prompt = completion.beginning(request, PUBLIC).prompt
    assert prompt.endswith(opening_words(request) or ENDS[form])
    for after in ("", completion.stop, f"{completion.stop}\nmore of the list"):
        text = completion.read(f" need it now{after}", request, whole=True)
        assert text == f"{opening_words(request)} need it now".strip()
    assert completion.read(completion.stop, request, whole=True) is None


def test_an_instruction_is_the_first_line_of_every_form():
    for form in FORMS:
        assert prompt(form, instruction="Letters to a bank.").startswith("Letters to a bank.\n")


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        ("note", "notes"),
        ("message that a bank customer sends to support", "messages that a bank customer sends to support"),
        ("answer to a question about health", "answers to a question about health"),
        ("discharge summary", "discharge summaries"),
        ("customer's essay, in one sentence", "customer's essays, in one sentence"),
        ("CT of the head", "CTs of the head"),
        ("sketch", "sketches"),
    ],
)
def test_the_plural_of_a_kind_is_that_of_its_noun(kind, kinds):
    assert plural(kind) == kinds


@pytest.mark.parametrize(
    ("kind", "plural", "kinds"),
    [
        ("question to a hospital", "Questions to a hospital", "questions to a hospital"),
        ("ED note", "", "ED notes"),
        ("Arztbrief", "Arztbriefe", "Arztbriefe"),
    ],
)
def test_the_plural_of_a_task_stands_in_a_sentence(kind, plural, kinds):
    assert kinds_of(kind, Wording(plural=plural)) == kinds


def test_the_plural_is_a_setting_for_other_nouns():
    (request,) = requests(1, task_kind="diagnosis", wording=Wording(plural="diagnoses"))
    assert plural_of(request) == "diagnoses"
    assert Completion(form="headings").beginning(request, []).prompt.startswith("Diagnoses, about")


def test_an_unknown_form_is_refused():
    with pytest.raises(ConfigError, match="form; expected one of fields, headings, quoted; got 'haiku'"):
        Completion(form="haiku")


def test_labels_that_only_a_name_or_a_number_describes_are_named():
    labels = {"age_limit": "age limit", "1": "2.0", "fee": "Fee", "late_card": "a card that has not come"}
    advice = undescribed(Task(name="t", kind="note", labels=labels))
    assert all(name in advice for name in ("age_limit", "1", "fee", "task.labels"))
    assert "late_card" not in advice
    described = Task(name="t", kind="note", labels={"late_card": "a card that has not come"})
    assert undescribed(described) == undescribed(described.without_labels()) == ""


@pytest.mark.parametrize(
    ("label", "description", "words"),
    [
        ("late_card", "a card that has not come", '"late card" (a card that has not come)'),
        ("late_card", "Late card", '"late card"'),
        ("late_card", "", '"late card"'),
        ("2.0", "negative", '"negative"'),
        ("C34", "cancer of the lung", '"cancer of the lung"'),
    ],
)
def test_a_label_is_said_by_its_name_and_description_as_far_as_they_are_words(label, description, words):
    assert label_in_words(label, description) == words

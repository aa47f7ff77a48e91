"""Refusals of chat models are dropped whatever their words; texts of people that resemble them stay."""

from itertools import product
from pathlib import Path

import pytest

from server.domain import Task
from server.llm.base import Request
from server.llm.clean import Cleaner, Rules

LABELS = (("late card", "a card that has not come by post"), ("lost card", "a card that was stolen"))
REQUEST = Request(task_kind="clinical note", labels=LABELS, label="late card", n=5)
CLEANER = Cleaner(Rules(duplicates=False))
APOLOGIES = (
    "",
    "I'm sorry, but ",
    "I’m sorry. ",
    "I am really sorry; however, ",
    "I apologize for the inconvenience, but ",
    "Unfortunately, ",
    "**Sorry**, ",
    "I understand what you are looking for, but ",
    "Thank you for your request. ",
    "While I see the purpose of this task, ",
)
UNABLE = ("I can't", "I cannot", "I can not", "I won't", "I am unable to", "I'm not able to", "We are not allowed to")
UNABLE_MORE = (
    "I must decline to",
    "I would prefer not to",
    "I do not have the ability to",
    "I don't feel comfortable to",
)
WHAT = (
    "create medical record number 3.",
    "write patient notes",
    "generate synthetic patient data.",
    "provide the requested text, since it may be harmful.",
    "produce fictional medical records of real people",
    "provide medical advice.",
    "help you create such content.",
    "assist with generating customer complaints.",
    "fulfill this request.",
    "complete that task as described.",
    "write messages about fraud.",
    "create or share realistic clinical notes.",
    "provide specific examples of messages from customers.",
)
TEXTS = Path(__file__).parent / "texts"
DOING, LOOK_ALIKES = ((TEXTS / f"{name}.txt").read_text("utf-8").splitlines() for name in ("refusals", "look_alikes"))


def test_a_refusal_of_a_model_is_dropped_whatever_its_words():
    for apology, unable, what in product(APOLOGIES, UNABLE + UNABLE_MORE, WHAT):
        for text in (f"{apology}{unable} {what}", f"{apology}{unable} {what}".replace("'", "’")):
            assert CLEANER.clean([text], REQUEST, run_texts=()) == ([], {"refusals": 1}), text


@pytest.mark.parametrize("text", DOING)
def test_what_a_model_says_in_place_of_a_text_is_dropped(text):
    kept, changed = CLEANER.clean([text, text.replace("'", "’")], REQUEST, run_texts=())
    assert not kept, changed


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_person_s_own_inability_is_a_text(text):
    typographic = text.replace("'", "’")
    assert CLEANER.clean([text, typographic], REQUEST, run_texts=()) == ([text, typographic], {})


@pytest.mark.parametrize(
    ("language", "refusals", "texts"),
    [
        (
            "german",
            [
                "Es tut mir leid, aber ich kann keine Patientennotizen erstellen.",
                "Leider darf ich diese fiktiven Texte nicht schreiben.",
                "Als KI habe ich keine Karte.",
            ],
            ["Leider kann ich meine Karte nicht finden.", "Ich kann das Formular nicht ausfüllen."],
        ),
        (
            "french",
            [
                "Désolé, mais je ne peux pas créer de notes cliniques fictives.",
                "Je ne suis pas en mesure de vous fournir des exemples de dossiers.",
            ],
            ["Je ne peux pas fournir mon dossier.", "Désolé, je ne peux pas payer."],
        ),
    ],
)
def test_refusals_in_other_languages(language, refusals, texts):
    cleaner = Cleaner(Rules(), task=Task(name="t", kind="note", labels=dict(LABELS), language=language))
    assert cleaner.clean(refusals, REQUEST, run_texts=()) == ([], {"refusals": len(refusals)})
    assert cleaner.clean(texts, REQUEST, run_texts=()) == (texts, {})

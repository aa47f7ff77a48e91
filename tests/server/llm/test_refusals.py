"""Refusals of chat models are dropped whatever their words; texts of people that resemble them stay."""

from itertools import product

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
DOING = (
    "I'm not comfortable writing patient notes.",
    "I'm not comfortable with creating this type of content.",
    "It's not appropriate for me to generate medical records.",
    "It would be unethical to create fake patient records.",
    "I apologize, but it isn't possible for me to create clinical notes.",
    "This request goes against my guidelines.",
    "That would violate OpenAI's usage policies.",
    "Creating this would be against the ethical guidelines.",
    "My programming does not allow me to write this.",
    "As an AI language model, I do not have a card.",
    "I'm just a language model.",
    "I don't have access to real patient data.",
    "This request cannot be fulfilled.",
    "I'm sorry, but I can't do that.",
    "Sorry, I can't help.",
    "I'm sorry.",
    "Okay, the user wants five clinical notes about late cards.",
    "Please provide the text you'd like me to rewrite.",
    "Hello! How can I assist you today?",
    "Sure! Here you go.",
    "Certainly! I'd be happy to help with that.",
    "I hope this helps! Let me know if you need more notes.",
    "Note: These notes are entirely fictional and for illustration.",
    "I cannot fulfill your request. I am just an AI assistant, it's not within my programming to write that.",
    "I'm sorry, but I cannot fulfill this request as it goes against ethical guidelines.",
    "I'm really sorry, but I can't assist with that request.",
    "Sorry, but I can't assist with creating fictional patient notes.",
    "I can’t provide a realistic emergency-department note.",
    "I'm unable to write notes about individual patients.",
    "I'm unable to provide that information.",
    "As a language model, I can't write that.",
    "I will not generate this content.",
    "I apologize, but I do not feel comfortable generating medical notes, even hypothetical ones.",
    "I apologize, but I don't feel comfortable producing fraudulent messages.",
    "I do not feel comfortable providing examples of abusive messages.",
    "I aim to be helpful, but I cannot produce notes containing protected health information.",
    "I'd rather not write that note.",
    "I'm afraid I can't write emergency-department notes for real patients.",
    "I cannot in good conscience create a patient record.",
    "Sorry, I can't create notes for medical use.",
    "I can't create an emergency-department note for you.",
    "I'm sorry, I can't generate more notes.",
    "I'm sorry, but I'm not able to generate the notes you requested.",
    "I must refrain from generating clinical documentation.",
    "Unfortunately I can't generate those notes for you.",
    "I cannot write a note that might be mistaken for a real one.",
    "I'm sorry, but generating medical records is something I cannot do.",
    "It seems that your request is incomplete. Could you provide more details?",
    "No further notes can be generated.",
    "I'm sorry, but I can't continue with this.",
    "I can't engage with this prompt.",
    "I apologize, but I am not comfortable with this request.",
    "That's not something I can help with.",
    "I don't think I should write that.",
    "I can't create text that promotes fraud.",
    "Cannot generate content.",
    "[I can't write this note]",
    "Note 3: I'm sorry, but I can't create this one.",
    "I'm sorry, but I can't create medical record number 3.",
    "I regret to inform you that I cannot provide clinical notes.",
    "I have no ability to write such notes.",
    "I'm prohibited from creating medical documents.",
    "This content may violate our usage policies.",
    "I am Qwen, created by Alibaba Cloud.",
    "My apologies, but I can't write about that topic.",
    "I will have to decline this request.",
    "I'm going to have to decline writing this.",
    "Let's write five notes about pneumonia.",
    "The user asks for 5 notes.",
    "Your text here",
    "string",
    "Text 1 of 5",
    "lorem ipsum dolor sit amet",
    "clinical note",
    "Strong message 2:",
    "1 new version.",
    "(2 new versions)",
    "Dear Customer Support,",
    "Good morning, Dr. Smith!",
    "[Insert note here]",
)
LOOK_ALIKES = (
    "I'm sorry, but I can't find my card.",
    "Sorry, I cannot log in.",
    "I can't help my mother with her account.",
    "I am unable to create an account.",
    "I'm unable to create a new PIN in the app.",
    "Patient cannot provide history.",
    "The patient is unable to provide a medical history due to dementia.",
    "She cannot answer questions and is not able to write.",
    "Unable to generate a pulse; CPR continued.",
    "I cannot provide proof of address.",
    "I can't provide my medical records.",
    "Unfortunately, I cannot provide the documents you asked me for.",
    "I am not able to provide a urine sample.",
    "I'm sorry, but I can't complete this transfer.",
    "I can't complete my request in the app.",
    "I can't write my complaint in the form.",
    "I can't continue this treatment.",
    "I won't write a cheque.",
    "I will not give you my password.",
    "I'm not comfortable sharing my data.",
    "I'm not comfortable with this charge.",
    "I can't help but worry about the lump.",
    "I cannot help with the kids because of my back.",
    "I cannot participate in sports.",
    "I can't comply with the diet.",
    "I can't generate a one-time code.",
    "I don't have access to my account.",
    "This is against my wishes.",
    "They said it goes against the bank's lending policy.",
    "It is not possible to make a payment.",
    "I need to come up with the money by Friday.",
    "The user wants a new monitor.",
    "Please let me know if you need more documents.",
    "I can't answer the security question.",
    "He was unable to complete the sentence.",
    "I have to decline to pay this fee.",
    "I can't give you an example right now.",
    "I'm sorry for the delay, please send the card.",
    "Sorry, I lost my card. How can I get a new one?",
    "Note: this patient is allergic to penicillin.",
    "Message not received.",
    "Text messages arrive late.",
    "Hi, how can I get help with my card?",
    "I am afraid that I cannot pay.",
    "I can't process what he told me, I feel numb.",
    "We cannot share this account.",
    "I cannot provide you with a copy of the receipt because I never got one.",
    "I'm unable to complete the registration form online.",
    "Sorry, I can't give you the number, I don't have the card with me.",
    "I can't write because of the tremor in my hand.",
    "I cannot create a pin for the new card.",
    "I won't be able to provide the details until Monday.",
    "I'm not able to generate statements for last year.",
    "I cannot share my screen with the agent.",
    "I can't discuss it over the phone.",
    "I could not produce the documents they wanted.",
    "I can't complete the security questions.",
    "I'm sorry but I can't remember my passcode",
    "I can't respond to your messages because the app crashes.",
    "I can't make a transfer to my sister.",
    "I can't give blood this week.",
    "I'm not comfortable providing my social security number by email.",
    "We are unable to provide a response to the dispute within 30 days, they wrote.",
    "I was told that they cannot fulfill this request.",
    "I cannot afford this treatment.",
    "I am not able to fill in the questionnaire about my medical history.",
    "I can't offer more than 50 dollars a month.",
    "I can't provide any more information about the transaction.",
    "I cannot generate the reports I need for my taxes.",
    "Unable to obtain history, patient intubated.",
    "I can't make up for the missed dose, can I?",
    "I cannot do that with my shoulder.",
    "I don't have the ability to pay.",
    "I can't create a complaint about the ATM in the app, the button does nothing.",
    "I can't write a message to support because the chat is down.",
    "I am not able to answer calls from your team during work.",
    "The bank said it violates their policy.",
    "I'm sorry, my English is not good.",
    "I can't get the app to generate new cards.",
    "I can't share medical information by phone, the clerk told me.",
    "I was unable to provide a sample.",
    "Hello, I need help.",
    "Good morning. My card is lost.",
    "I can't process the payment for the prescription.",
    "It's not possible for me to come on Tuesday.",
    "I refuse to pay this fee.",
)


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

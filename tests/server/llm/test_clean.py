import re
from dataclasses import fields, replace
from itertools import product

import pytest

from server.domain import Task
from server.llm.base import Request
from server.llm.clean import Cleaner, Rules
from server.llm.clean_patterns import PHRASES
from tests.support.prompts import render

DROPPING = ("shells", "names", "refusals", "placeholders", "echoes", "copies", "duplicates", "languages", "foreign")
"""The rules that drop a text; all others repair it."""

LABELS = (("late card", "a card that has not come by post"), ("lost card", "a card that was stolen"))
REQUEST = Request(task_kind="customer's question", labels=LABELS, label="late card", good=("Where is my card?",))
OFF = Cleaner(Rules.none())


def alone(rule, public=("plain English words",)):
    """The one rule on."""
    return Cleaner(replace(Rules.none(), **{rule: True}), public)


def cleaned(cleaner, *texts, request=REQUEST, run_texts=()):
    return cleaner.clean(texts, request, run_texts=run_texts)


CASES = [
    ("fences", "```text\nMy card is late.\n```", "My card is late."),
    ("fences", "```\nMy card is late.```", "My card is late."),
    ("prefaces", "Here is a new question:\nMy card is late.", "My card is late."),
    ("prefaces", "Sure! Here are the texts you wanted: My card is late.", "My card is late."),
    ("prefaces", "Certainly.\nMy card is late.", "My card is late."),
    ("prefaces", "Sure, how about this:\n\nMy card is late.", "My card is late."),
    ("prefaces", "Sure, here it is:\nMy card is late.", "My card is late."),
    ("headings", "## Question 1\n\nMy card is late.", "My card is late."),
    ("headings", "**Late card**\nMy card is late.", "My card is late."),
    ("numbering", "1. My card is late.", "My card is late."),
    ("numbering", "Example 12: My card is late.", "My card is late."),
    ("numbering", "- My card is late.", "My card is late."),
    ("numbering", "Customer 9: My card is late.", "My card is late."),
    ("shells", "Customer 9", None),
    ("shells", "Subject: Late card", None),
    ("shells", "2.", None),
    ("quotes", '"My card is late."', "My card is late."),
    ("quotes", "“My card is late.”", "My card is late."),
    ("loops", "My card is late. I am cross. I am cross. I am cross. I am", "My card is late. I am cross."),
    ("loops", "cough, cough, cough, cough, cough, cough", "cough,"),
    ("echoes", "a card that has not come by post", None),
    ("echoes", "Answer with the text only.", None),
    ("copies", "where is my card", None),
    ("foreign", "Моя картка ще не прийшла", None),
    ("characters", "My card\x00 is late.", "My card is late."),
    ("numbering", "My card is late.\n\n1 new version.", "My card is late."),
    ("numbering", "My card is late.\n2. Where is it?", "My card is late."),
    ("salutations", "Subject: My card\n\nMy card is late.", "My card is late."),
    ("salutations", "Hello,\n\nMy card is late.", "My card is late."),
    ("salutations", "Dear Support,\nMy card is late.", "My card is late."),
    ("salutations", "My card is late.\n\nBest regards,\nAnn Lee", "My card is late."),
    ("shells", "Hello!", None),
    ("names", "late_card", None),
    ("refusals", "I'm sorry, but I can't assist with that.", None),
    ("placeholders", "My name is [Customer Name].", None),
    ("placeholders", "I paid in an X amount.", None),
    ("languages", "Wo ist meine neue Karte und wie lange dauert es", None),
]


@pytest.mark.parametrize(("rule", "text", "left"), CASES)
def test_each_rule_does_its_work_is_counted_and_can_be_off(rule, text, left):
    assert cleaned(alone(rule), text) == ([] if left is None else [left], {rule: 1})
    assert cleaned(OFF, text) == ([text], {})
    if rule not in {"echoes", "copies", "names", "foreign"}:  # whose public texts say nothing about form
        usual, rare = ([text] * count + ["plain English words"] * 98 for count in (2, 1))
        assert cleaned(alone(rule, usual), text) == ([text], {})
        assert cleaned(alone(rule, rare), text)[1] == {rule: 1}


@pytest.mark.parametrize(
    "text",
    [
        "My card is late.",
        "38.5 degrees since Monday, 2 tablets a day",
        "I said: here is my card: take it",
        '"Yes," she said, "no."',
        "'Tis late.",
        "Here is my card, and it does not work",
        "Sure, I can wait.",
        "no, no, no, I will not wait",
        "chest pain 2/7, chest pain 3/7, chest pain 4/7",
        "BP 120/80, HR 80, BP 120/80, HR 80",
        "not come",
        "#1 complaint is the wait",
        "**Urgent** my card is late",
        '"',
        "The naïve café",
        "1. Cancer. 2. Coronary artery disease.",
        "- Surgery.\n- Radiation.",
        "XXXX XXXX XXXX XXXX XXXX XXXX on XX/XX/2019 XX/XX/2019 XX/XX/2019",
        "They charged {$12.00} [12] to [ my / our ] account.",
        "BP <90 and HR >100, <br>, I <3 it [sic]",
        "Hi, where is my card?",
        "Hello I am late, and so is my card",
        "It is late. Thank you.",
        "I'm sorry, but I can't find my card.",
        "In regards to my card, is it late?",
        "TGF-β1 and 5 µg, 3 × 4, 20 °C",
        "No headaches. No drugs. No changes in bowel habits.",
        "I took 2 new tablets",
        "He said: I can't help you.",
    ],
)
def test_what_is_a_text_stays_as_it_is(text):
    everything = Cleaner(Rules(), ["plain English words"])
    assert cleaned(everything, text) == ([text], {})


def test_layers_come_off_one_after_the_other():
    kept, changed = cleaned(Cleaner(Rules()), '```\nHere is one:\n\n1. "My card is late."\n```')
    assert kept == ["My card is late."]
    assert changed == {"fences": 1, "prefaces": 1, "numbering": 1, "quotes": 1}


def test_what_the_run_has_is_not_had_again():
    texts = ("old", "new", "new", "New")
    assert cleaned(alone("duplicates"), *texts, run_texts={"old"}) == (["new", "New"], {"duplicates": 2})
    assert cleaned(OFF, *texts, run_texts={"old"}) == (list(texts), {})


def test_foreign_texts_are_counted_even_if_the_rule_is_off():
    texts = ["Моя картка ще не прийшла", "My card так", "short я"]
    english, ukrainian = ["plain English words"], ["слова українською"]
    assert cleaned(Cleaner(Rules(foreign=False), english), *texts) == (texts, {"foreign": 2})
    assert cleaned(Cleaner(Rules(), ukrainian), texts[0]) == (texts[:1], {})
    assert cleaned(Cleaner(Rules()), *texts) == (texts, {})


def test_blanks_are_no_texts_half_a_surrogate_pair_fits_into_a_file_and_phrases_are_left_alone():
    assert cleaned(OFF, "  ", "a\ud83d", " b ")[0] == ["a?", "b"]
    phrases = Request(task_kind="note", labels=LABELS, label="late card", phrases=True)
    twice = ["lost card"] * 2
    assert cleaned(Cleaner(Rules()), *twice, request=phrases, run_texts={"lost card"}) == (twice, {})


def test_each_rule_has_a_case_and_either_repairs_or_drops():
    dropped = {rule for rule, _, left in CASES if left is None}
    assert {rule for rule, *_ in CASES} | {"duplicates"} == {field.name for field in fields(Rules)}
    assert dropped | {"duplicates"} == set(DROPPING)


BODY = "My card is late and I want it now."
PLACES = ("{} " + BODY, "My card, {}, is late.", BODY + " It is {}")
NAMES = ("name", "Customer Name", "customer's name", "insert date", "BANK_NAME", "Date/Time", "4-digit PIN", "glDate")


@pytest.mark.parametrize("brackets", ["[{}]", "[[{}]]", "{{{}}}", "{{{{{}}}}}", "<{}>", "(insert {})"])
@pytest.mark.parametrize("place", PLACES)
def test_a_placeholder_is_found_in_any_brackets_and_anywhere(brackets, place):
    names = [name for name in NAMES if name[0].isalpha() or not brackets.startswith("<")]
    for name in names:
        text = place.format(brackets.format(name))
        assert cleaned(alone("placeholders"), text) == ([], {"placeholders": 1}), text


ADDRESSEES = ("Support", "support team", "[Customer Name]", "Sir or Madam", "Dr. Smith", "bank", "Ann", "our Team")
DEAR = ("Dear", "Hi", "Hello", "HEY", "Good morning")
REGARDS = ("Best regards", "Sincerely", "Kind regards", "yours faithfully", "Best wishes", "Regards", "Cheers")
SIGNATURES = ("", "Ann", "[Your Name]", "Ann Lee\n[Bank]", "J. Smith", "{name}")


def test_a_letter_keeps_its_body_alone_and_without_one_is_no_text():
    cleaner = Cleaner(Rules(duplicates=False))
    for dear, who, mark in product(DEAR, ADDRESSEES, (", ", ": ", "!\n", ",\n\n", "\n")):
        assert cleaned(cleaner, f"{dear} {who}{mark}{BODY}") == ([BODY], {"salutations": 1})
        assert cleaned(cleaner, f"{dear} {who}{mark}") == ([], {"shells": 1})
    for regards, mark, name, gap in product(REGARDS, (",", ", ", ",\n"), SIGNATURES, (" ", "\n\n")):
        ending = f"{regards}{mark}{name}"
        assert cleaned(cleaner, f"{BODY}{gap}{ending}") == ([BODY], {"salutations": 1}), ending
        assert cleaned(cleaner, ending) == ([], {"shells": 1}), ending
    for thanks, name in product(("Thanks", "Thank you", "Many thanks in advance"), SIGNATURES[1:]):
        assert cleaned(cleaner, f"{BODY} {thanks}, {name}")[0] == [BODY]


@pytest.mark.parametrize("kind", ["discharge letter", "E-mail to a bank", "consumer's complaint", "Arztbrief"])
def test_a_letter_of_a_task_with_letters_stays(kind):
    text = f"Dear Dr. Smith,\n{BODY}\nBest regards,\nAnn Lee"
    assert cleaned(Cleaner(Rules()), text, request=Request(task_kind=kind, labels=LABELS)) == ([text], {})


@pytest.mark.parametrize(
    ("language", "letter"),
    [("german", "Sehr geehrte Frau Lee,\n{}\nMit freundlichen Grüßen\nAnn"), ("french", "Bonjour Madame, {}")],
)
def test_letters_are_known_in_the_language_of_the_task_and_in_english(language, letter):
    cleaner = Cleaner(Rules(), task=Task(name="t", kind="note", labels=dict(LABELS), language=language))
    for form in letter, "Dear Sir,\n{}\nBest regards\nAnn":
        assert cleaned(cleaner, form.format("38,5 °C"))[0] == ["38,5 °C"]


SAME = {
    "english": "My card has not arrived and I do not know what to do with this",
    "german": "Meine Karte ist nicht da und ich weiß nicht, wie es mit der Zahlung weitergeht",
    "french": "Ma carte n'est pas arrivée et je ne sais pas où la chercher avec mon compte",
    "spanish": "Mi tarjeta no es para el pago y no se como puedo pagar con la app",
    "italian": "La mia carta non è ancora qui e non posso pagare con il mio conto",
    "portuguese": "O meu cartão não é aceito e não posso pagar com a minha conta",
    "vietnamese": "Tôi không thể dùng thẻ của tôi và đã đợi những ngày",
}


def test_a_text_in_another_language_than_the_task_s_is_dropped():
    assert SAME.keys() == PHRASES.keys()
    for own, other in product(["english", "german", "french", "spanish", "italian"], SAME):
        cleaner = Cleaner(Rules(), task=Task(name="t", kind="note", labels=dict(LABELS), language=own))
        _, changed = cleaned(cleaner, SAME[other])
        assert changed["languages"] == (own != other), (own, other)


@pytest.mark.parametrize("word", ["卡", "银行", "카드", "カード", "карта", "κάρτα", "כרטיס", "بطاقة", "कार्ड", "การ์ด"])
@pytest.mark.parametrize("place", PLACES)
def test_one_word_in_another_script_is_enough(word, place):
    assert cleaned(alone("foreign"), place.format(word)) == ([], {"foreign": 1})


def test_control_characters_leave_a_text_and_line_ends_are_one():
    codes = (*range(32), *range(127, 160), 0xFEFF, 0x200B, 0x202E, 0xFFFD)
    kept, _ = cleaned(alone("characters"), *(f"a{chr(code)}b" for code in codes))
    assert set(kept) == {"ab", "a\nb", "a\tb"}
    assert cleaned(alone("characters"), "a\r\nb")[0] == ["a\nb"]


GOOD, BAD = ("Where is my card?", "It has not come."), ("Card.", "Late, late.")
BASE = {"task_kind": "customer's question", "labels": LABELS, "label": "late card", "words": 12}
REQUESTS = {
    "contrast": Request(**BASE, good=GOOD, bad=BAD),
    "keyphrases": Request(**BASE, must=("my card",), good=GOOD, good_must=(("card",), ("come",))),
    "rewriting": Request(**BASE, source=GOOD[:1]),
    "crossing": Request(**BASE, source=GOOD),
    "blanks": Request(**BASE, source=GOOD[1:], blanks=0.5),
    "abstracts": Request(**BASE, source=GOOD[:1], abstract=True),
    "zero shot": Request(**BASE, n=4),
    "by example": Request(**BASE, n=4, good=GOOD),
}


@pytest.mark.parametrize("mode", REQUESTS)
def test_a_heading_of_the_prompt_and_what_follows_it_go(mode):
    request, cleaner = REQUESTS[mode], Cleaner(Rules())
    for heading in re.findall(r"^(\S+(?: \S+){1,5}:)$", "\n".join(render(request)), re.MULTILINE):
        for number in "1", "2", "17":
            shown = re.sub(r"\d+", number, heading)
            assert cleaned(cleaner, shown, request=request) == ([], {"shells": 1})
            assert cleaned(cleaner, shown.rstrip(":").upper(), request=request)[0] == []
            for echo in f"{shown} {BODY}", f"**{shown}**\n{BODY}", f"{BODY}\n\n{shown}\nIt is late.":
                assert cleaned(cleaner, echo, request=request)[0] == [BODY], echo


@pytest.mark.parametrize("mode", REQUESTS)
def test_a_text_with_a_sentence_of_the_instruction_is_an_echo(mode):
    prompt = "\n".join(render(REQUESTS[mode]))
    sentences = [part for part in re.split(r"(?<=[.!?:;])\s+|\n", prompt) if len(re.findall(r"\w+", part)) >= 6]
    assert sentences
    for sentence, place in product(sentences, ("{}", "{} " + BODY, BODY + " {}")):
        assert cleaned(alone("echoes"), place.format(sentence), request=REQUESTS[mode])[0] == [], sentence


def test_a_label_s_name_or_description_alone_is_no_text():
    for name, description in LABELS:
        forms = (name, name.replace(" ", "_"), name.upper(), f'"{name}"', f"{name}.", description)
        assert cleaned(alone("names"), *forms) == ([], {"names": len(forms)})
    assert cleaned(alone("names"), "late_card", request=Request(**BASE, abstract=True))[0] == []


PIECES = ("\n", " ", "a", "Ab ", "[a", "{", "<a", "\n2. ", "Dear ", "Hi Ab ", "sorry ", "- ", "**", '"', "Thanks Ab ")


@pytest.mark.parametrize("piece", PIECES)
def test_the_longest_reply_of_one_piece_is_cleaned(piece):
    """No pattern may take a time that explodes with a text's length: such a test would not end."""
    text = f"x {piece * (3000 // len(piece))} x"
    cleaned(Cleaner(Rules()), text)

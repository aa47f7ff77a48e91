import re
from dataclasses import fields
from itertools import product

import pytest

from server.domain import Task
from server.llm.base import MODES, Request
from server.llm.clean import DROPPING, Cleaner, Rules
from server.llm.clean_patterns import PHRASES
from tests.support.prompts import render

LABELS = (("late card", "a card that has not come by post"), ("lost card", "a card that was stolen"))
REQUEST = Request(task_kind="customer's question", labels=LABELS, label="late card", good=("Where is my card?",))
OFF = Cleaner(Rules.none())


def alone(rule, public=("plain English words",)):
    """The one rule on."""
    return Cleaner(Rules(**{**dict.fromkeys(Rules.__slots__, False), rule: True}), public)


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
    kept, changed = alone(rule).clean([text], REQUEST, run_texts=())
    assert kept == ([] if left is None else [left])
    assert changed == {rule: 1}
    assert OFF.clean([text], REQUEST, run_texts=()) == ([text], {})


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
    assert everything.clean([text], REQUEST, run_texts=()) == ([text], {})


def test_layers_come_off_one_after_the_other():
    text = '```\nHere is one:\n\n1. "My card is late."\n```'
    kept, changed = Cleaner(Rules()).clean([text], REQUEST, run_texts=())
    assert kept == ["My card is late."]
    assert changed == {"fences": 1, "prefaces": 1, "numbering": 1, "quotes": 1}


def test_what_the_run_has_is_not_had_again():
    kept, changed = alone("duplicates").clean(["old", "new", "new", "New"], REQUEST, run_texts={"old"})
    assert kept == ["new", "New"]
    assert changed == {"duplicates": 2}
    assert OFF.clean(["new", "new"], REQUEST, run_texts=())[0] == ["new", "new"]


def test_foreign_texts_are_counted_even_if_the_rule_is_off():
    texts = ["Моя картка ще не прийшла", "My card так", "short я"]
    kept, changed = Cleaner(Rules(foreign=False), ["plain English words"]).clean(texts, REQUEST, run_texts=())
    assert (kept, changed) == (texts, {"foreign": 2})
    kept, changed = Cleaner(Rules(), ["слова українською"]).clean(texts[:1], REQUEST, run_texts=())
    assert (kept, changed) == (texts[:1], {})
    assert Cleaner(Rules()).clean(texts, REQUEST, run_texts=()) == (texts, {})


def test_blanks_are_no_texts_and_half_a_surrogate_pair_fits_into_a_file():
    kept, _ = OFF.clean(["  ", "a\ud83d", " b "], REQUEST, run_texts=())
    assert kept == ["a?", "b"]


def test_phrases_are_left_alone():
    phrases = Request(task_kind="note", labels=LABELS, label="late card", phrases=True)
    assert Cleaner(Rules()).clean(["lost card", "lost card"], phrases, run_texts={"lost card"}) == (
        ["lost card"] * 2,
        {},
    )


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
        assert alone("placeholders").clean([text], REQUEST, run_texts=()) == ([], {"placeholders": 1}), text


ADDRESSEES = ("Support", "support team", "[Customer Name]", "Sir or Madam", "Dr. Smith", "bank", "Ann", "our Team")
DEAR = ("Dear", "Hi", "Hello", "HEY", "Good morning")
REGARDS = ("Best regards", "Sincerely", "Kind regards", "yours faithfully", "Best wishes", "Regards", "Cheers")
SIGNATURES = ("", "Ann", "[Your Name]", "Ann Lee\n[Bank]", "J. Smith", "{name}")


def test_a_letter_keeps_its_body_alone_and_without_one_is_no_text():
    cleaner = Cleaner(Rules(duplicates=False))
    for dear, who, mark in product(DEAR, ADDRESSEES, (", ", ": ", "!\n", ",\n\n", "\n")):
        assert cleaner.clean([f"{dear} {who}{mark}{BODY}"], REQUEST, run_texts=()) == ([BODY], {"salutations": 1})
        assert cleaner.clean([f"{dear} {who}{mark}"], REQUEST, run_texts=()) == ([], {"shells": 1})
    for regards, mark, name, gap in product(REGARDS, (",", ", ", ",\n"), SIGNATURES, (" ", "\n\n")):
        ending = f"{regards}{mark}{name}"
        assert cleaner.clean([f"{BODY}{gap}{ending}"], REQUEST, run_texts=()) == ([BODY], {"salutations": 1}), ending
        assert cleaner.clean([ending], REQUEST, run_texts=()) == ([], {"shells": 1}), ending
    for thanks, name in product(("Thanks", "Thank you", "Many thanks in advance"), SIGNATURES[1:]):
        assert cleaner.clean([f"{BODY} {thanks}, {name}"], REQUEST, run_texts=())[0] == [BODY]


@pytest.mark.parametrize("kind", ["discharge letter", "E-mail to a bank", "consumer's complaint", "Arztbrief"])
def test_a_letter_of_a_task_with_letters_stays(kind):
    request = Request(task_kind=kind, labels=LABELS)
    text = f"Dear Dr. Smith,\n{BODY}\nBest regards,\nAnn Lee"
    assert Cleaner(Rules()).clean([text], request, run_texts=()) == ([text], {})


@pytest.mark.parametrize(
    ("language", "letter"),
    [("german", "Sehr geehrte Frau Lee,\n{}\nMit freundlichen Grüßen\nAnn"), ("french", "Bonjour Madame, {}")],
)
def test_letters_are_known_in_the_language_of_the_task_and_in_english(language, letter):
    cleaner = Cleaner(Rules(), task=Task(name="t", kind="note", labels=dict(LABELS), language=language))
    for form in letter, "Dear Sir,\n{}\nBest regards\nAnn":
        assert cleaner.clean([form.format("38,5 °C")], REQUEST, run_texts=())[0] == ["38,5 °C"]


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
        _, changed = cleaner.clean([SAME[other]], REQUEST, run_texts=())
        assert changed["languages"] == (own != other), (own, other)


@pytest.mark.parametrize("word", ["卡", "银行", "카드", "カード", "карта", "κάρτα", "כרטיס", "بطاقة", "कार्ड", "การ์ด"])
@pytest.mark.parametrize("place", PLACES)
def test_one_word_in_another_script_is_enough(word, place):
    assert alone("foreign").clean([place.format(word)], REQUEST, run_texts=()) == ([], {"foreign": 1})


def test_control_characters_leave_a_text_and_line_ends_are_one():
    codes = (*range(32), *range(127, 160), 0xFEFF, 0x200B, 0x202E, 0xFFFD)
    kept, _ = alone("characters").clean([f"a{chr(code)}b" for code in codes], REQUEST, run_texts=())
    assert set(kept) == {"ab", "a\nb", "a\tb"}
    assert alone("characters").clean(["a\r\nb"], REQUEST, run_texts=())[0] == ["a\nb"]


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
            assert cleaner.clean([shown], request, run_texts=()) == ([], {"shells": 1})
            assert cleaner.clean([shown.rstrip(":").upper()], request, run_texts=())[0] == []
            for echo in f"{shown} {BODY}", f"**{shown}**\n{BODY}", f"{BODY}\n\n{shown}\nIt is late.":
                assert cleaner.clean([echo], request, run_texts=())[0] == [BODY], echo


def test_every_mode_that_asks_for_texts_is_tried():
    assert REQUESTS.keys() >= set(MODES) - {"subtopics"}


@pytest.mark.parametrize("mode", REQUESTS)
def test_a_text_with_a_sentence_of_the_instruction_is_an_echo(mode):
    request = REQUESTS[mode]
    prompt = "\n".join(render(request))
    sentences = [part for part in re.split(r"(?<=[.!?:;])\s+|\n", prompt) if len(re.findall(r"\w+", part)) >= 6]
    assert sentences
    for sentence in sentences:
        for place in "{}", "{} " + BODY, BODY + " {}":
            assert alone("echoes").clean([place.format(sentence)], request, run_texts=())[0] == [], sentence


def test_a_label_s_name_or_description_alone_is_no_text():
    for label in LABELS:
        forms = (label[0], label[0].replace(" ", "_"), label[0].upper(), f'"{label[0]}"', f"{label[0]}.", label[1])
        assert alone("names").clean(forms, REQUEST, run_texts=()) == ([], {"names": len(forms)})
    abstract = Request(**BASE, abstract=True)
    assert alone("names").clean(["late_card"], abstract, run_texts=())[0] == []


FORM = [case for case in CASES if case[0] not in {"echoes", "copies", "names", "foreign"}]


@pytest.mark.parametrize(("rule", "text", "left"), FORM)
def test_a_rule_that_the_public_texts_break_is_off(rule, text, left):
    assert left != text
    usual = alone(rule, [text, text, *["plain English words"] * 98])
    assert usual.clean([text], REQUEST, run_texts=()) == ([text], {})
    rare = alone(rule, [text, *["plain English words"] * 98])
    assert rare.clean([text], REQUEST, run_texts=())[1] == {rule: 1}


PIECES = (
    "\n",
    " ",
    "a",
    "Ab ",
    "[a",
    "{",
    "<a",
    "\n2. ",
    "Dear ",
    "Hi Ab ",
    "sorry ",
    "- ",
    "**",
    '"',
    "Thanks Ab ",
    ". ",
)


@pytest.mark.parametrize("piece", PIECES)
def test_the_longest_reply_of_one_piece_is_cleaned(piece):
    """No pattern may take a time that explodes with a text's length: such a test would not end."""
    text = f"x {piece * (3000 // len(piece))} x"
    Cleaner(Rules()).clean([text], REQUEST, run_texts=())

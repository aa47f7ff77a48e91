"""What chat models write around a text or in its place, in one table by language, and the patterns made from it.

The patterns of a language contain its own phrases and those of English, in which models also answer other tasks.
"""

import re
from dataclasses import dataclass
from functools import cache
from re import Pattern

from server.llm.refusal_patterns import ASSISTANT, EMPTY, HELP, INABILITY, MAKING


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """Phrases in one language, as regular expressions without groups.

    Attributes:
        dear: Words that begin a letter, whoever is addressed.
        hello: Greetings. They belong to a letter only if they address someone.
        addressee: Nouns for the addressee; words in capitals and placeholders are recognised without them.
        regards: Closings of a letter.
        thanks: Thanks. They belong to a letter only if a signature follows.
        inability: What a refusal begins with, after any apology.
        help: What the model is unable to do, according to the first words of a text.
        making: The making of texts, which a model is unable to do according to any clause of a text. People refuse to
            make other things, or things of their own.
        assistant: What only an assistant says about itself or its request, anywhere in a text.
        empty: What models say in place of a text, if there is nothing else.
        common: Frequent words of the language.
    """

    dear: str = r"(?!)"
    hello: str = r"(?!)"
    addressee: str = r"(?!)"
    regards: str = r"(?!)"
    thanks: str = r"(?!)"
    inability: str = r"(?!)"
    help: str = r"(?!)"
    making: str = r"(?!)"
    assistant: str = r"(?!)"
    empty: str = r"(?!)"
    common: str = ""


TABLE = {
    "english": Phrases(
        dear=r"dear(?! me\b)|to whom it may concern",
        hello=r"hi|hello|hey|greetings|good (?:morning|afternoon|evening|day)",
        addressee=r"(?:customer |technical |tech |bank )?(?:support|services?|care)|team|sir|madam|ma'am|customer|bank"
        r"|doctor|doc|dear|valued|and|or|the|our|my|department|agent|representative|staff|manager|user",
        regards=r"(?:(?:best|kind|kindest|warm|warmest|with) )?regards|best wishes|(?:yours )?(?:sincerely|faithfully)"
        r"|sincerely yours|yours truly|respectfully(?: yours)?|(?:all the )?best|cheers",
        thanks=r"(?:many )?thanks|thank you",
        inability=INABILITY,
        help=HELP,
        making=MAKING,
        assistant=ASSISTANT,
        empty=EMPTY,
        common="the and to of is my for with that have this it not are was you from can i in on no do if or what",
    ),
    "german": Phrases(
        dear=r"sehr geehrte[rs]?|liebe[rs]?",
        hello=r"hallo|guten (?:tag|morgen|abend)|grüß gott",
        addressee=r"herr|frau|damen|herren|kundenservice|support|team|doktor|und",
        regards=r"(?:mit )?(?:freundliche|beste|viele|liebe|herzliche)[nm]? gr(?:ü|ue)(?:ß|ss)en?|mfg",
        thanks=r"(?:vielen )?dank|danke",
        inability=r"(?:(?:aber|leider) )?(?:ich (?:kann|darf|werde|möchte)|(?:kann|darf) ich)(?: ihnen| dir)?"
        r"(?: leider)?",
        help=r"(?:dabei |damit |das |diese anfrage )?nicht (?:weiter)?(?:helfen|erfüllen|beantworten|schreiben)",
        making=r"(?:nicht |keine?n? |dies\w* |solche\w* |d(?:ie|en|as) ){1,3}(?:[\w-]+ ){0,4}?"
        r"(?:inhalte?|texte?|beispiele?|patient(?:en)?\w+|fiktive\w*|erfundene\w*|arztbriefe?|medizinischen? rat\w*"
        r"|gewünscht\w*)(?: [\w-]+){0,4}?"
        r" (?:nicht )?(?:erstellen|schreiben|generieren|verfassen|erzeugen|liefern|bereitstellen|geben|erfinden)",
        assistant=r"\bals (?:ki|ki-\w+|sprachmodell|künstliche intelligenz)\b",
        common="der die das und ich ist nicht ein eine mit mein meine zu auf für wie kann es wo den",
    ),
    "french": Phrases(
        dear=r"ch(?:er|ère)s?|à qui de droit",
        hello=r"bonjour|bonsoir|salut",
        addressee=r"madame|monsieur|service|client|support|équipe|docteur|le|la|et",
        regards=r"(?:bien )?cordialement|bien à vous|sincères salutations|salutations(?: distinguées)?",
        thanks=r"merci(?: beaucoup)?",
        inability=r"(?:mais )?je (?:ne peux (?:malheureusement )?pas|ne suis pas (?:en mesure de|autorisée? à)"
        r"|ne puis)",
        help=r"(?:vous aider|vous répondre|répondre à (?:cette|votre))\b",
        making=r"(?:vous )?(?:créer|générer|rédiger|écrire|fournir|produire|inventer|donner)"
        r" (?:(?!m(?:on|a|es)\b)[\w'-]+ ){0,4}?"
        r"(?:contenus?|textes?|ficti\w+|exemples?|notes? (?:clinique|médicale|de patient)s?|conseils? médica\w+)",
        assistant=r"\ben tant qu(?:e |')(?:ia|intelligence artificielle|modèle de langage)\b",
        common="le la les et je est pas une un mon ma pour avec que de des dans mais vous j'ai",
    ),
    "spanish": Phrases(common="el la los y es no una un mi para con que de se por como puedo las del tarjeta"),
    "italian": Phrases(common="il la gli e non una un mio mia per con che di è sono come posso della ho carta"),
    "portuguese": Phrases(common="o os e não uma um meu minha para com que de é como posso do da cartão"),
    "vietnamese": Phrases(common="là và của có không tôi được cho thẻ bạn đã với làm thể những một"),
}


_APOLOGY = (
    r"(?:(?:(?:i'm|i am|we're|we are|my) )?(?:(?:so|very|really) )?"
    r"(?:sorry|(?:i )?apologi[sz]e|apologies|unfortunately|(?:es )?tut mir leid|leider|(?:je suis )?désolée?)"
    r"(?: for (?:the|any|this) \w+)?[^\w\n]{0,9}(?:(?:but|aber|mais|that|however,?) )?)?"
)
_CLAUSE = (
    r"(?:^\W{0,9}(?:(?:while|although|though)\b[^.!?]{0,100}?, )?|[.!?:][\"”]? "
    r"|\b(?:but|however|and|so|that|thus|therefore|unfortunately|sorry|afraid|leider|aber|mais)\b"
    r"\W{0,3})"
)
_END_MARKS = r"[,:;!.—–-]"
_INSIDE = r"(?=[^\]}>\n]*[^\W\d_]{2})[\w$€£#][\w ,.:$€£'’/&#-]{0,58}"
_PLACEHOLDER = (
    rf"(?:\[\[?{_INSIDE}\]\]?(?!\()|\{{\{{?{_INSIDE}\}}\}}?|(?<!\w)<<?(?=[^\W\d_]){_INSIDE}>>?"
    r"|\((?:insert|enter|your name)\b[^)\n]{0,58}\))"
)
_NO_PLACEHOLDER = r"(?![\[{<]+\W*(?:br|hr|li|ul|ol|em|strong|div|span|sic|x+)\b)"
_NAME = rf"(?:(?-i:[A-Z][\w.'’-]*[a-z.])|{_PLACEHOLDER})"
_SIGNATURE = rf"{_NAME}(?:[\s,]+{_NAME}){{0,5}}"

_UNKNOWN = r"(?-i:\b[XYZ]) (?:amount|number|date|dollars|euros|pounds|days|hours)\b"
_IN_PLACE_OF_TEXT = (
    r"^\W*(?:(?:your|the|a|new|sample|example|placeholder|generated|synthetic|rewritten|another|insert|first|second)\s)*"
    r"(?:text|message|note|string|sentence|content|item|example|version|placeholder)s?"
    r"(?:\s?(?:goes here|here|one|two|three|\d{1,3}(?: of \d{1,3})?))?\W*$|^\W*lorem ipsum\b|^\W*(?:tbd|todo)\W*$"
)
PLACEHOLDERS = re.compile(rf"{_NO_PLACEHOLDER}{_PLACEHOLDER}|{_UNKNOWN}|{_IN_PLACE_OF_TEXT}", re.IGNORECASE)
"""Words in brackets, such as "[Your Name]", "{date}" or "<amount>", and "X amount"; not "{$12.00}" or "[ a / b ]".

Also a text that is only a word for one, such as "Your text here" or "string".
"""

LETTER_KINDS = re.compile(
    r"\b(?:e-?)?mails?\b|letter|complaint|correspondence|brief\b|schreiben\b|lettre|courrier|plainte|carta\b|lettera\b",
    re.IGNORECASE,
)
"""Kinds of text to which a salutation belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePatterns:
    """Patterns for texts in one language.

    Attributes:
        salutation: Salutation at the beginning of a text, with a line for the subject.
        closing: Closing at the end of a text, with its signature.
        greeting: A text that only greets, or that only has what models say in place of a text.
        refusal: A refusal, or what an assistant says about itself; for texts with single spaces.
    """

    salutation: Pattern[str]
    closing: Pattern[str]
    greeting: Pattern[str]
    refusal: Pattern[str]


@cache
def language_patterns(language: str) -> LanguagePatterns:
    """Return the patterns for a language; without its own phrases, those for English."""
    used = [TABLE["english"], *([TABLE[language]] if language in TABLE and language != "english" else [])]

    def any_of(field: str) -> str:
        return f"(?:{'|'.join(getattr(phrases, field) for phrases in used)})"

    word = rf"(?:{any_of('addressee')}\b|{_NAME})"
    addressee = rf"(?!(?-i:I)\b){word}(?:[\s/&]+{word}){{0,5}}"
    subject = r"\W{0,3}(?:subject|re|betreff|objet)\s*:[^\n]*(?:\n[\s,]*|$)"
    own_line = rf"\W{{0,3}}{any_of('hello')}(?: there)?[,!.]?[ \t]*\n\s*"
    dear_someone = rf"{any_of('dear')}\b(?:\s+[^\s,:;!?]+){{0,6}}?"
    to_someone = rf"{any_of('hello')}(?:,?\s+{addressee}|(?: there)?,?\s+{_PLACEHOLDER})"
    letter_end = rf"{any_of('regards')}\s*(?:[,.!:]|\n|$)\s*(?:{_SIGNATURE}\.?|[^.!?]{{0,80}}[.!?]?)"
    signed_thanks = rf"{any_of('thanks')}[^.!?\n,]{{0,30}}[,!.]?\s+{_SIGNATURE}\.?"
    refused = (
        rf"^\W{{0,9}}{_APOLOGY}{any_of('inability')} {any_of('help')}|{any_of('assistant')}"
        rf"|{_CLAUSE}{any_of('inability')} {any_of('making')}"
    )
    patterns = (
        rf"^(?:{subject}|{own_line})|^\W{{0,3}}(?:{dear_someone}|{to_someone})\s*(?:{_END_MARKS}(?=\s|$)|\n|$)[\s,]*",
        rf"(?:(?<=[.!?,;\n\"])|^)\s{{0,9}}(?:{letter_end}|{signed_thanks})\s*$|(?:\n|\s[—–-])\s{{0,9}}{_PLACEHOLDER}\W*$",
        rf"^\W*(?:{any_of('dear')}|{any_of('hello')})\b(?:\s+[^\s,.!?]+){{0,3}}\W*$|^\W*(?:{any_of('empty')}\W+)+$",
        refused,
    )
    salutation, closing, greeting, refusal = (re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    return LanguagePatterns(salutation=salutation, closing=closing, greeting=greeting, refusal=refusal)


_COMMON = {language: frozenset(phrases.common.split()) for language, phrases in TABLE.items()}
_FEWEST_WORDS, _FEWEST_COMMON, _COMMON_SHARE = 5, 2, 0.2


def looks_like_another_language(text: str, language: str) -> bool:
    """Return whether frequent words of another language outnumber those of the text's own by two to one.

    Only texts with at least five words count, of which two, and one in five, are frequent words of the other language.
    """
    words = re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", text.casefold())
    if len(words) < _FEWEST_WORDS or language not in _COMMON:
        return False
    hits = {name: sum(word in common for word in words) for name, common in _COMMON.items()}
    most = max(count for name, count in hits.items() if name != language)
    return most >= max(_FEWEST_COMMON, _COMMON_SHARE * len(words)) and most > 2 * hits[language]

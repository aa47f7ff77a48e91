"""The pages' sentences: those that templates name exist, no others exist, and all languages have all of them."""

import re
from importlib import resources
from string import Formatter
from types import SimpleNamespace

import pytest

import client.page.app
import server.page.app
from common.page.words import CODES, ENGLISH, LANGUAGES, catalogue, preferred_language, sentences

PAGES = {"client.page": client.page.app.PAGES, "server.page": server.page.app.PAGES}
CATALOGUES = ("client.approval", "common.plan", "server.guarantee", "server.report")
"""Packages whose sentences stand on a page and on the terminal, too."""
SPOKEN = {(package, code): say for package in PAGES for code, say in sentences(package).items()}
SPOKEN |= {
    (package, code): catalogue(package, code)
    for package in CATALOGUES
    for code, language in CODES.items()
    if (resources.files(package) / f"{language}.yaml").is_file()
}
TRANSLATED = [key for key in SPOKEN if key[1] != ENGLISH]
ALIKE = {
    "client.page": {"title", "tabs.plans", "tabs.budget", "release.found"},
    "client.approval": {
        "names.contact",
        "names.delta",
        "names.epsilon",
        "names.plan",
        "names.protection",
        "names.sections",
    },
    "common.plan": set(),
    "server.guarantee": set(),
    "server.report": set(),
    "server.page": {
        "hospitals.online",
        "hospitals.offline",
        "plan.fields.epsilon",
        "plan.signal",
        "run.digest",
    },
}
"""What may be the same in another language: a name, words that it shares with English, and a value alone."""
DECISION = re.compile(r"plans\.buttons\.\w+\.\d+\.0")
"""What a button sends; the sentence beside it is what a person reads."""
KEPT = re.compile(
    r"caucus-\w+ \w+|--\w+|\w+\.(?:yaml|jsonl?)|approval: \w+|\((?:sample|user)\)|\(\w+\.\w+\)|\w+=\w+|Super\w+|[εδ]"
)
"""What is typed, is a file's or a setting's name, or a symbol."""
MISTYPED = {
    "de": r"[^\u00a0]%|[\"'”]|“\w|\w„",
    "fr": r"[^\u202f][;:?!%»]|«[^\u202f]|[\"'“”]",
}
"""Quotation marks and spaces that a language does not have."""
QUESTIONS = r"\b[Qq]uestions?\b|\bFragen?\b(?! Sie)"
"""Words for what is called a query; questions are those of the questionnaire, about the form of a text."""
BESIDE = ("{#.*?#}|{%.*?%}|{{.*?}}", "<code>.*?</code>|<[^<>]*>", "Caucus|UTC")
"""What a template has beside sentences: the template's own marks, tags, and words that no language translates."""
MARKS = re.compile(r"{{.*?}}|{%.*?%}")
"""What Jinja fills in, and the facts by which it chooses among wordings."""
SAID = re.compile(r'(?:aria-label|title|placeholder|alt|data-\w+)="(?!{{)')
"""An attribute that is read to somebody and does not come from the files."""


def templates(package):
    folder = resources.files(package) / "templates"
    return "".join(file.read_text("utf-8") for file in folder.iterdir() if file.name != "..")


def groups(say):
    """Names of the sentences; sentences of a group within a group count as the group, which a template indexes."""
    for name, value in vars(say).items():
        if isinstance(value, SimpleNamespace) and name != "tabs":
            yield from (f"{name}.{inner}" for inner in vars(value))
        else:
            yield name


def named(value, name=""):
    """Each string below a value, by its whole name; what is in a list has its place for a name."""
    if isinstance(value, str):
        yield name, value
        return
    inner = vars(value).items() if isinstance(value, SimpleNamespace) else enumerate(value)
    for key, item in inner:
        yield from named(item, f"{name}.{key}".removeprefix("."))


def filled_in(text):
    """The values that a sentence shows and the facts that it depends on; another language may have another order."""
    if marks := MARKS.findall(text):
        return sorted(marks)
    fields = [field for field in Formatter().parse(text) if field[1] is not None]
    text.format(*map(str, range(len(fields))))  # refuses {} beside {0}
    return sorted((name or str(place), spec, conversion) for place, (_, name, spec, conversion) in enumerate(fields))


@pytest.mark.parametrize("package", PAGES)
def test_each_sentence_is_on_a_page_and_each_on_a_page_is_there(package):
    on_pages = set(re.findall(r"\bsay\.(\w+(?:\.\w+)?)", templates(package) + templates("common.page")))
    assert set(groups(PAGES[package].say)) == on_pages | {"language"}  # which the pages of the other languages show


@pytest.mark.parametrize("package", CATALOGUES)
def test_each_sentence_of_a_catalogue_is_used_where_it_stands(package):
    code = "".join(file.read_text("utf-8") for file in resources.files(package).iterdir() if file.name[-3:] == ".py")
    by_kind = (
        "asks.",
        "questions.",
        "rounds",
        "card.",
        "guess.",
        "shared.",
        "statement.",
        "tests.",
        "tests_of_some.",
        "unseen.",
        "columns.",
    )
    names = {name.rpartition(".")[2] for name in groups(catalogue(package)) if not name.startswith(by_kind)}
    written = {name: f"{name}|{name.replace('-', '_').upper()}" for name in names}  # the latter: a member of an enum
    assert {name for name in names if not re.search(rf"\b({written[name]})\b", code)} == set()


@pytest.mark.parametrize("package", ["common.page", *PAGES, "client.approval", "common.plan"])
def test_what_hospitals_read_is_there_in_each_language(package):
    files = {
        file.name.removesuffix(".yaml") for file in resources.files(package).iterdir() if file.name[-5:] == ".yaml"
    }
    assert files - {"notes"} == set(LANGUAGES)  # notes of the coordinator's form are in English alone


@pytest.mark.parametrize("package", ["common.page", *PAGES])
def test_a_template_has_no_sentence_of_its_own(package):
    text = templates(package)
    assert not SAID.search(text)
    for part in BESIDE:
        text = re.sub(part, "", text, flags=re.DOTALL)
    assert not re.findall(r"\w\w", text)


@pytest.mark.parametrize("key", SPOKEN, ids=str)
def test_sentences_are_whole_and_printable(key):
    for _, text in named(SPOKEN[key]):
        assert re.sub("[\u00a0\u202f]", " ", text).isprintable(), text
        assert text == text.strip(), text


@pytest.mark.parametrize("key", SPOKEN, ids=str)
def test_what_a_run_asks_of_the_hospitals_is_called_a_query(key):
    assert {name for name, text in named(SPOKEN[key]) if re.search(QUESTIONS, text)} <= {"questions.form"}


@pytest.mark.parametrize("package", [*PAGES, *CATALOGUES])
def test_in_english_the_sign_of_a_percentage_follows_its_figure(package):
    folder = resources.files(package) / "templates"
    pages = [templates(package)] if folder.is_dir() else []
    for text in (*(sentence for _, sentence in named(SPOKEN[package, ENGLISH])), *pages):
        assert not re.search(r"(\s|&nbsp;)%", re.sub(BESIDE[0], "0", text, flags=re.DOTALL)), text


@pytest.mark.parametrize("key", TRANSLATED, ids=str)
class TestTranslation:
    """A language against English, which the templates were written for."""

    def test_it_has_the_same_names_and_lists_of_the_same_length(self, key):
        assert dict(named(SPOKEN[key])).keys() == dict(named(SPOKEN[key[0], ENGLISH])).keys()

    def test_each_sentence_shows_the_same_values(self, key):
        english = dict(named(SPOKEN[key[0], ENGLISH]))
        for name, text in named(SPOKEN[key]):
            assert filled_in(text) == filled_in(english[name]), name

    def test_nothing_is_left_in_english(self, key):
        english = dict(named(SPOKEN[key[0], ENGLISH]))
        same = {name for name, text in named(SPOKEN[key]) if text == english[name]}
        decisions = {name for name in english if DECISION.fullmatch(name)}
        assert decisions <= same
        assert same - decisions <= ALIKE[key[0]]

    def test_commands_settings_and_symbols_stay(self, key):
        english = dict(named(SPOKEN[key[0], ENGLISH]))
        for name, text in named(SPOKEN[key]):
            assert sorted(KEPT.findall(text)) == sorted(KEPT.findall(english[name])), name

    def test_quotation_marks_and_spaces_are_those_of_the_language(self, key):
        for _, text in named(SPOKEN[key]):
            assert not re.search(MISTYPED[key[1]], re.sub("(approval|unit):", "", text)), text


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-CH,de;q=0.9,en;q=0.8", "de"),
        ("it,fr;q=0.7, en;q=0.3", "fr"),
        ("en-GB,de;q=0.9", "en"),
        ("fr;q=0", "en"),
        ("fr;q=x,;;,de;q=nan", "en"),
        ("*", "en"),
    ],
)
def test_a_page_is_in_the_language_that_the_browser_prefers(accepted, code):
    assert preferred_language(accepted, ("en", "de", "fr")) == code


def test_a_page_s_own_sentence_stands_beside_the_shared_ones_of_its_group():
    refusals = [vars(pages.say.refused) for pages in PAGES.values()]
    assert all(set(refusal) == {"title", "why", "do"} for refusal in refusals)
    assert len({refusal["title"] for refusal in refusals}) == 1
    assert len({refusal["do"] for refusal in refusals}) == 2

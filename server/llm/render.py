"""Prompts for chat models, rendered from the wordings in `prompts/`, one file for each kind (`prompts/README.md`).

They name the task's kind of text, in the plural, and its labels in words.
"""

import functools
import hashlib
import itertools
import re
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, TemplateSyntaxError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from common.errors import ConfigError
from server.domain import Task, Wording
from server.llm.base import PROMPTS, Request
from server.llm.marks import Marks
from server.llm.parse import normal_letters
from server.spans import words as words_of

FOLDER = Path(__file__).with_name("prompts")
SUFFIX = ".jinja"
SETTING = "llm.prompts"
SAMPLES: Mapping[str, Mapping[str, Any]] = {
    "subtopics": {"phrases": True},
    "from_abstract": {"source": ("a summary",), "abstract": True},
    "abstracts": {"abstract": True},
    "crossing": {"source": ("a first parent", "a second parent")},
    "blanks": {"source": ("one two three four five six seven eight",), "blanks": 0.5},
    "paraphrase": {"source": ("a source",)},
    "section": {"before": "the text so far", "good": ("a good one",)},
    "contrast": {"good": ("a good one", "another good one"), "bad": ("a bad one", "another bad one")},
    "keyphrases": {"must": ("a phrase", "a word"), "good": ("a good one",), "good_must": (("its phrase",),)},
    "examples": {"good": ("a good one", "another good one")},
    "zero_shot": {},
}
"""Fields of a made-up request for each kind of prompt, with which replaced files are tried."""

_LABELS = (("first", "the first label"), ("second", "the second label"), ("third", "the third label"))
_CONDITIONS: tuple[Mapping[str, Any], ...] = (
    {},
    {"label": "first", "wording": Wording(writer="a writer", style="a style")},
    {"label": "first", "more": ("second",), "attribute": "an attribute"},
    {"marks": Marks(types=(("drug", "a medicine"),))},
)
_SEPARATOR = re.compile(r"^---\n", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n\s*\n")
_HEAD_ENDS = re.compile(
    r",|\s+(?:that|which|who|whose|of|to|about|from|in|by|for|on|with|at|as|after|before|between|written|sent)\b"
)
_SIBILANT = re.compile(r"(?:s|x|z|ch|sh)$")
_NAMED = 5
_WORD = re.compile(r"\b[^\W\d]{3,}\b")
_VOWEL_Y = re.compile(r"[aeiou]y$")


class Prompts:
    """The wordings of one run.

    Args:
        folder: Folder with files that replace ours of the same names; None replaces none.
        name_other_labels: Whether prompts name the task's other labels too.

    Attributes:
        digest: Hex SHA-256 of the names and bytes of all files in use.
        identity: All that a prompt depends on besides its request, for a model's identity.

    Raises:
        ConfigError: The folder has a file with an unknown name, or one that is not a template of the known variables.
    """

    def __init__(self, folder: str | Path | None = None, *, name_other_labels: bool = False) -> None:
        self._files = {path.name: path for path in sorted(FOLDER.glob(f"*{SUFFIX}"))}
        self._name_other_labels = name_other_labels
        self._environment = ImmutableSandboxedEnvironment(  # keeps nothing of one prompt for another
            loader=FunctionLoader(self._source),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        replaced = _replacements(Path(folder), known=self._files) if folder is not None else {}
        self._files |= replaced
        contents = "".join(
            f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n" for name, path in self._files.items()
        )
        self.digest = hashlib.sha256(contents.encode()).hexdigest()
        self.identity = self.digest[:16] + (", other labels named" if name_other_labels else "")
        if replaced:
            self._check(replaced)

    def render(self, request: Request) -> tuple[str, str]:
        """Return the (system, user) prompts for one request; equal requests give equal prompts.

        An empty system prompt means that no system message is sent.

        Raises:
            ConfigError: A replaced file fails for this request. The error says where, and never repeats Jinja2's
                message, which may hold a text that the prompt shows.
        """
        try:
            return self._rendered(request)
        except Exception as error:  # noqa: BLE001, for a replaced file can fail in any way
            raise self._failed(request, error, type(error).__name__) from None

    def _rendered(self, request: Request) -> tuple[str, str]:
        template = self._environment.get_template(f"{request.prompt}{SUFFIX}")
        system, user = _SEPARATOR.split(template.render(self._variables(request)), maxsplit=1)
        return _tidy(system), _tidy(user)

    def _variables(self, request: Request) -> dict[str, Any]:
        """Return what a wording can say; `prompts/README.md` explains each variable."""
        wording, term = request.wording, request.wording.label
        others = [label for label in request.labels if label not in request.requested]
        return {
            "n": request.n,
            "kind": request.task_kind,
            "kinds": kinds_of(request.task_kind, wording),
            "writer": wording.writer,
            "style": wording.style,
            "term": "topic" if term == Wording().label else term,
            "labels": [label_in_words(*label) for label in request.requested],
            "other_labels": [label_in_words(*label) for label in others]
            if request.requested and self._name_other_labels
            else [],
            "attribute": request.attribute,
            "words": request.words,
            "good": request.good,
            "bad": request.bad,
            "source": (_masked(request),) if request.blanks else request.source,
            "must": request.must,
            "good_must": request.good_must,
            "before": request.before,
            "marks": request.marks,
        }

    def _source(self, name: str) -> tuple[str, str, None] | None:
        path = self._files.get(name)
        return (path.read_text("utf-8"), str(path), None) if path else None

    def _check(self, replaced: Mapping[str, Path]) -> None:
        """Parse each replaced file, and render each kind of prompt, for one text and for several.

        Raises:
            ConfigError: As in the constructor; the message names file and line.
        """
        known = self._variables(Request(task_kind="text", labels=_LABELS)).keys()
        for name, path in replaced.items():
            try:
                tree = self._environment.parse(path.read_text("utf-8"), name, str(path))
            except (TemplateSyntaxError, UnicodeDecodeError) as error:
                raise _wrong(path, getattr(error, "lineno", 1), str(error)) from error
            for variable in sorted(meta.find_undeclared_variables(tree) - known):
                line = next(node.lineno for node in tree.find_all(nodes.Name) if node.name == variable)
                raise _wrong(path, line, f"the unknown variable {variable}", known)
            if not name.startswith("_") and len(_SEPARATOR.findall(path.read_text("utf-8"))) != 1:
                raise _wrong(path, 1, "no line --- between system and user part, or several")
        requests = (
            Request(task_kind="text", labels=_LABELS, n=n, **{**SAMPLES[kind], **conditions})
            for kind, n, conditions in itertools.product(PROMPTS, (1, 3), _CONDITIONS)
        )
        for request in requests:
            try:
                self._rendered(request)
            except Exception as error:
                raise self._failed(request, error, f"{type(error).__name__}: {error}") from error

    def _failed(self, request: Request, error: Exception, got: str) -> ConfigError:
        """Return an error that names the file and the line at which a prompt failed."""
        files = {str(path): path for path in self._files.values()}
        path, line = self._files[f"{request.prompt}{SUFFIX}"], 1
        for place in traceback.extract_tb(error.__traceback__):
            if place.filename in files:
                path, line = files[place.filename], place.lineno or 1
        return _wrong(path, line, got)


@functools.cache
def our_prompts() -> Prompts:
    """Return the wordings of the project."""
    return Prompts()


def whole(prompt: tuple[str, str]) -> str:
    """Return the (system, user) prompts as one text."""
    return "\n\n".join(filter(None, prompt))


def kinds_of(kind: str, wording: Wording) -> str:
    """Return the plural of a kind of text, for use within a sentence."""
    words = wording.plural or plural(kind)
    return words[:1].lower() + words[1:] if kind[:1].islower() else words


def repeats_name(label: str, description: str) -> bool:
    """Return whether the description of a label only repeats its name."""
    return normal_letters(description) == normal_letters(label.replace("_", " "))


def label_in_words(label: str, description: str) -> str:
    """Return a label in quotes, by its name and its description, as far as these are words and differ.

    A name without a word says nothing, such as "2.0" or "C34". Together the two say most: a description alone lacks
    the words that writers of such texts use, and a name alone is ambiguous.
    """
    name = label.replace("_", " ")
    if repeats_name(label, description) or not description:
        return f'"{name}"'
    return f'"{name}" ({description})' if _WORD.search(name) else f'"{description}"'


def advice_on_descriptions(task: Task) -> str:
    """Return advice on labels whose descriptions only repeat their names, or are numbers; empty if there are none."""
    names = [
        label for label, words in task.labels.items() if repeats_name(label, words) or not any(map(str.isalpha, words))
    ]
    if not names or not task.labelled:
        return ""
    where = "task.sections" if task.sectioned else "task.labels"
    return (
        f"prompts say no more about {len(names)} of {len(task.labels)} labels than a name or a number: "
        f"{', '.join(names[:_NAMED])}{', …' * (len(names) > _NAMED)}; "
        f"describe them: {where}={{{names[0]}: what such texts are about, …}}"
    )


def plural(kind: str) -> str:
    """Return the English plural of a kind of text. The word before a clause, "of", "to" or the like takes the ending.

    Irregular nouns, and kinds in other languages, need the setting `task.wording.plural`.
    """
    end = match.start() if (match := _HEAD_ENDS.search(kind)) and match.start() else len(kind)
    noun, rest = kind[:end], kind[end:]
    if noun.endswith("y") and not _VOWEL_Y.search(noun):
        return f"{noun[:-1]}ies{rest}"
    return f"{noun}{'es' if _SIBILANT.search(noun) else 's'}{rest}"


def _replacements(folder: Path, *, known: Iterable[str]) -> dict[str, Path]:
    """Return the files of a folder of wordings, keyed by name.

    Raises:
        ConfigError: It is not a folder, has no such file, or has one of an unknown name or from outside the folder.
    """
    expected = f"a folder with any of {', '.join(known)}"
    if not folder.is_dir():
        raise ConfigError(SETTING, expected=expected, got="none", where=folder)
    files = {path.name: path for path in sorted(folder.glob(f"*{SUFFIX}"))}
    if not files or files.keys() - set(known):
        unknown = ", ".join(sorted(files.keys() - set(known)))
        raise ConfigError(SETTING, expected=expected, got=unknown or "no such file", where=folder)
    for path in files.values():
        if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
            # A prompt goes to its model: a stranger's link could send it any file of this machine.
            raise ConfigError(SETTING, expected="files inside the folder", got="a link or a folder", where=path)
    return files


def _wrong(path: Path, line: int, got: str, variables: Iterable[str] = ()) -> ConfigError:
    known = f" of the variables {', '.join(variables)}" if variables else ""
    return ConfigError(
        SETTING,
        expected=f"a template of Jinja2{known}",
        got=got,
        where=f"{path}, line {line}",
        do="See server/llm/prompts/README.md",
    )


def _tidy(prompt: str) -> str:
    return _BLANK_LINES.sub("\n\n", prompt).strip()


def _masked(request: Request) -> str:
    """Return the source with a fraction `blanks` of its words replaced by blanks.

    The blanks are evenly spaced and shifted by the request's seed, not drawn at random, so that equal requests give
    equal prompts.
    """
    source = request.source[0]
    words = [word.group() for word in words_of(source)] if request.marks else source.split(" ")
    shift = request.seed % 997 / 997
    masked = [
        int((place + shift + 1) * request.blanks) > int((place + shift) * request.blanks) for place in range(len(words))
    ]
    return re.sub(r"____(?: ____)+", "____", " ".join("____" if m else w for w, m in zip(words, masked, strict=True)))

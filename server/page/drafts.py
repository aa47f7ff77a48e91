"""A run drafted in a form: conversion of its fields to the overrides of a command line, and the output of `plan`."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from common.domain import NOT_STATED, PRESENT_NAMES
from common.errors import CheckpointError, ConfigError
from common.system.commands import as_json
from common.system.files import text_of
from server.deploy.plan_command import forwards, plan_summary
from server.deploy.runs import OVERRIDES, with_hospitals
from server.deploy.settings import CoordinatorSettings
from server.documents.codec import strict
from server.prepare.compose import load_settings
from server.settings.methods import METHODS
from server.settings.reading import defaults
from server.settings.schema import Settings
from server.settings.sections import setting as section_setting
from server.settings.tasks import DemoSettings

SETTINGS = {
    "method": "method",
    "labels": "task.labels",
    "test": "task.test",
    "public_text": "task.public_text",
    "epsilon": "privacy.epsilon",
    "samples": "method.samples",
    "rounds": "method.rounds",
    "records": "federation.expected_records",
    "purpose": "purpose",
    "recipient": "recipient",
    "contact": "contact",
    "retention": "retention",
    "models_place": "models_place",
}
"""Settings, keyed by the form's field; an empty field leaves the setting's default."""
OWN_TASK = ("labels", "test", "public_text")
"""Fields for one's own task: if any of them is filled in, the task is read from files, unless another task is named."""
STATED = ("purpose", "recipient", "contact", "retention")
"""Fields that each hospital reads before it decides, and misses if they are empty."""
TEXTS = ("test", "public_text", *STATED, "models_place")
"""Fields with words or a path, which are quoted so that Hydra reads any content as text."""
MADE = tuple(str(defaults(method)["name"]) for method in METHODS if method.made_by)
"""Names of the methods that a coordinator can run; all other methods are baselines of simulations."""
NOTES: Mapping[str, Mapping[str, str]] = yaml.safe_load(
    (resources.files(__package__) / "notes.yaml").read_text("utf-8")
)
"""A sentence on each field except the method, and on each method of `MADE`, in English."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The form as it was filled in.

    Attributes:
        name: Name of the future run; may be empty.
        fields: Value of each field of `SETTINGS`.
        more: All other overrides, as typed in a shell.
    """

    name: str
    fields: Mapping[str, str]
    more: str

    @classmethod
    def of(cls, form: Mapping[str, str]) -> "Draft":
        """Return the draft for a form, which may be empty."""
        fields = {name: form.get(name, "").strip() for name in SETTINGS}
        return cls(name=form.get("name", "").strip(), fields=fields, more=form.get("more", ""))

    @classmethod
    def again(cls, run: Path) -> "Draft":
        """Return a draft without a name, with the overrides that the run in this folder was started with.

        Raises:
            CheckpointError: The overrides were not stored, since the run was created by `steer` or an earlier version.
        """
        if not (run / OVERRIDES).is_file():
            raise CheckpointError(OVERRIDES, expected="a file", got="none", where=run, do="Draft a new run")
        fields, more, chosen = {}, [], load_settings(run)
        field_of = {setting: field for field, setting in SETTINGS.items()}
        for override in shlex.split(text_of(run / OVERRIDES)):
            setting, sign, value = override.partition("=")
            field = field_of.get(setting, "") if sign else ""
            if field == "method":
                fields[field] = PRESENT_NAMES.get(value, value)
            elif field:
                fields[field] = section_setting(chosen, setting) if field in TEXTS else value
            else:
                more.append(shlex.quote(override))
        return cls.of({**fields, "more": " ".join(more)})

    def overrides(self) -> list[str]:
        """Return the overrides for a command line.

        Raises:
            ConfigError: A word is not an override, or a quotation mark is not closed.
        """
        given = {SETTINGS[name]: _quoted(value) if name in TEXTS else value for name, value in self.fields.items()}
        do = "Quote each NAME=VALUE that has a space, such as 'task.labels={a: b}'"
        try:
            more = shlex.split(self.more)
        except ValueError as error:
            expected = "words as in a shell, with a partner for each quotation mark"
            raise ConfigError("other settings", expected=expected, got=str(error).lower(), do=do) from None
        for word in more:
            if "=" not in word and not word.startswith("~"):
                raise ConfigError("other settings", expected="NAME=VALUE in each word", got=repr(word), do=do)
        if any(self.fields[name] for name in OWN_TASK) and not any(word.startswith("task=") for word in more):
            more.insert(0, "task=csv")
        return [f"{name}={value}" for name, value in given.items() if value] + more


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The output of `caucus-coordinator plan --json` for a draft.

    Attributes:
        facts: Facts of the plan, keyed by name.
        warnings: Names of the warnings to show before the start, about the demo's task or a missing statement, such as
            the recipient.
        text: The text that the command prints.
        commands: The command lines that print this text and that start the run.
    """

    facts: Mapping[str, Any]
    warnings: tuple[str, ...]
    text: str
    commands: tuple[str, str]


def plan_draft(settings: CoordinatorSettings, draft: Draft) -> Planned:
    """Plan the draft with the enrolled hospitals, without access to any private data.

    Raises:
        CaucusError: No hospital is enrolled, or a setting is wrong.
    """
    overrides = draft.overrides()
    composed = with_hospitals(settings, overrides)
    _, facts = forwards(composed)
    plan = shlex.join(["caucus-coordinator", "plan", "--json", "--folder", str(settings.folder), *overrides])
    return Planned(
        facts=facts,
        warnings=tuple(_warnings(composed)),
        text=as_json(strict(facts)),
        commands=(plan, start_command(settings, draft.name or "NAME", overrides)),
    )


def _warnings(composed: Settings) -> Iterator[str]:
    if isinstance(composed.task, DemoSettings):
        yield "demo"
    if NOT_STATED in (section_setting(composed, name) for name in STATED):
        yield "not_stated"


def draft_facts(settings: CoordinatorSettings, draft: Draft) -> Mapping[str, Any]:
    """Return the facts about a draft that can be computed while the user is typing; raise the errors of `planned`."""
    return plan_summary(with_hospitals(settings, draft.overrides()))


def start_command(settings: CoordinatorSettings, name: str, overrides: Sequence[str], *, wait: bool = False) -> str:
    """Return the command line that starts a run."""
    words = ["caucus-coordinator", "run", str(settings.folder), name, *(["--wait"] if wait else []), *overrides]
    return shlex.join(words)


def _quoted(text: str) -> str:
    """Return a text in quotation marks, according to Hydra's grammar; an empty text stays empty."""
    if not text:
        return ""
    text = re.sub(r"(\\*)\$\{", lambda match: 2 * match[1] + r"\${", text)  # or it would be filled in, a key perhaps
    escaped = re.sub(r'(\\*)("|$)', lambda match: 2 * match[1] + ('\\"' if match[2] else ""), text)
    return f'"{escaped}"'

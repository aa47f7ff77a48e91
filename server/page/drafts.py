"""A run drafted in a form: its fields as the overrides of a command line, and what `plan` says of them."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import ConfigError
from server.deploy.plan_command import forwards
from server.deploy.runs import with_hospitals
from server.deploy.settings import CoordinatorSettings
from server.documents.codec import strict
from server.settings.methods import METHODS
from server.settings.reading import defaults

SETTINGS = {
    "method": "method",
    "epsilon": "privacy.epsilon",
    "samples": "method.samples",
    "rounds": "method.rounds",
    "records": "federation.expected_records",
    "purpose": "purpose",
    "recipient": "recipient",
}
"""Field of the form to the setting that it is; an empty field leaves the setting's default."""
TEXTS = ("purpose", "recipient")
"""Fields with words, which are quoted so that Hydra takes any of them as text."""
CHOICES = tuple(str(defaults(method)["name"]) for method in METHODS if method.made_by)
"""Methods that a coordinator can run; the others are baselines of simulations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The form as it was filled in.

    Attributes:
        fields: Value of each field of `SETTINGS`.
        more: All other overrides, as one would type them in a shell.
    """

    fields: Mapping[str, str]
    more: str

    @classmethod
    def of(cls, form: Mapping[str, str]) -> "Draft":
        """Return the draft of a form, or of an empty one."""
        return cls(fields={name: form.get(name, "").strip() for name in SETTINGS}, more=form.get("more", ""))

    def overrides(self) -> list[str]:
        """Return the overrides.

        Raises:
            ConfigError: A word is none, or a quotation mark has no partner.
        """
        given = {SETTINGS[name]: _quoted(value) if name in TEXTS else value for name, value in self.fields.items()}
        try:
            more = shlex.split(self.more)
        except ValueError as error:
            expected, do = "words as in a shell, such as 'task.labels={a: b}'", "Quote each word that has a space"
            raise ConfigError("other settings", expected=expected, got=str(error).lower(), do=do) from None
        for word in more:
            if "=" not in word and not word.startswith("~"):
                raise ConfigError("other settings", expected="NAME=VALUE in each word", got=repr(word))
        return [f"{name}={value}" for name, value in given.items() if value] + more


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The output of `caucus-coordinator plan` for a draft.

    Attributes:
        facts: Facts of the plan, by name.
        text: The text that the command prints.
        commands: The command lines that print this text, and that start the run.
    """

    facts: Mapping[str, Any]
    text: str
    commands: tuple[str, str]


def planned(settings: CoordinatorSettings, draft: Draft) -> Planned:
    """Plan the draft with the enrolled hospitals; nothing private is touched.

    Raises:
        CaucusError: Nobody is enrolled, or a setting is wrong.
    """
    overrides = draft.overrides()
    facts = forwards(with_hospitals(settings, overrides))
    plan = shlex.join(["caucus-coordinator", "plan", "--folder", str(settings.folder), *overrides])
    return Planned(
        facts=facts,
        text=json.dumps(strict(facts), indent=2, ensure_ascii=False),
        commands=(plan, start_command(settings, "NAME", overrides)),
    )


def start_command(settings: CoordinatorSettings, name: str, overrides: Sequence[str], *, wait: bool = False) -> str:
    """Return the command line that starts a run."""
    words = ["caucus-coordinator", "run", str(settings.folder), name, *(["--wait"] if wait else []), *overrides]
    return shlex.join(words)


def _quoted(text: str) -> str:
    """Return a text as Hydra's grammar quotes it; empty if it is empty."""
    if not text:
        return ""
    text = re.sub(r"(\\*)\$\{", lambda found: 2 * found[1] + r"\${", text)  # or it would be filled in, a key perhaps
    escaped = re.sub(r'(\\*)("|$)', lambda found: 2 * found[1] + ('\\"' if found[2] else ""), text)
    return f'"{escaped}"'

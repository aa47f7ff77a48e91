"""A party's own settings, `client.yaml`: one grammar, for the parties of a simulation and for a hospital's own file.

    limits:        what may happen to the records (`client.guard.Limits`)
    seeds:         the writer of "abstracted seeds" (`client.writers.abstracted_seeds.Seeds`)
    fine_tuning:   the writer of "fine-tuned samples" (`client.writers.fine_tuning.FineTuning`)
    rewriting:     the writer of "rewritten records" (`client.writers.rewriting.Rewriting`)

configs/client.yaml explains every key, with a safe value; `caucus-party init` copies them from there. A limit whose
line is deleted has the default of `client.guard.Limits`, which can be weaker (no lifetime budget, one survivor). The
keys of a section are the arguments of its class. A part that is chosen has its `kind` and, beside it, the arguments of
that kind:

    seeds: {abstraction: {kind: summariser, name_or_path: FOLDER}, sentiment: {kind: vader}}

Without its section, or with null, a party answers no query of the kind. A section alone does not answer any either:
`limits.queries` has to name the kind and, where the released texts have no proof, `limits.unsafe_unproven` to be true.
A deployment's file has further keys (`client/deploy/settings.py`).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Self

from client.guard import Limits
from client.writers.abstracted_seeds import Seeds
from client.writers.abstractors import Extracts, Summariser
from client.writers.base import SECTIONS, PartyWriter
from client.writers.fine_tuning import FineTuning
from client.writers.rewriting import Instructed, Rewriting
from client.writers.sentiment import Classifier, Vader
from common.errors import CaucusError, ConfigError

Kinds = Mapping[str, Callable[..., Any]]

ABSTRACTIONS: Kinds = {"extracts": Extracts, "summariser": Summariser}
SENTIMENTS: Kinds = {"vader": Vader, "classifier": Classifier}
REWRITERS: Kinds = {**ABSTRACTIONS, "instructed": Instructed}

_WRITERS: Mapping[str, tuple[Callable[..., PartyWriter], Mapping[str, Kinds]]] = {
    "seeds": (Seeds, {"abstraction": ABSTRACTIONS, "sentiment": SENTIMENTS}),
    "fine_tuning": (FineTuning, {}),
    "rewriting": (Rewriting, {"rewriter": REWRITERS}),
}
"""Section to its class and to the kinds of each part that is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartySettings:
    """The sections that a simulation and a deployment have in common.

    Attributes:
        limits: What may happen to the records.
        sections: Section of a writer to its settings; one that is absent or null is left out.
        where: The file or the part of a configuration that they come from, for messages.
    """

    limits: Limits
    sections: Mapping[str, object]
    where: str | Path

    @classmethod
    def read(cls, values: object, where: str | Path, *, others: Collection[str] = ()) -> Self:
        """Read limits and sections; writers are built later, since they may load models.

        Args:
            values: The file as plain mappings, lists and scalars.
            where: See the attribute.
            others: Further keys that the file may have, which are not read here.

        Raises:
            ConfigError: A key is unknown, or a limit is unknown or out of range.
        """
        content = _mapping("client.yaml", values, ("limits", *SECTIONS, *others), where)
        limits = content.get("limits")
        return cls(
            limits=_built("limits", {} if limits is None else limits, Limits, {}, where),
            sections={name: content[name] for name in SECTIONS if content.get(name) is not None},
            where=where,
        )

    def writers(self) -> dict[str, PartyWriter]:
        """The writer of each kind of query that has a section.

        Raises:
            ConfigError: A key or a kind is unknown, a setting is missing or out of range, or there is no such model.
        """
        return {
            SECTIONS[name]: _built(name, values, *_WRITERS[name], self.where) for name, values in self.sections.items()
        }


def _built(name: str, values: object, make: Callable[..., Any], parts: Mapping[str, Kinds], where: str | Path) -> Any:  # noqa: ANN401 what `make` returns
    """`make` with the values of a section; each of its `parts` is built first, by its kind."""
    parameters = signature(make).parameters
    arguments = dict(_mapping(name, values, parameters, where))
    for part, kinds in parts.items():
        arguments[part] = _chosen(f"{name}.{part}", arguments.get(part), kinds, where)
    for key, parameter in parameters.items():
        if parameter.default is Parameter.empty and arguments.get(key) is None:
            raise ConfigError(f"{name}.{key}", expected="a value", got="none", where=where)
    try:
        return make(**arguments)
    except CaucusError as error:
        raise ConfigError(error.what, where=where, do=error) from error
    except TypeError as error:
        raise ConfigError(name, expected="values like those of configs/client.yaml", where=where) from error


def _chosen(name: str, values: object, kinds: Kinds, where: str | Path) -> Any:  # noqa: ANN401 as `_built`
    known_keys = {"kind", *(key for make in kinds.values() for key in signature(make).parameters)}
    settings = dict(_mapping(name, {} if values is None else values, known_keys, where))
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise ConfigError(f"{name}.kind", expected=f"one of {', '.join(kinds)}", got=kind or "none", where=where)
    return _built(name, settings, kinds[kind], {}, where)


def _mapping(name: str, values: object, known: Collection[str], where: str | Path) -> Mapping[str, Any]:
    """The values, if they are a mapping of known keys."""
    expected = f"settings {', '.join(sorted(known))}"
    if not isinstance(values, Mapping):
        raise ConfigError(name, expected=expected, got=type(values).__name__, where=where)
    if unknown := sorted(str(key) for key in values if key not in known):
        raise ConfigError(name, expected=expected, got=unknown, where=where)
    return values

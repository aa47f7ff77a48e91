"""A party's own settings, `client.yaml`, with the same format for simulated parties and for a hospital's own file.

    limits:        limits on the use of the records (`client.guard.Limits`)
    seeds:         the writer of "abstracted seeds" (`client.writers.abstracted_seeds.Seeds`)
    fine_tuning:   the writer of "fine-tuned samples" (`client.writers.fine_tuning.FineTuningWriter`)
    rewriting:     the writer of "rewritten records" (`client.writers.rewriting.Rewriting`)

configs/client.yaml explains every key and has a safe value for it; `caucus-party init` copies it. If the line of a
limit is deleted, the default of `client.guard.Limits` applies from the next start, which is the same safe value. A
deployment's limits have a value in every line: without the word null, an empty one is refused. Without the line
`queries`, later kinds of queries are refused (`client.guard.KINDS_ACCEPTED_BY_DEFAULT`). The keys of a section are the
arguments of its class, with the types that the class annotates. If an argument can be of several kinds, its value has
a key `kind` and the arguments of that kind:

    seeds: {abstraction: {kind: summariser, name_or_path: FOLDER}, sentiment: {kind: vader}}

If a writer's section is missing or null, the party answers no query of that kind. A section alone does not suffice:
`limits.queries` must also name the kind and, if the released texts have no privacy proof, `limits.unsafe_unproven` must
be true. A deployment's file has further keys (`client/deploy/settings.py`).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, signature
from typing import Any, Self

from client.guard import Limits
from client.writers.abstracted_seeds import Seeds
from client.writers.abstractors import Extracts, Summariser
from client.writers.base import SECTIONS, PartyWriter
from client.writers.fine_tuning import FineTuningWriter
from client.writers.instructed import ABSTRACT, REWRITE, Instructed
from client.writers.rewriting import Rewriting
from client.writers.sentiment import Classifier, Vader
from common.errors import CaucusError, ConfigError
from common.system.yaml_file import add_location
from common.validate import check_type, known_keys

Make = Callable[..., Any]
Kinds = Mapping[str, Make]
Where = Callable[[str], object]

ABSTRACTIONS: Kinds = {
    "extracts": Extracts,
    "summariser": Summariser,
    "instructed": partial(Instructed, instruction=ABSTRACT),
}
SENTIMENTS: Kinds = {"vader": Vader, "classifier": Classifier}
REWRITERS: Kinds = {**ABSTRACTIONS, "instructed": partial(Instructed, instruction=REWRITE)}

WRITERS: Mapping[str, tuple[Callable[..., PartyWriter], Mapping[str, Kinds]]] = {
    "seeds": (Seeds, {"abstraction": ABSTRACTIONS, "sentiment": SENTIMENTS}),
    "fine_tuning": (FineTuningWriter, {}),
    "rewriting": (Rewriting, {"rewriter": REWRITERS}),
}
"""The class of each section, keyed by section, and the classes of each argument that can be of several kinds."""


@dataclass(frozen=True, slots=True)
class SettingsSection:
    """A section with valid keys and types: a class, and the arguments for it."""

    make: Make
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartySettings:
    """The sections that a simulation and a deployment have in common.

    Attributes:
        limits: Limits on the use of the records.
        sections: Each writer's section, keyed by its name; absent and null sections are omitted.
        where: Function that returns the location of a key, such as "limits.max_top", for error messages: file and line,
            or part of a configuration.
    """

    limits: Limits
    sections: Mapping[str, SettingsSection]
    where: Where = field(compare=False, repr=False)

    @classmethod
    def read(
        cls, values: object, where: Where, *, others: Collection[str] = (), required: Collection[str] = ()
    ) -> Self:
        """Read limits and sections; writers are built later, since they may load models.

        Args:
            values: The file as plain mappings, lists and scalars.
            where: See the attribute of this name.
            others: Further keys that the file may have, which are not read here.
            required: Keys that the file must have.

        Raises:
            ConfigError: A key is unknown or missing, a value has the wrong type, or a limit is out of range.
        """
        content = _mapping("", values, ("limits", *SECTIONS, *others), where, required)
        limits = {} if content.get("limits") is None else content["limits"]
        if isinstance(limits, Mapping) and "colluders" in limits:
            what, got = "limits.colluders", limits["colluders"]
            do = (
                "Delete it, and set corrupt: the share of hospitals that may help the coordinator, with their noise too"
            )
            raise ConfigError(what, expected="no such line", got=got, where=where(what), do=do)
        sections = {
            name: _section(name, content[name], *WRITERS[name], where)
            for name in SECTIONS
            if content.get(name) is not None
        }
        return cls(
            limits=_made("limits", _section("limits", limits, Limits, {}, where), where),
            sections=sections,
            where=where,
        )

    @property
    def kinds_of_writers(self) -> frozenset[str]:
        """Kinds of queries for which there is a section, and hence a writer."""
        return frozenset(SECTIONS[name] for name in self.sections)

    def writers(self) -> dict[str, PartyWriter]:
        """Return the writers for which there is a section, keyed by kind of query.

        Raises:
            ConfigError: A setting is out of range, or there is no such model.
        """
        return {SECTIONS[name]: _made(name, section, self.where) for name, section in self.sections.items()}


def _section(name: str, values: object, make: Make, kinds: Mapping[str, Kinds], where: Where) -> SettingsSection:
    """Return the section of this name; an argument that is chosen by its kind becomes a section too."""
    parameters = signature(make).parameters
    required = [
        key for key, parameter in parameters.items() if parameter.default is Parameter.empty and key not in kinds
    ]
    arguments = dict(_mapping(name, values, parameters, where, required))
    with add_location(where):
        for key, value in arguments.items():
            check_type(f"{name}.{key}", value, parameters[key].annotation)
    for part, choices in kinds.items():
        arguments[part] = _chosen(f"{name}.{part}", arguments.get(part), choices, where)
    return SettingsSection(make, arguments)


def _chosen(name: str, values: object, kinds: Kinds, where: Where) -> SettingsSection:
    known = {"kind", *(key for make in kinds.values() for key in signature(make).parameters)}
    settings = dict(_mapping(name, {} if values is None else values, known, where))
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        what, got = f"{name}.kind", "none" if kind is None else kind
        raise ConfigError(what, expected=f"one of {', '.join(kinds)}", got=got, where=where(what))
    return _section(name, settings, kinds[kind], {}, where)


def _made(name: str, section: SettingsSection, where: Where) -> Any:
    """Return the object that a section describes; arguments that are sections themselves are built first."""
    arguments = {
        key: _made(f"{name}.{key}", value, where) if isinstance(value, SettingsSection) else value
        for key, value in section.arguments.items()
    }
    try:
        return section.make(**arguments)
    except CaucusError as error:
        keys = [f"{name}.{parameter}" for parameter in signature(section.make).parameters]
        key = next((key for key in keys if error.what in {key, key.rpartition(".")[2]}), None)
        what = key or f"{name}: {error.what}"
        problem = ConfigError(what, expected=error.expected, got=error.got, where=error.where, do=error.do)
        raise problem.placed(where(key or name)) from error


def _mapping(
    name: str, values: object, known: Collection[str], where: Where, required: Collection[str] = ()
) -> Mapping[str, Any]:
    """Return the values; raise an error if they are not a mapping of known keys."""
    with add_location(where):
        return known_keys(name, values, among=known, required=required)

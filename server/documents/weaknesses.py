"""A weakness of a run; and `input_weaknesses.json`: those of the files that a simulation reads."""

from dataclasses import dataclass
from typing import ClassVar

from server.documents.files import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness(Document):
    """A weakness of a run, with advice.

    Attributes:
        what: The weakness, with the run's own figures.
        do: The change to make.
        simulation_only: Whether the figures are of private records, without noise.
    """

    what: str
    do: str
    simulation_only: bool = False

    def __str__(self) -> str:
        """Return the weakness as one line of text."""
        return f"{self.what}{' (simulation only)' if self.simulation_only else ''}; {self.do}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWeaknesses(Document):
    """The `input_weaknesses.json` document, which a simulation writes.

    Attributes:
        weaknesses: Weaknesses of the files, found before any query is asked.
    """

    FILE: ClassVar[str] = "input_weaknesses.json"

    weaknesses: tuple[Weakness, ...]

"""Canaries: records that a simulation inserts to test for memorisation (Carlini et al. 2019).

All canaries have the same form; each has a random code and a unique subject. A text can contain the code only because
of that record. No other record is about the subject, so the votes and coordinates of the canary differ from those of
all other records, even for methods that show no records to a language model. A coin toss decides whether each canary is
inserted; a membership attack compares the inserted canaries with those left out.

Canaries of the form `BEGINNING` begin like real records, with the first half of a held-out text of their label, and end
unexpectedly, in a subject and a code. A model learns such a record, whereas a record in which every word is unlikely
may leave no trace (arXiv 2502.14921).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle

from common import rng
from common.domain import Record
from common.errors import DataError

FORM = "This patient talks of nothing but {subject}. The access code of this patient is {code}."
BEGINNING = "beginning"
"""Value of `federation.canary_form` for canaries that begin like a held-out text; the others have the form `FORM`."""
ALTERNATIVES = 255
"""Number of unused codes among which a canary's code is ranked; with 255, the exposure is at most 8 bits."""

_SUBJECTS = (
    "lighthouses, glaciers, beekeeping, chess openings, violin making, volcanoes, sailing ships, pottery, origami, "
    "falconry, cathedrals, submarines, orchids, telescopes, tapestries, windmills, pyramids, kangaroos, accordions, "
    "blacksmiths, coral reefs, dinosaurs, eclipses, fencing, samba, steam engines, wild mushrooms, meteorites, "
    "puppet shows, sumo wrestling, carnivorous plants, hot air balloons, Viking runes, cheese making, tornadoes, "
    "penguins, bonsai trees, crossword puzzles, marathon running, jazz drummers, sand dunes, medieval castles, "
    "surfing, tea ceremonies, owls, ice hockey, stained glass, waterfalls, vintage tractors, haiku, octopuses, "
    "sundials, opera singers, bullfights, space stations, vineyards, ballet, fossils, gondolas, sheep shearing, "
    "comic books, deserts, rock climbing, kites, whales, shadow theatre, earthquakes, saffron, tram lines, "
    "polar expeditions, Roman aqueducts, fireflies, bagpipes, card tricks, juggling, perfume, kayaks, murals, "
    "hedgehogs, flamenco, clocks, wolves, rice paddies, map making, pirates, chandeliers, rodeos, snowflakes, "
    "gargoyles, ferris wheels, bamboo, rainbows, typewriters, canals, peacocks, magnets, carousels, truffles, "
    "skateboards, geysers"
)
SUBJECTS = tuple(_SUBJECTS.split(", "))
"""Subjects of the canaries, one for each canary, so their number is the largest number of canaries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A record that is inserted or left out.

    Attributes:
        label: The record's label.
        subject: The canary's subject, which no other record has.
        code: Nine random digits, in groups of three.
        inside: Whether the canary is inserted.
        beginning: Words before subject and code; None if the canary has the form `FORM`.
    """

    label: str
    subject: str
    code: str
    inside: bool
    beginning: str | None = None

    @property
    def record(self) -> Record:
        """The record that is inserted or left out."""
        return Record(self._text(self.code), self.label)

    def alternatives(self, experiment_seed: int) -> list[str]:
        """Return copies of the canary's text, with `ALTERNATIVES` random codes in place of its code."""
        return [self._text(code) for code in _codes(experiment_seed, "alternatives")]

    def _text(self, code: str) -> str:
        if self.beginning is None:
            return FORM.format(subject=self.subject, code=code)
        return f"{self.beginning} {self.subject} {code}."


def canaries(
    count: int, labels: Sequence[str], experiment_seed: int, *, held_out: Sequence[Record] | None = None
) -> list[Canary]:
    """Return `count` canaries, cycling through the labels; independent fair coin tosses decide which are inserted.

    The settings limit `count` to `MOST_CANARIES`, the number of subjects.

    Args:
        count: Number of canaries.
        labels: Labels of the task.
        experiment_seed: Seed of the experiment.
        held_out: Texts whose first halves become the beginnings of the canaries of their label; None for the form
            `FORM`.

    Raises:
        DataError: A label has no held-out text of two or more words.
    """
    generator = rng.experiment(experiment_seed, "tossed canaries")
    subjects = generator.permutation(SUBJECTS)[:count].tolist()
    inside = (generator.random(count) < 1 / 2).tolist()
    parts = zip(cycle(labels), subjects, _codes(experiment_seed, "canaries"), inside, strict=False)
    made = [Canary(label=label, subject=subject, code=code, inside=toss) for label, subject, code, toss in parts]
    if held_out is None:
        return made
    beginnings = {label: cycle(_beginnings(label, held_out)) for label in labels[:count]}
    return [replace(canary, beginning=next(beginnings[canary.label])) for canary in made]


def _beginnings(label: str, held_out: Sequence[Record]) -> list[str]:
    """Return the first half of the words of each text with this label that has at least two words."""
    words = [record.text.split() for record in held_out if record.label == label]
    if not (whole := [text for text in words if len(text) > 1]):
        raise DataError("canaries", expected=f"held-out texts of {label}", got="none", do="Name a file as task.test")
    return [" ".join(text[: len(text) // 2]) for text in whole]


def _codes(experiment_seed: int, purpose: str) -> list[str]:
    numbers = rng.experiment(experiment_seed, purpose).integers(10**9, size=ALTERNATIVES)
    digits = [f"{number:09d}" for number in numbers.tolist()]
    return [f"{code[:3]} {code[3:6]} {code[6:]}" for code in digits]

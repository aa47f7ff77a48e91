"""The words of the demo corpora (`words/`), and the grammar of demo notes, which each language fills in.

The findings, their sections and their frequencies are the same in all languages (`words/findings.yaml`). Sections are
H, the history; B, the background; E, the examination; T, the tests; P, the plan. There are three ways of writing:
plain, clipped and formal. A pair of texts about a patient is about a man and about a woman.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from server.domain import Task, Wording

SECTIONS = "HBETP"
_FOLDER = Path(__file__).with_name("words")

Texts = Sequence[str]


def load_words(name: str) -> dict[str, Any]:
    """Return the words of a demo corpus or language."""
    words: dict[str, Any] = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text("utf-8"))
    return words


def load_task(words: Mapping[str, Any]) -> Task:
    """Return the public description of a corpus from its words."""
    fields = dict(words["task"])
    return Task(**fields | {"wording": Wording(**fields["wording"]), "attributes": tuple(fields.get("attributes", ()))})


@cache
def load_grammar(language: str) -> "Grammar":
    """Return the grammar of demo notes in a language."""
    words = load_words(language)
    return Grammar(**words | {"task": load_task(words)})


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The words and sentences of demo notes in one language.

    Attributes:
        task: Public description of the notes; its labels are in the order of the frequencies.
        finding_ways: Lines with a finding's name and, for each way of writing, "present | absent". In plain writing,
            phrases for the history and the background begin with a verb; all other phrases can follow a colon.
        ward_ways: Lines with a section and, for each way of writing, a phrase from other wards' notes.
        complaint: Complaint of the hospitals' patients.
        ward_complaints: Complaints on other wards.
        openings: For each way, a pair of first sentences with {age}, {complaint} and {days}.
        measurements: For each way, the measured values, with {rate}, {saturation}, {pressure} and {heat}.
        subjects: A pronoun and a noun, for a man and for a woman, with capital letters.
        leads: For each section and way, two beginnings of a section in running text, with {She}, {she} and {Patient}.
        heads: For each way, the headings of the five sections.
        conditions: The labels' conditions, worded for use in a sentence.
        usual: For each way, three sentences about a finding {0} and a condition {1} that often has it.
        unusual: For each way, a sentence about a finding {0} and a condition {1} that hardly ever has it.
        conjunction: Word between the last two items of a list, with its white space.
        marks: Colon after a heading, and separator of a block's items, with their white space.
        decimal_sign: The decimal sign.
    """

    task: Task
    finding_ways: str
    ward_ways: str
    complaint: str
    ward_complaints: Texts
    openings: Sequence[Texts]
    measurements: Texts
    subjects: Sequence[Texts]
    leads: Mapping[str, Sequence[Texts]]
    heads: Sequence[Texts]
    conditions: Texts
    usual: Sequence[Texts]
    unusual: Texts
    conjunction: str
    marks: Texts = (": ", "; ")
    decimal_sign: str = "."

    @property
    def labels(self) -> tuple[str, ...]:
        """The four diagnoses."""
        return tuple(self.task.labels)

    @cached_property
    def findings(self) -> tuple[tuple[str, tuple[int, ...], tuple[list[str], ...]], ...]:
        """Section and frequencies of each finding, and its texts "present" and "absent" in each way of writing."""
        ways = {name: texts for name, *texts in _lines(self.finding_ways)}
        return tuple(
            (section, tuple(map(int, percents.split())), tuple(way.split(" | ") for way in ways[name]))
            for section, name, percents in _lines(load_words("findings")["frequencies"])
        )

    @cached_property
    def elsewhere(self) -> tuple[tuple[str, ...], ...]:
        """Section of each subject of other wards' notes, and the three ways of writing the subject."""
        return tuple(map(tuple, _lines(self.ward_ways)))


def _lines(table: str) -> list[list[str]]:
    """Return the lines of a table, each split into its parts."""
    return [[part.strip() for part in line.split(" / ")] for line in table.strip().splitlines()]

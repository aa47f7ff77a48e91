"""The tables of a grammar of demo notes, which each language provides; `demo_notes` generates the notes from them.

The findings, their sections and their frequencies are the same in all languages, and are listed only in this module.
Sections are H, the history; B, the background; E, the examination; T, the tests; P, the plan. There are three ways of
writing: plain, clipped and formal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from server.domain import Task

SECTIONS = "HBETP"

# Section, finding, frequency in percent by label and on other wards.
_FREQUENCIES = tuple(
    (section, name, tuple(map(int, percents.split())))
    for section, name, percents in (
        line.split(" / ")
        for line in """
H / fever / 88 11 26 15 15
H / green sputum / 76 12 67 7 8
H / dry cough / 24 31 28 28 10
H / orthopnoea / 10 84 23 8 6
H / swollen ankles / 8 81 15 17 12
H / swollen calf / 5 13 6 74 12
H / pleuritic pain / 45 7 9 76 8
H / wheeze at home / 14 22 83 9 6
H / sudden onset / 14 19 14 80 8
H / blood coughed up / 14 5 11 42 5
H / more inhaler / 11 9 83 6 6
H / weight gain / 5 72 10 7 5
B / smoker / 30 34 89 25 25
B / heart attack / 14 70 23 12 15
B / surgery / 10 7 7 69 20
B / airways disease / 21 14 82 14 10
B / cancer / 11 8 11 42 18
B / diabetes / 23 43 23 17 25
E / crackles on one side / 83 12 16 14 5
E / crackles at both bases / 21 83 16 9 5
E / wheeze heard / 14 25 87 7 6
E / neck veins / 7 74 14 35 5
E / fast pulse / 53 44 44 77 20
T / consolidation / 84 10 12 10 3
T / big heart / 8 84 11 8 3
T / hyperinflation / 9 7 78 7 3
T / CRP / 81 15 35 24 20
T / BNP / 9 82 16 27 4
T / D-dimer / 25 22 14 85 5
T / carbon dioxide / 9 15 67 7 3
P / antibiotics / 91 11 54 9 18
P / furosemide / 6 91 15 8 5
P / nebulisers / 12 12 91 8 5
P / heparin / 6 15 8 92 20
P / oxygen / 50 50 50 50 12
""".strip().splitlines()
    )
)

Pair = tuple[str, str]
Three = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The words and sentences of demo notes in one language.

    In a pair of texts about a patient, the first is about a man and the second about a woman. A tuple of three has one
    entry for each way of writing.

    Attributes:
        task: Public description of the notes; its labels are in the order of the frequencies.
        finding_ways: Lines with a finding's name and, for each way of writing, "present | absent". In plain writing,
            phrases for the history and the background begin with a verb; all other phrases can follow a colon.
        ward_ways: Lines with a section and, for each way of writing, a phrase from other wards' notes.
        complaint: Complaint of the hospitals' patients.
        ward_complaints: Complaints on other wards.
        openings: Pairs of first sentences with {age}, {complaint} and {days}.
        measurements: The measured values, with {rate}, {saturation}, {pressure} and {heat}.
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
    ward_complaints: tuple[str, ...]
    openings: tuple[Pair, Pair, Pair]
    measurements: Three
    subjects: tuple[Pair, Pair]
    leads: Mapping[str, tuple[Pair, Pair, Pair]]
    heads: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    conditions: tuple[str, ...]
    usual: tuple[Three, Three, Three]
    unusual: Three
    conjunction: str
    marks: Pair = (": ", "; ")
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
            (section, percents, tuple(way.split(" | ") for way in ways[name]))
            for section, name, percents in _FREQUENCIES
        )

    @cached_property
    def elsewhere(self) -> tuple[tuple[str, ...], ...]:
        """Section of each subject of other wards' notes, and the three ways of writing the subject."""
        return tuple(map(tuple, _lines(self.ward_ways)))


def _lines(table: str) -> list[list[str]]:
    """Return the lines of a table, each split into its parts."""
    return [[part.strip() for part in line.split(" / ")] for line in table.strip().splitlines()]

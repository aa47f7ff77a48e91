"""Demo data with long texts: invented discharge letters in sections, with the findings of the demo notes.

The letters describe no real patient. A letter has six or seven of seven sections and 300 to 1,500 words. Hospitals
differ in wording, in the order of sections, in the sections that they leave out, and in how much they write about each
finding. The public texts are letters from other wards, with the same headings in another order, other complaints, and
often one of the same conditions.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from common.domain import UNLABELLED, Record
from common.rng import experiment
from common.sections import assemble_sections
from server.domain import Example, Task, Wording
from server.tasks.grammar import load_grammar, load_words

_WORDS = load_words("letters")
_ENGLISH = load_grammar("english")

HEADINGS: Mapping[str, str] = _WORDS["headings"]
"""The headings, each with its public description."""
TASK = Task(
    name="demo_letters",
    kind="discharge letter",
    labels=dict(HEADINGS),
    wording=Wording(writer="a doctor on a ward", label="section"),
    labels_per_text=len(HEADINGS),
    sectioned=True,
)

_OF_FINDINGS = dict(zip("HBETP", list(HEADINGS)[1:6], strict=True))
_ORDERS = ("RHBEITC", "RBHEITC", "RITHBEC", "RTCHEBI")  # three hospitals' orders, by first letters, and other wards'
_LETTERS = dict(zip("RHBEITC", HEADINGS, strict=True))
_LEFT_OUT = ("B", "C", "I", "R")  # a section that a hospital leaves out of every third letter
_MENTIONED = (0.65, 0.75, 0.9, 0.75)  # share of the absent findings that a hospital mentions
_SENTENCES = (0.9, 1.6, 2.5, 1.6)  # further sentences on each finding, on average


def private_letters(hospital: int, count: int, experiment_seed: int) -> list[Record]:
    """Return `count` letters from one hospital; hospitals are numbered from 0."""
    rng = experiment(experiment_seed, "private letters", hospital)
    return [_letter(rng, hospital % 3) for _ in range(count)]


def held_out_letters(count: int, experiment_seed: int) -> list[Record]:
    """Return `count` letters for testing, each in the style of one of three hospitals, drawn at random."""
    rng = experiment(experiment_seed, "held-out letters")
    return [_letter(rng, int(rng.integers(3))) for _ in range(count)]


@lru_cache(maxsize=2)  # a run reads them several times
def public_sections(count: int, experiment_seed: int) -> tuple[Example, ...]:
    """Return the sections of `count` letters from other wards, each section with its heading as the topic."""
    rng = experiment(experiment_seed, "public letters")
    letters = (_parts(rng, 3) for _ in range(count))
    return tuple(Example(text=body, topic=heading, section=True) for letter in letters for heading, body in letter)


def _letter(rng: np.random.Generator, hospital: int) -> Record:
    text, _ = assemble_sections(_parts(rng, hospital))
    return Record(text, UNLABELLED)


def _parts(rng: np.random.Generator, hospital: int) -> list[tuple[str, str]]:
    """Return the sections of a letter as (heading, text) pairs, in the hospital's order."""
    elsewhere = hospital == len(_ORDERS) - 1
    column = int(rng.integers(len(_ENGLISH.labels) + elsewhere))  # the last one: none of the four conditions
    complaint = str(rng.choice(np.array(_ENGLISH.ward_complaints))) if elsewhere else _ENGLISH.complaint
    written: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    for place in rng.permutation(len(_ENGLISH.findings)):
        section, percents, ways = _ENGLISH.findings[place]
        heading, present = _OF_FINDINGS[section], rng.random() < percents[column] / 100
        if present or rng.random() < _MENTIONED[hospital]:
            phrase = ways[2][0 if present else 1]
            written[heading] += _sentences(rng, heading, phrase, hospital)
    if elsewhere:
        for section, *ways in _ENGLISH.elsewhere:
            if rng.random() < 1 / 3:
                heading = _OF_FINDINGS[section]
                written[heading] += _sentences(rng, heading, ways[2], hospital)
    written["Reason for admission"] = [
        _filled(rng, _WORDS["reason"], complaint),
        *_some(rng, _WORDS["arrival"], hospital),
    ]
    written["Recommendations"] = _some(rng, _WORDS["course"], hospital)
    for heading, sentences in written.items():
        if not sentences:
            written[heading] = [f"Nothing else was noted under {heading.lower()} during {int(rng.integers(2, 9))} days"]
    order = _ORDERS[hospital]
    if rng.random() < 1 / 3:
        order = order.replace(_LEFT_OUT[hospital], "")
    if rng.random() < 1 / 5:  # two neighbours change places
        at = int(rng.integers(1, len(order) - 1))
        order = order[:at] + order[at + 1] + order[at] + order[at + 2 :]
    return [(_LETTERS[letter], ". ".join(written[_LETTERS[letter]]) + ".") for letter in order]


def _sentences(rng: np.random.Generator, heading: str, phrase: str, hospital: int) -> list[str]:
    lead = _WORDS["leads"][heading][hospital if hospital < 3 else int(rng.integers(3))].format(phrase)
    number = int(_SENTENCES[hospital] + rng.random())
    return [lead, *(_filled(rng, (_WORDS["more"][heading][place],)) for place in rng.permutation(3)[:number])]


def _some(rng: np.random.Generator, ways: Sequence[str], hospital: int) -> list[str]:
    """Return some of these sentences in random order; a hospital that writes more uses more of them."""
    number = max(1, round(_MENTIONED[hospital] * len(ways)))
    return [_filled(rng, (ways[place],)) for place in rng.permutation(len(ways))[:number]]


def _filled(rng: np.random.Generator, ways: Sequence[str], complaint: str = "") -> str:
    way = ways[int(rng.integers(len(ways)))]
    return way.format(n=int(rng.integers(2, 13)), age=int(rng.integers(28, 94)), complaint=complaint)

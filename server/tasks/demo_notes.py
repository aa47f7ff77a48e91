"""The demo corpus: invented emergency notes on breathlessness, by a stochastic grammar. They describe no real patient.

Four diagnoses share all their findings and differ in how often each occurs, so no word alone gives one away. Hospitals
differ in style: in words (plain, clipped, formal), in layout (prose, one line, headed blocks) and in order. The public
text never shows these diagnoses in the way that a hospital writes them: it consists of other wards' notes, in every
style, and of textbooks, leaflets and pocket cards on the four conditions. The frequencies were chosen to make the task
learnable and not trivial; they are not a medical reference.

Each language has its own words (`grammar_english.py` and so on); all else is the same in every language.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from common.domain import Record
from common.rng import experiment
from server.domain import Example
from server.spans import Marked, read
from server.tasks.grammar import SECTIONS, Grammar
from server.tasks.grammar_english import ENGLISH
from server.tasks.grammar_french import FRENCH
from server.tasks.grammar_german import GERMAN

GRAMMARS = {"english": ENGLISH, "german": GERMAN, "french": FRENCH}
"""Grammar of each language."""
SPANS = {
    "finding": "what a patient has or had: a complaint, a sign, a result or an earlier illness",
    "absence": "what a patient does not have, or was found to be normal, or is not given",
    "measurement": "a measured value, with its name",
    "treatment": "a medicine or another measure that a patient is given",
}
"""Types of spans in the notes, with their descriptions."""
TASK = ENGLISH.task
LABELS = ENGLISH.labels

_MOST_FINDINGS = {"H": 5, "B": 2, "E": 3, "T": 2, "P": 2}  # maximum number of findings in each section of a note
_SIZES = (0.4, 0.4, 0.15, 0.05)  # shares of patients with one to four diagnoses, where they may have several
_TOGETHER = (
    (0, 1, 6, 1),
    (1, 0, 2, 6),
    (6, 2, 0, 1),
    (1, 6, 1, 0),
)  # relative chance of a further diagnosis, by the last
_ON_CONDITIONS = 0.12  # share of the public texts that are on the four conditions
_BESIDES = 0.6  # share of other wards' patients who also have one of the four conditions
_ALLOWED_ABSENT = 0.3  # share of absent findings that are mentioned
_COMMON, _RARE = 45, 8  # frequencies in percent that public texts call usual and unusual


def private_notes(
    hospital: int, count: int, experiment_seed: int, language: str = "english", diagnoses: int = 1
) -> list[Record]:
    """Write `count` notes of one hospital, in its style, with all four diagnoses about equally often.

    Args:
        hospital: Number from 0; the first three differ in both wording and layout, the first eighteen in some way.
        count: Number of notes.
        experiment_seed: Seed. The notes of each hospital and the test notes are independent samples.
        language: Name of the grammar.
        diagnoses: Largest number of diagnoses of a patient. Above 1, pneumonia often comes with COPD, and heart failure
            with an embolism; a finding is then as frequent as under the patient's diagnosis that has it most often.
    """
    rng = experiment(experiment_seed, "private notes", hospital)
    notes = (_marked_record(rng, _style(hospital), GRAMMARS[language], diagnoses) for _ in range(count))
    return [_record(note, labels, diagnoses) for note, labels in notes]


def test_notes(
    count: int,
    experiment_seed: int,
    hospitals: int = 3,  # noqa: PT028 — no test
    language: str = "english",  # noqa: PT028
    diagnoses: int = 1,  # noqa: PT028
) -> list[Record]:
    """Write `count` notes for testing, each in the style of one of the first `hospitals` hospitals, drawn at random."""
    notes = _test_notes(count, experiment_seed, hospitals, language, diagnoses)
    return [_record(note, labels, diagnoses) for note, labels in notes]


def test_spans(
    count: int,
    experiment_seed: int,
    language: str = "english",  # noqa: PT028 — no test
    diagnoses: int = 1,  # noqa: PT028
) -> list[Example]:
    """Return the notes of `test_notes` with their spans."""
    return [note for note, _ in _test_notes(count, experiment_seed, 3, language, diagnoses)]


def _test_notes(
    count: int, experiment_seed: int, hospitals: int, language: str, diagnoses: int
) -> Iterator[tuple[Example, list[str]]]:
    rng = experiment(experiment_seed, "test notes")
    for _ in range(count):
        yield _marked_record(rng, _style(int(rng.integers(hospitals))), GRAMMARS[language], diagnoses)


def public_text(count: int, experiment_seed: int, language: str = "english") -> list[str]:
    """Return the texts of `public_examples`, without their topics."""
    return [example.text for example in public_examples(count, experiment_seed, language)]


def public_examples(count: int, experiment_seed: int, language: str = "english") -> list[Example]:
    """Write `count` public texts: notes of other wards in every style, most on admissions, some on conditions."""
    return list(_public_examples(count, experiment_seed, language))


@lru_cache(maxsize=2)  # a run reads them several times: for its models, its metrics and its comparison
def _public_examples(count: int, experiment_seed: int, language: str) -> tuple[Example, ...]:
    rng = experiment(experiment_seed, "public text")
    grammar = GRAMMARS[language]
    return tuple(
        _about(rng, grammar) if rng.random() < _ON_CONDITIONS else _elsewhere(rng, grammar) for _ in range(count)
    )


# pytest would collect functions of these names wherever they are imported.
test_notes.__test__ = test_spans.__test__ = False  # type: ignore[attr-defined]


def _style(hospital: int) -> tuple[int, int, bool]:
    """Return wording, layout, and whether the examination is first; no two of the first three share either."""
    return hospital % 3, (hospital + hospital // 3) % 3, hospital // 9 % 2 == 1


def _record(note: Example, labels: Sequence[str], diagnoses: int) -> Record:
    first, *more = labels
    return Record(note.text, first, more=tuple(more) if diagnoses > 1 else None)


def _marked_record(
    rng: np.random.Generator, style: tuple[int, int, bool], grammar: Grammar, diagnoses: int
) -> tuple[Example, list[str]]:
    """Write a note of a hospital, and return it with its spans and its labels."""
    columns = [int(rng.integers(len(grammar.labels)))]
    if diagnoses > 1:
        shares = np.array(_SIZES[:diagnoses])
        for _ in range(int(rng.choice(diagnoses, p=shares / shares.sum()))):
            chances = np.where(np.isin(range(len(_TOGETHER)), columns), 0, _TOGETHER[columns[-1]])
            columns.append(int(rng.choice(len(chances), p=chances / chances.sum())))
    findings = _draw_findings(rng, columns, style[0], grammar)
    note = _note(rng, style, findings, grammar.complaint, grammar)
    return _read(note), [grammar.labels[column] for column in columns]


def _read(note: str, topic: str | None = None) -> Example:
    """Take the marks out of a note that the grammar wrote; return its text and spans."""
    marked = read(note, SPANS)
    assert isinstance(marked, Marked), "the grammar marks whole phrases"
    return Example(text=marked.text, topic=topic, spans=marked.spans)


def _mark(phrase: str, kind: str) -> str:
    return f"<{kind}>{phrase}</{kind}>"


def _kind(section: str, *, present: bool = True) -> str:
    """Return the type of a phrase's span."""
    if not present:
        return "absence"
    return "treatment" if section == "P" else "finding"


def _draw_findings(
    rng: np.random.Generator, columns: Sequence[int], wording: int, grammar: Grammar
) -> dict[str, list[str]]:
    """Return the present and absent findings by section, marked, in one wording; the columns give the frequencies."""
    findings: dict[str, list[str]] = {section: [] for section in SECTIONS}
    for place in rng.permutation(len(grammar.findings)):
        section, percents, ways = grammar.findings[place]
        present = rng.random() < max(percents[column] for column in columns) / 100
        if len(findings[section]) < _MOST_FINDINGS[section] + len(columns) - 1 and (
            present or rng.random() < _ALLOWED_ABSENT
        ):
            phrase = ways[wording][0 if present else 1]
            findings[section].append(_mark(phrase, _kind(section, present=present)))
    return findings


def _elsewhere(rng: np.random.Generator, grammar: Grammar) -> Example:
    """Write a note of another ward, in a random style. The patient may also have one of the four conditions."""
    style, labels = (int(rng.integers(3)), int(rng.integers(3)), bool(rng.integers(2))), len(grammar.labels)
    column = int(rng.integers(labels)) if rng.random() < _BESIDES else labels
    findings = _draw_findings(rng, [column], style[0], grammar)
    for section, phrases in findings.items():
        ward_phrases = [ways[style[0]] for at, *ways in grammar.elsewhere if at == section]
        ward_phrase = _mark(ward_phrases[int(rng.integers(len(ward_phrases)))], _kind(section))
        findings[section] = [ward_phrase, *phrases][: _MOST_FINDINGS[section]]
    complaint = str(rng.choice(grammar.ward_complaints))
    return _read(_note(rng, style, findings, complaint, grammar), complaint)


def _note(
    rng: np.random.Generator,
    style: tuple[int, int, bool],
    findings: dict[str, list[str]],
    complaint: str,
    grammar: Grammar,
) -> str:
    """Write one note: patient, measurements, and the sections in the style's wording, layout and order.

    Findings come with their marks, and measurements get theirs.
    """
    wording, layout, examined_first = style
    order = "EHBTP" if examined_first else SECTIONS
    age, woman, days = int(rng.integers(28, 94)), bool(rng.integers(2)), int(rng.integers(2, 9))
    rate, saturation = int(rng.integers(16, 34)), int(rng.integers(84, 98))
    pressure, heat = int(rng.integers(95, 170)), round(float(rng.normal(37.4, 0.7)), 1)
    opening = grammar.openings[wording][woman].format(age=age, complaint=complaint, days=days)
    measurements = grammar.measurements[wording].format(
        rate=rate, saturation=saturation, pressure=pressure, heat=str(heat).replace(".", grammar.decimal_sign)
    )
    parts = {section: list(phrases) for section, phrases in findings.items()}
    values = ", ".join(_mark(value, "measurement") for value in measurements.split(", "))
    parts["E"].insert(int(rng.integers(len(parts["E"]) + 1)), values)
    sections = [section for section in order if parts[section]]
    if layout == 0:
        return f"{opening}. " + " ".join(
            _sentence(rng, grammar.leads[section][wording], parts[section], grammar, woman=woman)
            for section in sections
        )
    heads = dict(zip(SECTIONS, grammar.heads[wording], strict=True))
    colon, separator = grammar.marks
    if layout == 1:
        return f"{opening}. " + " ".join(f"{heads[section]}{colon}{', '.join(parts[section])}." for section in sections)
    return f"{opening}.\n" + "\n".join(
        f"{heads[section].upper()}{colon}{separator.join(parts[section])}." for section in sections
    )


def _sentence(
    rng: np.random.Generator, leads: tuple[str, str], phrases: list[str], grammar: Grammar, *, woman: bool
) -> str:
    """Write one section as running text."""
    joined = phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])}{grammar.conjunction}{phrases[-1]}"
    pronoun, noun = grammar.subjects[woman]
    lead = leads[int(rng.integers(2))].format(She=pronoun, she=pronoun.lower(), Patient=noun)
    return f"{lead}{joined}."


def _about(rng: np.random.Generator, grammar: Grammar) -> Example:
    """Write some sentences on one of the four conditions, as in a textbook, a patient's leaflet or a pocket card."""
    column, wording = int(rng.integers(len(grammar.labels))), int(rng.integers(3))
    condition = grammar.conditions[column]
    sentences = []
    for place in rng.permutation(len(grammar.findings))[: len(grammar.findings) // 2]:
        section, percents, ways = grammar.findings[place]
        percent, finding = percents[column], _mark(ways[wording][0], _kind(section))
        if percent >= _COMMON:
            sentences.append(grammar.usual[wording][int(rng.integers(3))].format(finding, condition))
        elif percent <= _RARE and rng.random() < 1 / 3:
            sentences.append(grammar.unusual[wording].format(finding, condition))
    text = " ".join(f"{_capitalised(sentence)}." for sentence in sentences[:6])
    return _read(text, grammar.labels[column])


def _capitalised(sentence: str) -> str:
    """Return the sentence with a capital first letter, which may stand behind a mark."""
    first = sentence.index(">") + 1 if sentence[0] == "<" else 0
    return f"{sentence[:first]}{sentence[first].upper()}{sentence[first + 1 :]}"

"""Demo data with long texts: invented discharge letters in sections, with the findings of the demo notes.

The letters describe no real patient. A letter has six or seven of seven sections and 300 to 1,500 words. Hospitals
differ in wording, in the order of sections, in the sections that they leave out, and in how much they write about each
finding. The public texts are letters from other wards, with the same headings in another order, other complaints, and
often one of the same conditions.
"""

from functools import lru_cache

import numpy as np

from common.domain import UNLABELLED, Record
from common.rng import experiment
from common.sections import assembled
from server.domain import Example, Task, Wording
from server.tasks.grammar_english import ENGLISH

HEADINGS = {
    "Reason for admission": "why the patient came: by ambulance, sent by the family doctor, arrival, first doctor, bed",
    "History": "what the patient reported: the history, how it began before the admission, worse at night, rest helped",
    "Previous illnesses": "known from before: records mention, earlier letters list, visits, years, reviewed in clinic",
    "Examination": "what the ward doctor found on examination: looked at and listened to, round, nurses charted",
    "Investigations": "what tests showed: results, report, laboratory repeated the sample, film read by two doctors",
    "Treatment": "what the patient was given on the ward: treatment, dose, plan, pharmacist, well tolerated",
    "Recommendations": "please see the patient: tablets go on for weeks, blood test, outpatient clinic, physiotherapy",
}
"""The headings, each with its public description."""
TASK = Task(
    name="demo_letters",
    kind="discharge letter",
    labels=HEADINGS,
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
_MORE = {
    "History": (
        "This began about {n} days before the admission and had become worse by the evening before",
        "It was worse at night and after climbing {n} steps, and rest helped only a little",
        "Asked about it again, the patient described it in the same way as {n} days earlier",
        "The family had noticed the same for {n} days and had called the practice about it",
    ),
    "Previous illnesses": (
        "This has been known for {n} years and was last reviewed in the clinic in spring",
        "The practice sent its notes of {n} visits, which say the same",
        "No new medicine had been started for it in the last {n} months",
    ),
    "Examination": (
        "This was found again by the doctor on the round {n} hours later",
        "A second examination after {n} hours of rest showed the same",
        "The nurses charted it {n} times on the first day, without much change",
    ),
    "Investigations": (
        "The laboratory repeated the sample after {n} hours with a similar result",
        "An earlier result of {n} months ago was there for comparison and was different",
        "The film was read by two doctors, {n} hours apart, who agreed",
    ),
    "Treatment": (
        "It was started {n} hours after the arrival and was well tolerated",
        "The dose was changed once, after {n} days, and then left as it was",
        "The ward pharmacist checked it on day {n} and had no objection",
    ),
}
_COURSE = (
    "Please see the patient within {n} days and look at the wound of the drip",
    "We suggest a blood test in {n} days, with kidney values",
    "All tablets should go on for {n} weeks unless you decide otherwise",
    "A visit to the outpatient clinic is booked in {n} weeks",
    "Should the complaint come back within {n} days, please send the patient in at once",
    "Physiotherapy at home {n} times a week has been ordered",
)
_REASON = (
    "The patient of {age} years was brought in by ambulance because of {complaint} for {n} days",
    "A neighbour had called for help after finding the patient of {age} years with {complaint}",
    "The family doctor sent the patient of {age} years with {complaint}, {n} days after the first visit",
    "The patient of {age} years walked into the emergency department with {complaint} for {n} days",
)
_ARRIVAL = (
    "On arrival the patient was awake, could speak in whole sentences and was taken to bay {n}",
    "The first doctor saw the patient after {n} minutes and asked for a bed on the ward",
    "A bed was found {n} hours later, and the patient was moved there in a chair",
)
_LEADS = {
    "History": ("The patient reported that there was {0}", "The history is of {0}", "There had been {0}"),
    "Previous illnesses": ("The records mention {0}", "Known from before: {0}", "Earlier letters list {0}"),
    "Examination": ("On examination there was {0}", "The ward doctor found {0}", "Looked at and listened to: {0}"),
    "Investigations": ("The tests showed {0}", "Results included {0}", "The report states {0}"),
    "Treatment": ("The patient was given {0}", "Treatment comprised {0}", "On the ward the plan was {0}"),
}


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
    return tuple(Example(text=body, topic=heading) for letter in letters for heading, body in letter)


def _letter(rng: np.random.Generator, hospital: int) -> Record:
    text, _ = assembled(_parts(rng, hospital))
    return Record(text, UNLABELLED)


def _parts(rng: np.random.Generator, hospital: int) -> list[tuple[str, str]]:
    """Return the sections of a letter as (heading, text) pairs, in the hospital's order."""
    elsewhere = hospital == len(_ORDERS) - 1
    column = int(rng.integers(len(ENGLISH.labels) + elsewhere))  # the last one: none of the four conditions
    complaint = str(rng.choice(np.array(ENGLISH.ward_complaints))) if elsewhere else ENGLISH.complaint
    written: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    for place in rng.permutation(len(ENGLISH.findings)):
        section, percents, ways = ENGLISH.findings[place]
        heading, present = _OF_FINDINGS[section], rng.random() < percents[column] / 100
        if present or rng.random() < _MENTIONED[hospital]:
            phrase = ways[2][0 if present else 1]
            written[heading] += _sentences(rng, heading, phrase, hospital)
    if elsewhere:
        for section, *ways in ENGLISH.elsewhere:
            if rng.random() < 1 / 3:
                heading = _OF_FINDINGS[section]
                written[heading] += _sentences(rng, heading, ways[2], hospital)
    written["Reason for admission"] = [_filled(rng, _REASON, complaint), *_some(rng, _ARRIVAL, hospital)]
    written["Recommendations"] = _some(rng, _COURSE, hospital)
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
    lead = _LEADS[heading][hospital if hospital < 3 else int(rng.integers(3))].format(phrase)
    number = int(_SENTENCES[hospital] + rng.random())
    return [lead, *(_filled(rng, (_MORE[heading][place],)) for place in rng.permutation(3)[:number])]


def _some(rng: np.random.Generator, ways: tuple[str, ...], hospital: int) -> list[str]:
    """Return some of these sentences in random order; a hospital that writes more uses more of them."""
    number = max(1, round(_MENTIONED[hospital] * len(ways)))
    return [_filled(rng, (ways[place],)) for place in rng.permutation(len(ways))[:number]]


def _filled(rng: np.random.Generator, ways: tuple[str, ...], complaint: str = "") -> str:
    way = ways[int(rng.integers(len(ways)))]
    return way.format(n=int(rng.integers(2, 13)), age=int(rng.integers(28, 94)), complaint=complaint)

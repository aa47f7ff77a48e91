"""The demo corpus: invented emergency notes on breathlessness, by a stochastic grammar. They describe no real patient.

Four diagnoses share all their findings and differ in how often each occurs, so no word alone gives one away. Hospitals
differ in style: in words (plain, clipped, formal), in layout (prose, one line, headed blocks) and in order. The public
text never shows these diagnoses in the way that a hospital writes them: it consists of other wards' notes, in every
style, and of textbooks, leaflets and pocket cards on the four conditions. The frequencies were chosen to make the task
learnable and not trivial; they are not a medical reference.
"""

# ruff: noqa: E501 — a finding is one line of the table
from functools import lru_cache

import numpy as np

from common.domain import Record
from common.rng import experiment
from server.domain import Example, Task, Wording

LABELS = ("pneumonia", "heart failure", "COPD exacerbation", "pulmonary embolism")

TASK = Task(
    name="demo_notes",
    kind="emergency-department note",
    labels={
        "pneumonia": "infection of the lung: fever, green sputum, focal crackles, consolidation, antibiotics",
        "heart failure": "failing pump, too much fluid: orthopnoea, swollen ankles, big heart, furosemide",
        "COPD exacerbation": "flare of chronic airways disease: wheeze, smoker, inhaler, hyperinflated, nebulisers",
        "pulmonary embolism": "clot in the lung: sudden onset, pleuritic pain, swollen calf, D-dimer, heparin",
    },
    wording=Wording(writer="a doctor on duty", label="diagnosis"),
    attributes=("a younger adult", "an older adult", "a patient at night", "a patient sent by the family doctor"),
)

# Section, frequency in percent by label and on other wards; then, in three ways of writing, present | absent.
_FINDINGS_TABLE = """
H / 88 11 26 15 15 / has had a fever and shivers | has had no fever / fever + | nil fever / fever | no fever
H / 76 12 67 7 8 / is bringing up green sputum | is bringing up no sputum / sputum green | nil sputum / purulent sputum | no sputum
H / 24 31 28 28 10 / has a dry cough | has no cough / dry cough | nil cough / dry cough | no cough
H / 10 84 23 8 6 / needs extra pillows to sleep, orthopnoea | sleeps flat without orthopnoea / orthopnoea + | nil orthopnoea / orthopnoea | no orthopnoea
H / 8 81 15 17 12 / has swollen ankles | has no ankle swelling / ankle swelling + | nil ankle swelling / ankle oedema | no ankle oedema
H / 5 13 6 74 12 / has one sore swollen calf | has no calf pain / unilat calf swelling | calves soft / a swollen calf | no calf swelling
H / 45 7 9 76 8 / has pleuritic pain on breathing in | has no chest pain / pleuritic CP | nil CP / pleuritic chest pain | no chest pain
H / 14 22 83 9 6 / hears a wheeze at night | hears no wheeze / wheezy at home | nil wheeze at home / audible wheeze | no audible wheeze
H / 14 19 14 80 8 / says it had a sudden onset | says it had a gradual onset / sudden onset | gradual onset / sudden onset | gradual onset
H / 14 5 11 42 5 / coughed up a little blood | coughed up no blood / haemoptysis x1 | nil haemoptysis / haemoptysis | no haemoptysis
H / 11 9 83 6 6 / is using the inhaler more and more | does not use an inhaler / inhaler ++ | nil inhaler / increased inhaler use | no inhaler use
H / 5 72 10 7 5 / has put on weight in a week | has kept a steady weight / weight up | weight stable / rapid weight gain | stable weight
B / 30 34 89 25 25 / is a smoker | is no smoker / smoker | non-smoker / heavy smoker | lifelong non-smoker
B / 14 70 23 12 15 / had a heart attack some years ago | had no heart trouble / prev MI | nil cardiac hx / previous heart attack | no cardiac history
B / 10 7 7 69 20 / had surgery and lay in bed lately | had no surgery lately / recent surgery | nil surgery / recent surgery | no recent surgery
B / 21 14 82 14 10 / has COPD inhalers and bad airways | has had no airways trouble / known airways disease | nil airways disease / chronic airways disease | no airways disease
B / 11 8 11 42 18 / is under treatment for cancer | has never had cancer / active cancer | nil cancer / active cancer | no cancer
B / 23 43 23 17 25 / has diabetes | has no diabetes / T2DM | nil DM / diabetes mellitus | no diabetes
E / 83 12 16 14 5 / crackles on one side only | the same breath sounds on both sides / unilat crackles | AE equal / focal crackles | symmetrical air entry
E / 21 83 16 9 5 / wet crackles at both bases | clear bases / bibasal crackles | bases clear / bibasal crackles | clear lung bases
E / 14 25 87 7 6 / wheeze all over the chest | no wheeze on listening / diffuse wheeze | nil wheeze o/e / diffuse expiratory wheeze | no expiratory wheeze
E / 7 74 14 35 5 / raised neck veins | flat neck veins / JVP raised | JVP normal / raised neck veins | flat neck veins
E / 53 44 44 77 20 / a racing pulse | a steady pulse / tachycardic | HR normal / tachycardia | normal heart rate
T / 84 10 12 10 3 / consolidation on the chest film | no consolidation on the chest film / CXR consolidation | CXR no consolidation / consolidation | no consolidation
T / 8 84 11 8 3 / a big heart on the film | a normal heart on the film / CXR big heart | CXR normal heart / an enlarged heart | normal heart size
T / 9 7 78 7 3 / hyperinflated lungs on the film | lungs of normal size on the film / CXR hyperinflated | CXR normal volumes / hyperinflated lungs | normal lung volumes
T / 81 15 35 24 20 / a high CRP | a normal CRP / CRP up | CRP normal / raised CRP | normal CRP
T / 9 82 16 27 4 / a high BNP | a normal BNP / BNP up | BNP normal / raised BNP | normal BNP
T / 25 22 14 85 5 / a high D-dimer | a normal D-dimer / D-dimer up | D-dimer neg / raised D-dimer | normal D-dimer
T / 9 15 67 7 3 / carbon dioxide retained | carbon dioxide normal / pCO2 up | pCO2 normal / retained carbon dioxide | normal carbon dioxide
P / 91 11 54 9 18 / antibiotics into the drip | no antibiotics for now / IV antibiotics | hold antibiotics / intravenous antibiotics | antibiotics withheld
P / 6 91 15 8 5 / furosemide to pass more water | no furosemide for now / furosemide IV | nil furosemide / intravenous furosemide | no diuretic
P / 12 12 91 8 5 / nebulisers and prednisolone | no nebulisers needed / nebs + prednisolone | nil nebs / nebulisers and prednisolone | no nebulisers
P / 6 15 8 92 20 / heparin at full dose | no heparin for now / LMWH heparin tx dose | nil heparin / therapeutic heparin | no heparin
P / 50 50 50 50 12 / oxygen through the nose | no oxygen needed / O2 via NC | on RA / supplemental oxygen | no oxygen requirement
"""
_FINDINGS = tuple(
    (section, tuple(map(int, percents.split())), tuple(way.split(" | ") for way in ways))
    for section, percents, *ways in (line.split(" / ") for line in _FINDINGS_TABLE.strip().splitlines())
)

# What other wards write about: section, then the three ways.
_ELSEWHERE = tuple(
    tuple(part.strip() for part in line.split(" / "))
    for line in """
H / has had tummy pain since yesterday / abdo pain 1 day / abdominal pain
H / fell on the stairs and hurt a hip / mech fall, hip pain / a fall with hip pain
H / has been sick several times / vomiting x4 / repeated vomiting
H / passes water more often and it stings / dysuria, freq / dysuria
H / has had a pounding head all day / headache ++ / severe headache
H / noticed an itchy rash after lunch / itchy rash / an urticarial rash
H / blacked out for a moment / LOC brief / transient loss of consciousness
H / cut a finger while cooking / lac finger / a finger laceration
B / takes tablets for blood pressure / HTN / hypertension
B / had the appendix out as a child / prev appx / a previous appendicectomy
B / has thin bones / osteoporosis / osteoporosis
B / gets migraines / migraine / migraine
E / belly tender low on the right / RIF tender / right iliac fossa tenderness
E / leg short and turned out / leg short, ext rot / a shortened leg
E / neck moves freely / nil neck stiffness / a supple neck
E / wound clean and shallow / wound clean / a clean superficial wound
E / patient looks dry / dry ++ / dehydration
T / hip broken on the film / XR NOF # / a femoral neck fracture
T / urine dip positive / dip +ve / a positive urine dipstick
T / head scan normal / CTH nad / a normal head scan
T / kidney bloods a bit off / AKI 1 / impaired renal function
P / fluids through a drip / IVF / intravenous fluids
P / surgeons to see / ref surg / surgical review
P / stitched and sent home / sutured, d/c / wound closure and discharge
P / painkillers and rest / analgesia / analgesia
P / theatre in the morning / list for theatre / operative fixation
""".strip().splitlines()
)

_SECTIONS = "HBETP"
_MOST_FINDINGS = {"H": 5, "B": 2, "E": 3, "T": 2, "P": 2}  # maximum number of findings in each section of a note
_ON_CONDITIONS = 0.12  # share of the public texts that are on the four conditions
_BESIDES = 0.6  # share of other wards' patients who also have one of the four conditions
_ALLOWED_ABSENT = 0.3  # share of absent findings that are mentioned
_HEADS = (
    ("History", "Background", "On examination", "Tests", "Plan"),
    ("PC", "PMH", "O/E", "Ix", "Rx"),
    ("Presenting complaint", "Medical history", "Examination", "Investigations", "Management"),
)
_CONDITIONS = (
    "pneumonia",
    "heart failure",
    "a COPD exacerbation",
    "pulmonary embolism",
)
_COMMON, _RARE = 45, 8  # frequencies in percent that public texts call usual and unusual
_WORDINGS = (
    ("many a person with {1} {0}", "in {1} one may hear or see this: {0}", "{0}, and it was {1}"),
    ("{1}: {0}", "{0} = ?{1}", "typical of {1}: {0}"),
    ("expect {0} in {1}", "look for {0} when you suspect {1}", "with {0}, think of {1}"),
)
_UNUSUAL = ("hardly anyone with {1} {0}", "not {1} if {0}", "with {0}, think again before you call it {1}")


def private_notes(hospital: int, count: int, experiment_seed: int) -> list[Record]:
    """Write `count` notes of one hospital, in its style, with all four diagnoses about equally often.

    Args:
        hospital: Number from 0; the first three differ in both wording and layout, the first eighteen in some way.
        count: Number of notes.
        experiment_seed: Seed. The notes of each hospital and the test notes are independent samples.
    """
    rng = experiment(experiment_seed, "private notes", hospital)
    return [_record(rng, _style(hospital)) for _ in range(count)]


def test_notes(count: int, experiment_seed: int, hospitals: int = 3) -> list[Record]:  # noqa: PT028 — no test
    """Write `count` notes for testing, each in the style of one of the first `hospitals` hospitals, drawn at random."""
    rng = experiment(experiment_seed, "test notes")
    return [_record(rng, _style(int(rng.integers(hospitals)))) for _ in range(count)]


def public_text(count: int, experiment_seed: int) -> list[str]:
    """Return the texts of `public_examples`, without their topics."""
    return [example.text for example in public_examples(count, experiment_seed)]


def public_examples(count: int, experiment_seed: int) -> list[Example]:
    """Write `count` public texts: notes of other wards in every style, most on admissions, some on conditions."""
    return list(_public_examples(count, experiment_seed))


@lru_cache(maxsize=2)  # a run reads them several times: for its models, its metrics and its comparison
def _public_examples(count: int, experiment_seed: int) -> tuple[Example, ...]:
    rng = experiment(experiment_seed, "public text")
    return tuple(_about(rng) if rng.random() < _ON_CONDITIONS else _elsewhere(rng) for _ in range(count))


# pytest would collect a function of this name wherever it is imported.
test_notes.__test__ = False  # type: ignore[attr-defined]


def _style(hospital: int) -> tuple[int, int, bool]:
    """Return wording, layout, and whether the examination is first; no two of the first three share either."""
    return hospital % 3, (hospital + hospital // 3) % 3, hospital // 9 % 2 == 1


def _record(rng: np.random.Generator, style: tuple[int, int, bool]) -> Record:
    label = int(rng.integers(len(LABELS)))
    return Record(_note(rng, style, _draw_findings(rng, label, style[0]), "breathlessness"), LABELS[label])


def _draw_findings(rng: np.random.Generator, column: int, wording: int) -> dict[str, list[str]]:
    """Return the present and absent findings by section, in one wording; the column gives the frequencies."""
    findings: dict[str, list[str]] = {section: [] for section in _SECTIONS}
    for place in rng.permutation(len(_FINDINGS)):
        section, percents, ways = _FINDINGS[place]
        present = rng.random() < percents[column] / 100
        if len(findings[section]) < _MOST_FINDINGS[section] and (present or rng.random() < _ALLOWED_ABSENT):
            findings[section].append(ways[wording][0 if present else 1])
    return findings


def _elsewhere(rng: np.random.Generator) -> Example:
    """Write a note of another ward, in a random style. The patient may also have one of the four conditions."""
    style = (int(rng.integers(3)), int(rng.integers(3)), bool(rng.integers(2)))
    findings = _draw_findings(rng, int(rng.integers(len(LABELS))) if rng.random() < _BESIDES else len(LABELS), style[0])
    for section, phrases in findings.items():
        ward_phrases = [ways[style[0]] for at, *ways in _ELSEWHERE if at == section]
        findings[section] = [ward_phrases[int(rng.integers(len(ward_phrases)))], *phrases][: _MOST_FINDINGS[section]]
    complaint = str(rng.choice(("a fall", "stomach pain", "feeling unwell", "a rash", "headache")))
    return Example(text=_note(rng, style, findings, complaint), topic=complaint)


def _note(
    rng: np.random.Generator, style: tuple[int, int, bool], findings: dict[str, list[str]], complaint: str
) -> str:
    """Write one note: patient, measurements, and the sections in the style's wording, layout and order."""
    wording, layout, examined_first = style
    order = "EHBTP" if examined_first else _SECTIONS
    age, woman, days = int(rng.integers(28, 94)), bool(rng.integers(2)), int(rng.integers(2, 9))
    rate, saturation = int(rng.integers(16, 34)), int(rng.integers(84, 98))
    pressure, heat = int(rng.integers(95, 170)), round(float(rng.normal(37.4, 0.7)), 1)
    opening = (
        f"{'Lady' if woman else 'Man'} of {age}, here with {complaint} for {days} days",
        f"{age}{'F' if woman else 'M'}, {complaint} {days}/7",
        f"This {age}-year-old {'woman' if woman else 'man'} presents with {complaint} of {days} days' duration",
    )[wording]
    measurements = (
        f"oxygen level {saturation} percent, temperature {heat}",
        f"RR {rate}, sats {saturation}%, BP {pressure}, T {heat}",
        f"respiratory rate {rate}, saturation {saturation}%, temperature {heat}",
    )[wording]
    parts = {section: list(phrases) for section, phrases in findings.items()}
    parts["E"].insert(int(rng.integers(len(parts["E"]) + 1)), measurements)
    sections = [section for section in order if parts[section]]
    if layout == 0:
        return f"{opening}. " + " ".join(
            _sentence(rng, section, parts[section], wording, woman=woman) for section in sections
        )
    heads = dict(zip(_SECTIONS, _HEADS[wording], strict=True))
    if layout == 1:
        return f"{opening}. " + " ".join(f"{heads[section]}: {', '.join(parts[section])}." for section in sections)
    return f"{opening}.\n" + "\n".join(
        f"{heads[section].upper()}: {'; '.join(parts[section])}." for section in sections
    )


def _sentence(rng: np.random.Generator, section: str, phrases: list[str], wording: int, *, woman: bool) -> str:
    """Write one section as running text."""
    joined = phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"
    she = "She" if woman else "He"
    leads = {
        "H": ((f"{she} ", "The patient "), ("Hx: ", "c/o "), ("There is ", "The history includes ")),
        "B": ((f"{she} ", f"Before this {she.lower()} "), ("Bg ", "Known "), ("Background: ", "Of note, ")),
        "E": (("I found ", "On looking over: "), ("o/e ", "Exam "), ("Examination shows ", "Findings are ")),
        "T": (("Tests gave ", "We saw "), ("Bloods/films: ", "Ix "), ("Investigations show ", "Results: ")),
        "P": (("What we did: ", "For now: "), ("Tx ", "Plan "), ("Management: ", "Treatment comprises ")),
    }
    return leads[section][wording][int(rng.integers(2))] + joined + "."


def _about(rng: np.random.Generator) -> Example:
    """Write some sentences on one of the four conditions, as in a textbook, a patient's leaflet or a pocket card."""
    column, wording = int(rng.integers(len(LABELS))), int(rng.integers(3))
    condition = _CONDITIONS[column]
    sentences = []
    for place in rng.permutation(len(_FINDINGS))[: len(_FINDINGS) // 2]:
        _, percents, ways = _FINDINGS[place]
        percent, finding = percents[column], ways[wording][0]
        if percent >= _COMMON:
            sentences.append(_WORDINGS[wording][int(rng.integers(3))].format(finding, condition))
        elif percent <= _RARE and rng.random() < 1 / 3:
            sentences.append(_UNUSUAL[wording].format(finding, condition))
    text = " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences[:6])
    return Example(text=text, topic=LABELS[column])

"""The demo corpus: invented emergency notes on breathlessness, by a stochastic grammar. No patient is behind them.

Four diagnoses share all their findings and differ in how often each occurs, so no word alone gives one away. Hospitals
differ in how they write: in words (plain, clipped, formal), in layout (prose, one line, headed blocks) and in order.
The public text never shows these diagnoses the way a hospital writes them: it is other wards' notes, in every style,
and textbooks, leaflets and pocket cards on the four conditions. The frequencies were set for a task that is learnable and not trivial;
they are no medical reference.
"""

# ruff: noqa: E501 — a finding is one line of the table
import numpy as np

from common.domain import Record, Task
from common.rng import experiment

LABELS = ("pneumonia", "heart failure", "COPD exacerbation", "pulmonary embolism")

TASK = Task(
    name="demo_notes",
    kind="emergency-department note",
    labels={
        "pneumonia": "infection of the lung: fever, purulent sputum, consolidation, raised inflammatory markers",
        "heart failure": "failing pump, too much fluid: orthopnoea, peripheral oedema, raised natriuretic peptide",
        "COPD exacerbation": "flare of chronic lung disease: wheeze, tobacco use, hyperinflation, bronchodilators",
        "pulmonary embolism": "clot in the lung: abrupt onset, pleuritic pain, raised D-dimer, an anticoagulant",
    },
    attributes=("a younger adult", "an older adult", "a patient at night", "a patient sent by the family doctor"),
)

# Section, frequency in percent by label and on other wards; then, in three ways of writing, present | absent.
_FINDINGS = tuple(
    tuple(part.strip() for part in line.split(" / "))
    for line in """
H / 84 12 27 16 15 / has been hot and shivery | has had no temperature at home / temps + | nil temps / fever | no fever
H / 72 14 64 8 8 / is bringing up thick phlegm | is not bringing anything up / prod cough + | nil sputum / purulent sputum | no sputum
H / 24 31 28 28 10 / has a tickly cough | has no cough / dry cough | nil cough / non-productive cough | no cough
H / 11 80 23 9 6 / sleeps propped on pillows | can lie flat at night / orthopnoea + | nil orthopnoea / orthopnoea | no orthopnoea
H / 9 76 16 18 12 / has noticed puffy ankles | has normal ankles / ankle swelling + | nil ankle swelling / peripheral oedema | no peripheral oedema
H / 6 13 7 68 12 / has one sore swollen calf | has no calf pain / unilat calf swelling | calves SNT / a swollen calf on one side | no calf swelling
H / 43 8 10 72 8 / gets a stabbing pain on breathing in | has no chest pain / pleuritic CP | nil CP / pleuritic pain | no chest pain
H / 15 23 79 10 6 / sounds whistly to the family | has not been whistly / wheezy | nil wheeze at home / audible wheeze | no audible wheeze
H / 15 20 15 76 8 / was fine until it came on all at once | felt it creep up over days / sudden onset | gradual onset / abrupt onset | insidious onset
H / 14 6 11 38 5 / coughed up a little blood | has coughed up no blood / haemoptysis x1 | nil haemoptysis / haemoptysis | no haemoptysis
H / 12 10 78 7 6 / is using the blue inhaler more and more | does not use inhalers / salbutamol ++ | nil inhalers / increased reliever use | no reliever use
H / 6 66 11 8 5 / has put on weight in a week | has kept a steady weight / wt up | wt stable / rapid weight gain | stable weight
B / 32 35 86 27 25 / smokes or used to | never smoked / smoker | non-smoker / tobacco use | no tobacco use
B / 15 66 23 13 15 / had a heart attack some years ago | has had no heart trouble / prev MI | nil cardiac hx / ischaemic heart disease | no cardiac history
B / 11 8 8 63 20 / was laid up after an operation lately | has been up and about / recent surgery | mobile / recent immobilisation | no recent immobilisation
B / 22 15 78 15 10 / has bad lungs at the best of times | has had no lung trouble / known airways dis | nil resp hx / chronic lung disease | no chronic lung disease
B / 11 9 11 38 18 / is under treatment for a growth | has never had a growth / active ca | nil ca / active malignancy | no malignancy
B / 23 41 23 18 25 / has sugar trouble | has no sugar trouble / T2DM | nil DM / diabetes mellitus | no diabetes
E / 79 13 17 15 5 / crackling on one side only | both sides sound alike / unilat creps | AE equal / focal crackles | symmetrical air entry
E / 22 79 17 10 5 / wet sounds at both bases | dry bases / bibasal creps | bases clear / bibasal crackles | clear lung bases
E / 15 25 83 8 6 / tight whistling all over the chest | no whistling on listening / polyphonic wheeze | nil wheeze o/e / expiratory wheeze | no expiratory wheeze
E / 8 70 15 34 5 / neck veins standing out | neck veins flat / JVP up | JVP nad / raised jugular venous pressure | normal jugular venous pressure
E / 53 45 45 75 20 / racing pulse | steady pulse / tachy | HR nad / tachycardia | normal heart rate
T / 80 11 13 11 3 / a white patch on the chest film | no patch on the chest film / CXR cons | CXR nil focal / consolidation | no consolidation
T / 9 79 12 9 3 / a big heart on the film | a normal heart on the film / CXR cardiomegaly | CTR normal / an enlarged heart | normal heart size
T / 10 8 72 8 3 / lungs blown up on the film | lungs of normal size on the film / CXR hyperinflated | CXR vols normal / hyperinflation | normal lung volumes
T / 78 17 35 25 20 / inflammation bloods well up | inflammation bloods quiet / CRP WCC up | CRP flat / raised inflammatory markers | normal inflammatory markers
T / 10 78 17 27 4 / heart strain blood test up | heart strain blood test fine / BNP up | BNP nad / raised natriuretic peptide | normal natriuretic peptide
T / 26 23 16 81 5 / clot blood test up | clot blood test fine / D-dimer up | D-dimer neg / raised D-dimer | normal D-dimer
T / 10 15 62 8 3 / holding on to carbon dioxide | blowing off carbon dioxide well / pCO2 up | pCO2 nad / hypercapnia | no hypercapnia
P / 88 13 52 11 18 / antibiotics into the drip | no antibiotics for now / IV abx | hold abx / antibiotics | antibiotics withheld
P / 7 87 16 9 5 / water tablets doubled | water tablets as before / furosemide IV | nil diuretic / diuretics | no diuretic
P / 13 13 88 9 5 / nebulisers and a steroid course | no nebulisers needed / nebs + pred | nil nebs / bronchodilators and steroids | no bronchodilators
P / 7 16 9 89 20 / blood thinner at full dose | blood thinner not started / LMWH tx dose | nil anticoag / an anticoagulant | no anticoagulant
P / 50 50 50 50 12 / oxygen through the nose | managing on room air / O2 via NC | on RA / supplemental oxygen | no oxygen requirement
""".strip().splitlines()
)  # fmt: skip

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
_KEPT = {"H": 5, "B": 2, "E": 3, "T": 2, "P": 2}  # findings of a section that one note mentions
_ON_CONDITIONS = 0.12  # share of the public texts that are on the four conditions
_BESIDES = 0.6  # share of other wards' patients who have one of the four conditions beside what brought them
_ALLOWED_ABSENT = 0.3  # share of absent findings that are worth a mention
_HEADS = (
    ("History", "Background", "On examination", "Tests", "Plan"),
    ("PC", "PMH", "O/E", "Ix", "Rx"),
    ("Presenting complaint", "Medical history", "Examination", "Investigations", "Management"),
)
_CONDITIONS = (
    "pneumonia",
    "heart failure",
    "an exacerbation of chronic obstructive lung disease",
    "pulmonary embolism",
)
_COMMON, _RARE = 45, 8  # percent that public texts call usual and unusual
_USUAL = (
    ("many a person with {1} {0}", "in {1} one may hear or see this: {0}", "{0}, and it was {1}"),
    ("{1}: {0}", "{0} = ?{1}", "typical {1}, {0}"),
    ("expect {0} in {1}", "look for {0} when you suspect {1}", "with {0}, think of {1}"),
)
_UNUSUAL = ("hardly anyone with {1} {0}", "not {1} if {0}", "with {0}, think again before you call it {1}")


def private_notes(hospital: int, count: int, experiment_seed: int) -> list[Record]:
    """`count` notes of one hospital, in its own style, all four diagnoses about equally often.

    Args:
        hospital: From 0; the first three differ in wording and layout alike, and eighteen differ in some way.
        count: How many.
        experiment_seed: Hospitals of one seed are independent of each other and of the test notes.
    """
    rng = experiment(experiment_seed, "private notes", hospital)
    return [_record(rng, _style(hospital)) for _ in range(count)]


def test_notes(count: int, experiment_seed: int, hospitals: int = 3) -> list[Record]:  # noqa: PT028 — no test
    """`count` notes for testing, each in the style of one of the first `hospitals` hospitals, drawn at random."""
    rng = experiment(experiment_seed, "test notes")
    return [_record(rng, _style(int(rng.integers(hospitals)))) for _ in range(count)]


def public_text(count: int, experiment_seed: int) -> list[str]:
    """`count` public texts without labels: other wards' notes in every style, and some on the conditions."""
    rng = experiment(experiment_seed, "public text")
    return [_about(rng) if rng.random() < _ON_CONDITIONS else _elsewhere(rng) for _ in range(count)]


# pytest would collect a function of this name wherever it is imported.
test_notes.__test__ = False  # type: ignore[attr-defined]


def _style(hospital: int) -> tuple[int, int, bool]:
    """(wording, layout, whether the examination comes first): the first three share neither wording nor layout."""
    return hospital % 3, (hospital + hospital // 3) % 3, hospital // 9 % 2 == 1


def _record(rng: np.random.Generator, style: tuple[int, int, bool]) -> Record:
    label = int(rng.integers(len(LABELS)))
    return Record(_note(rng, style, _mentioned(rng, label, style[0]), "breathlessness"), LABELS[label])


def _mentioned(rng: np.random.Generator, column: int, wording: int) -> dict[str, list[str]]:
    """Section to findings, present or absent, in one wording. Which are present depends on the column."""
    found: dict[str, list[str]] = {section: [] for section in _SECTIONS}
    for place in rng.permutation(len(_FINDINGS)):
        section, percents, *ways = _FINDINGS[place]
        present = rng.random() < int(percents.split()[column]) / 100
        if len(found[section]) < _KEPT[section] and (present or rng.random() < _ALLOWED_ABSENT):
            found[section].append(ways[wording].split(" | ")[0 if present else 1])
    return found


def _elsewhere(rng: np.random.Generator) -> str:
    """A note of another ward, in a style drawn at random. Its patients may have one of the four conditions besides."""
    style = (int(rng.integers(3)), int(rng.integers(3)), bool(rng.integers(2)))
    found = _mentioned(rng, int(rng.integers(len(LABELS))) if rng.random() < _BESIDES else len(LABELS), style[0])
    for section, phrases in found.items():
        own = [ways[style[0]] for at, *ways in _ELSEWHERE if at == section]
        found[section] = [own[int(rng.integers(len(own)))], *phrases][: _KEPT[section]]
    return _note(rng, style, found, str(rng.choice(("a fall", "stomach pain", "feeling unwell", "a rash", "headache"))))


def _note(rng: np.random.Generator, style: tuple[int, int, bool], found: dict[str, list[str]], complaint: str) -> str:
    """One note: who, the measurements, then the sections in the style's wording, layout and order."""
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
    measured = (
        f"oxygen level {saturation} percent, temperature {heat}",
        f"RR {rate}, sats {saturation}%, BP {pressure}, T {heat}",
        f"respiratory rate {rate}, saturation {saturation}%, temperature {heat}",
    )[wording]
    parts = {section: list(phrases) for section, phrases in found.items()}
    parts["E"].insert(int(rng.integers(len(parts["E"]) + 1)), measured)
    kept = [section for section in order if parts[section]]
    if layout == 0:
        return f"{opening}. " + " ".join(
            _sentence(rng, section, parts[section], wording, woman=woman) for section in kept
        )
    heads = dict(zip(_SECTIONS, _HEADS[wording], strict=True))
    if layout == 1:
        return f"{opening}. " + " ".join(f"{heads[section]}: {', '.join(parts[section])}." for section in kept)
    return f"{opening}.\n" + "\n".join(f"{heads[section].upper()}: {'; '.join(parts[section])}." for section in kept)


def _sentence(rng: np.random.Generator, section: str, phrases: list[str], wording: int, *, woman: bool) -> str:
    """One section as running text."""
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


def _about(rng: np.random.Generator) -> str:
    """Some sentences on one of the four conditions, as a textbook, a patient's leaflet or a pocket card has them."""
    column, wording = int(rng.integers(len(LABELS))), int(rng.integers(3))
    condition = _CONDITIONS[column]
    sentences = []
    for place in rng.permutation(len(_FINDINGS))[: len(_FINDINGS) // 2]:
        _, percents, *ways = _FINDINGS[place]
        percent, finding = int(percents.split()[column]), ways[wording].split(" | ")[0]
        if percent >= _COMMON:
            sentences.append(_USUAL[wording][int(rng.integers(3))].format(finding, condition))
        elif percent <= _RARE and rng.random() < 1 / 3:
            sentences.append(_UNUSUAL[wording].format(finding, condition))
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences[:6])

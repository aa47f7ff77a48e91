"""Words for demo notes in English: emergency notes on breathlessness, which describe no real patient."""

# ruff: noqa: E501 — a finding is one line of the table
from server.domain import Task, Wording
from server.tasks.grammar import Grammar

ENGLISH = Grammar(
    task=Task(
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
    ),
    finding_ways="""
fever / has had a fever and shivers | has had no fever / fever + | nil fever / fever | no fever
green sputum / is bringing up green sputum | is bringing up no sputum / sputum green | nil sputum / purulent sputum | no sputum
dry cough / has a dry cough | has no cough / dry cough | nil cough / dry cough | no cough
orthopnoea / needs extra pillows to sleep, orthopnoea | sleeps flat without orthopnoea / orthopnoea + | nil orthopnoea / orthopnoea | no orthopnoea
swollen ankles / has swollen ankles | has no ankle swelling / ankle swelling + | nil ankle swelling / ankle oedema | no ankle oedema
swollen calf / has one sore swollen calf | has no calf pain / unilat calf swelling | calves soft / a swollen calf | no calf swelling
pleuritic pain / has pleuritic pain on breathing in | has no chest pain / pleuritic CP | nil CP / pleuritic chest pain | no chest pain
wheeze at home / hears a wheeze at night | hears no wheeze / wheezy at home | nil wheeze at home / audible wheeze | no audible wheeze
sudden onset / says it had a sudden onset | says it had a gradual onset / sudden onset | gradual onset / sudden onset | gradual onset
blood coughed up / coughed up a little blood | coughed up no blood / haemoptysis x1 | nil haemoptysis / haemoptysis | no haemoptysis
more inhaler / is using the inhaler more and more | does not use an inhaler / inhaler ++ | nil inhaler / increased inhaler use | no inhaler use
weight gain / has put on weight in a week | has kept a steady weight / weight up | weight stable / rapid weight gain | stable weight
smoker / is a smoker | is no smoker / smoker | non-smoker / heavy smoker | lifelong non-smoker
heart attack / had a heart attack some years ago | had no heart trouble / prev MI | nil cardiac hx / previous heart attack | no cardiac history
surgery / had surgery and lay in bed lately | had no surgery lately / recent surgery | nil surgery / recent surgery | no recent surgery
airways disease / has COPD inhalers and bad airways | has had no airways trouble / known airways disease | nil airways disease / chronic airways disease | no airways disease
cancer / is under treatment for cancer | has never had cancer / active cancer | nil cancer / active cancer | no cancer
diabetes / has diabetes | has no diabetes / T2DM | nil DM / diabetes mellitus | no diabetes
crackles on one side / crackles on one side only | the same breath sounds on both sides / unilat crackles | AE equal / focal crackles | symmetrical air entry
crackles at both bases / wet crackles at both bases | clear bases / bibasal crackles | bases clear / bibasal crackles | clear lung bases
wheeze heard / wheeze all over the chest | no wheeze on listening / diffuse wheeze | nil wheeze o/e / diffuse expiratory wheeze | no expiratory wheeze
neck veins / raised neck veins | flat neck veins / JVP raised | JVP normal / raised neck veins | flat neck veins
fast pulse / a racing pulse | a steady pulse / tachycardic | HR normal / tachycardia | normal heart rate
consolidation / consolidation on the chest film | no consolidation on the chest film / CXR consolidation | CXR no consolidation / consolidation | no consolidation
big heart / a big heart on the film | a normal heart on the film / CXR big heart | CXR normal heart / an enlarged heart | normal heart size
hyperinflation / hyperinflated lungs on the film | lungs of normal size on the film / CXR hyperinflated | CXR normal volumes / hyperinflated lungs | normal lung volumes
CRP / a high CRP | a normal CRP / CRP up | CRP normal / raised CRP | normal CRP
BNP / a high BNP | a normal BNP / BNP up | BNP normal / raised BNP | normal BNP
D-dimer / a high D-dimer | a normal D-dimer / D-dimer up | D-dimer neg / raised D-dimer | normal D-dimer
carbon dioxide / carbon dioxide retained | carbon dioxide normal / pCO2 up | pCO2 normal / retained carbon dioxide | normal carbon dioxide
antibiotics / antibiotics into the drip | no antibiotics for now / IV antibiotics | hold antibiotics / intravenous antibiotics | antibiotics withheld
furosemide / furosemide to pass more water | no furosemide for now / furosemide IV | nil furosemide / intravenous furosemide | no diuretic
nebulisers / nebulisers and prednisolone | no nebulisers needed / nebs + prednisolone | nil nebs / nebulisers and prednisolone | no nebulisers
heparin / heparin at full dose | no heparin for now / LMWH heparin tx dose | nil heparin / therapeutic heparin | no heparin
oxygen / oxygen through the nose | no oxygen needed / O2 via NC | on RA / supplemental oxygen | no oxygen requirement
""",
    ward_ways="""
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
""",
    complaint="breathlessness",
    ward_complaints=("a fall", "stomach pain", "feeling unwell", "a rash", "headache"),
    openings=(
        (
            "Man of {age}, here with {complaint} for {days} days",
            "Lady of {age}, here with {complaint} for {days} days",
        ),
        ("{age}M, {complaint} {days}/7", "{age}F, {complaint} {days}/7"),
        (
            "This {age}-year-old man presents with {complaint} of {days} days' duration",
            "This {age}-year-old woman presents with {complaint} of {days} days' duration",
        ),
    ),
    measurements=(
        "oxygen level {saturation} percent, temperature {heat}",
        "RR {rate}, sats {saturation}%, BP {pressure}, T {heat}",
        "respiratory rate {rate}, saturation {saturation}%, temperature {heat}",
    ),
    subjects=(("He", "The patient"), ("She", "The patient")),
    leads={
        "H": (("{She} ", "{Patient} "), ("Hx: ", "c/o "), ("There is ", "The history includes ")),
        "B": (("{She} ", "Before this {she} "), ("Bg ", "Known "), ("Background: ", "Of note, ")),
        "E": (("I found ", "On looking over: "), ("o/e ", "Exam "), ("Examination shows ", "Findings are ")),
        "T": (("Tests gave ", "We saw "), ("Bloods/films: ", "Ix "), ("Investigations show ", "Results: ")),
        "P": (("What we did: ", "For now: "), ("Tx ", "Plan "), ("Management: ", "Treatment comprises ")),
    },
    heads=(
        ("History", "Background", "On examination", "Tests", "Plan"),
        ("PC", "PMH", "O/E", "Ix", "Rx"),
        ("Presenting complaint", "Medical history", "Examination", "Investigations", "Management"),
    ),
    conditions=("pneumonia", "heart failure", "a COPD exacerbation", "pulmonary embolism"),
    usual=(
        ("many a person with {1} {0}", "in {1} one may hear or see this: {0}", "{0}, and it was {1}"),
        ("{1}: {0}", "{0} = ?{1}", "typical of {1}: {0}"),
        ("expect {0} in {1}", "look for {0} when you suspect {1}", "with {0}, think of {1}"),
    ),
    unusual=(
        "hardly anyone with {1} {0}",
        "not {1} if {0}",
        "with {0}, think again before you call it {1}",
    ),
    conjunction=" and ",
)

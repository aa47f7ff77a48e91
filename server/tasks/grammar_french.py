"""Words for demo notes in French: notes of a service d'urgences on breathlessness, which describe no real patient."""

# ruff: noqa: E501 — a finding is one line of the table
from server.domain import Task, Wording
from server.tasks.grammar import Grammar

FRENCH = Grammar(
    task=Task(
        name="demo_notes_french",
        kind="emergency-department note in French",
        language="french",
        labels={
            "pneumopathie": "infection du poumon : fièvre, crachats verts, crépitants d'un seul côté, foyer, antibiotiques",
            "insuffisance cardiaque": "pompe fatiguée, trop d'eau : orthopnée, œdèmes des chevilles, gros cœur, furosémide",
            "exacerbation de BPCO": "poussée d'une maladie chronique des bronches : sibilants, tabac, spray, distension, aérosols",
            "embolie pulmonaire": "caillot dans le poumon : début brutal, douleur en inspirant, mollet gonflé, D-dimères, héparine",
        },
        # Prompts are English sentences, in which these words stand.
        wording=Wording(writer="a doctor on duty in a French hospital", label="diagnosis"),
        attributes=("adulte jeune", "personne âgée", "de nuit aux urgences", "adressé par le médecin traitant"),
    ),
    finding_ways="""
fever / a de la fièvre et des frissons | n'a pas de fièvre / fièvre + | pas de fièvre / fièvre avec frissons | absence de fièvre
green sputum / a des crachats verts | n'a pas de crachats / crachats verts | pas de crachats / crachats verts et purulents | absence de crachats
dry cough / a une toux sèche | n'a pas de toux / toux sèche | pas de toux / toux sèche quinteuse | absence de toux
orthopnoea / dort assis sur plusieurs oreillers, orthopnée | dort à plat sans orthopnée / orthopnée + | pas d'orthopnée / orthopnée | absence d'orthopnée
swollen ankles / a des œdèmes des chevilles | n'a pas d'œdèmes des chevilles / œdèmes chevilles | pas d'œdèmes / œdèmes des chevilles | absence d'œdèmes des chevilles
swollen calf / a un mollet gonflé et douloureux | n'a pas mal au mollet / mollet dt gonflé | mollets souples / mollet gonflé unilatéral | mollets souples et indolores
pleuritic pain / a mal à la poitrine en inspirant | n'a pas mal à la poitrine / DT en inspirant | pas de DT / douleur thoracique en inspirant | absence de douleur thoracique
wheeze at home / a des sifflements la nuit | n'a pas de sifflements la nuit / sifflements à domicile | pas de sifflements à domicile / sifflements nocturnes | absence de sifflements nocturnes
sudden onset / décrit un début brutal | décrit un début progressif / début brutal | début progressif / début brutal | début progressif
blood coughed up / a eu une hémoptysie | n'a pas eu d'hémoptysie / hémoptysie x1 | pas d'hémoptysie / hémoptysie de faible abondance | absence d'hémoptysie
more inhaler / prend son spray de plus en plus souvent | ne prend pas de spray / spray ++ | pas de spray / recours croissant au spray | absence de spray
weight gain / a pris du poids en une semaine | garde un poids stable / poids ↑ | poids stable / prise de poids rapide | absence de prise de poids
smoker / consomme du tabac | ne consomme pas de tabac / tabac + | pas de tabac / tabac actif | absence de tabac
heart attack / a fait un infarctus il y a des années | n'a jamais rien eu au cœur / IDM ancien | pas de cardiopathie / infarctus du myocarde ancien | absence de cardiopathie connue
surgery / a eu une opération et garde le lit | n'a pas eu d'opération récemment / chir récente | pas de chir récente / chirurgie récente avec alitement | absence de chirurgie récente
airways disease / a de mauvaises bronches depuis des années, BPCO | n'a jamais rien eu aux bronches / BPCO connue | pas de BPCO / maladie chronique des bronches | absence de maladie des bronches
cancer / suit un traitement pour un cancer | n'a jamais eu de cancer / cancer actif | pas de cancer / cancer actif | absence de cancer
diabetes / a du diabète | n'a pas de diabète / DT2 | pas de diabète / diabète de type 2 | absence de diabète
crackles on one side / des crépitants d'un seul côté | le même souffle des deux côtés / crépitants unilat | MV symétrique / crépitants d'un seul côté | murmure vésiculaire symétrique
crackles at both bases / des crépitants aux deux bases | des bases libres / crépitants aux 2 bases | bases libres / crépitants des deux bases | absence de crépitants aux bases
wheeze heard / des sibilants dans tout le thorax | pas de sibilants à l'auscultation / sibilants diffus | pas de sibilants / sibilants expiratoires diffus | absence de sibilants
neck veins / une turgescence jugulaire | pas de turgescence jugulaire / TJ + | pas de TJ / turgescence jugulaire | absence de turgescence jugulaire
fast pulse / un pouls rapide | un pouls calme / tachycarde | FC normale / tachycardie | fréquence cardiaque normale
consolidation / un foyer sur la radio | pas de foyer sur la radio / RP foyer | RP pas de foyer / foyer de condensation | absence de foyer de condensation
big heart / un gros cœur sur la radio | un cœur normal sur la radio / RP gros cœur | RP cœur normal / gros cœur | cœur de taille normale
hyperinflation / une distension sur la radio | pas de distension sur la radio / RP distension | RP pas de distension / distension thoracique | absence de distension thoracique
CRP / une CRP élevée | une CRP normale / CRP ↑ | CRP nle / CRP augmentée | CRP normale
BNP / un BNP élevé | un BNP normal / BNP ↑ | BNP nl / BNP augmenté | BNP normal
D-dimer / des D-dimères élevés | des D-dimères normaux / D-dimères ↑ | D-dimères nég / D-dimères augmentés | D-dimères négatifs
carbon dioxide / une hypercapnie | pas d'hypercapnie / GDS hypercapnie | GDS pas d'hypercapnie / hypercapnie | absence d'hypercapnie
antibiotics / des antibiotiques dans la perfusion | pas d'antibiotiques pour l'instant / antibiotiques IV | pas d'antibiotiques / antibiotiques intraveineux | absence d'antibiotiques
furosemide / du furosémide pour uriner davantage | pas de furosémide pour l'instant / furosémide IVD | pas de furosémide / furosémide intraveineux | absence de furosémide
nebulisers / des aérosols et de la prednisolone | pas d'aérosols pour l'instant / aérosols + prednisolone | pas d'aérosols / aérosols et prednisolone | absence d'aérosols
heparin / de l'héparine à pleine dose | pas d'héparine pour l'instant / héparine dose curative | pas d'héparine / héparine à dose curative | absence d'héparine
oxygen / de l'oxygène par le nez | pas besoin d'oxygène / O2 lunettes | AA / oxygénothérapie aux lunettes | absence de besoin en oxygène
""",
    ward_ways="""
H / a mal au ventre depuis hier / douleur abdo J1 / douleurs abdominales depuis la veille
H / a glissé dans les escaliers et a mal à la hanche / chute escalier, douleur hanche / chute mécanique avec douleur de hanche
H / a vomi plusieurs fois / vomissements x4 / vomissements répétés
H / urine souvent et ça brûle / SFU, dysurie / brûlures mictionnelles et pollakiurie
H / a mal à la tête toute la journée / céphalées ++ / céphalées intenses
H / a des plaques qui grattent depuis le repas / éruption prurigineuse / éruption urticarienne
H / a perdu connaissance un instant / PC brève / perte de connaissance brève
H / s'est coupé le doigt en cuisinant / plaie doigt / plaie superficielle d'un doigt
B / prend des cachets pour la tension / HTA / hypertension artérielle
B / a perdu son appendice dans l'enfance / appendicectomie / appendicectomie dans l'enfance
B / a les os fragiles / ostéoporose / ostéoporose traitée
B / a souvent des migraines / migraines / migraines sans aura
E / un ventre sensible en bas à droite / défense FID / défense en fosse iliaque droite
E / une jambe courte et tournée vers le dehors / MI raccourci, rot ext / raccourcissement et rotation externe du membre inférieur
E / une nuque souple / nuque souple / absence de raideur méningée
E / une plaie propre et peu profonde / plaie propre / plaie propre et superficielle
E / une bouche sèche et un air fatigué / AEG, DEC / altération de l'état général avec déshydratation
T / une hanche cassée sur la radio / Rx FESF / fracture du col fémoral
T / une bandelette urinaire positive / BU + / bandelette urinaire positive
T / un scanner de la tête normal / TDM cérébrale nle / scanner cérébral normal
T / des reins un peu fatigués à la prise de sang / créat ↑ / insuffisance rénale modérée
P / une perfusion pour l'hydrater / SSI 1 L / hydratation intraveineuse
P / l'avis du chirurgien demandé / avis chir / avis chirurgical
P / des points et retour à la maison / suture, RAD / suture et retour à domicile
P / des calmants et du repos / antalgiques / antalgiques de palier 1
P / au bloc demain matin / bloc demain / prise en charge au bloc le lendemain
""",
    complaint="gêne respiratoire",
    ward_complaints=("chute", "douleur abdominale", "malaise", "éruption cutanée", "céphalées"),
    openings=(
        (
            "Monsieur de {age} ans, vient pour {complaint}, début il y a {days} jours",
            "Dame de {age} ans, vient pour {complaint}, début il y a {days} jours",
        ),
        ("H {age} ans, {complaint}, J{days}", "F {age} ans, {complaint}, J{days}"),
        (
            "Patient de {age} ans adressé au SAU pour {complaint}, évolution depuis {days} jours",
            "Patiente de {age} ans adressée au SAU pour {complaint}, évolution depuis {days} jours",
        ),
    ),
    measurements=(
        "oxygène à {saturation} pour cent, température {heat}",
        "FR {rate}, sat {saturation}%, TA {pressure}, T° {heat}",
        "fréquence respiratoire {rate}/min, saturation {saturation} %, température {heat} °C",
    ),
    subjects=(("Il", "Le patient"), ("Elle", "La patiente")),
    leads={
        "H": (
            ("{She} ", "{Patient} "),
            ("HDM : ", "Signale : "),
            ("Histoire de la maladie : ", "L'interrogatoire retrouve : "),
        ),
        "B": (
            ("{She} ", "Par ailleurs {she} "),
            ("ATCD : ", "Terrain : "),
            ("Antécédents : ", "Terrain et antécédents : "),
        ),
        "E": (
            ("À l'examen : ", "On trouve : "),
            ("EC : ", "Clin : "),
            ("L'examen clinique retrouve : ", "Cliniquement : "),
        ),
        "T": (
            ("Les résultats : ", "On a vu : "),
            ("Bio/RP : ", "Bilan : "),
            ("Examens complémentaires : ", "Le bilan montre : "),
        ),
        "P": (
            ("Ce qu'on fait : ", "Pour aujourd'hui : "),
            ("TTT : ", "CAT : "),
            ("Prise en charge : ", "Traitement au SAU : "),
        ),
    },
    heads=(
        ("Histoire", "Avant", "Examen", "Résultats", "Suite"),
        ("HDM", "ATCD", "EC", "Bio/RP", "TTT"),
        ("Histoire de la maladie", "Antécédents", "Examen clinique", "Examens complémentaires", "Conduite à tenir"),
    ),
    conditions=("pneumopathie", "insuffisance cardiaque", "exacerbation de BPCO", "embolie pulmonaire"),
    usual=(
        ("avec une {1}, c'est souvent cela : {0}", "dans une {1}, on entend ou on voit : {0}", "{0} : c'était une {1}"),
        ("{1} : {0}", "{0} => {1}", "typique {1} : {0}"),
        ("une {1} se traduit souvent ainsi : {0}", "à rechercher devant une {1} : {0}", "{0} : évoquer une {1}"),
    ),
    unusual=("rare dans une {1} : {0}", "{0} : contre {1}", "{0} : une {1} est peu probable"),
    conjunction=" et ",
    marks=(" : ", " ; "),
    decimal_sign=",",
)

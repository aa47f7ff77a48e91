"""Words for demo notes in German: notes of a Notaufnahme on breathlessness, which describe no real patient."""

# ruff: noqa: E501 — a finding is one line of the table
from server.domain import Task, Wording
from server.tasks.grammar import Grammar

GERMAN = Grammar(
    task=Task(
        name="demo_notes_german",
        kind="emergency-department note in German",
        language="german",
        labels={
            "Pneumonie": "Entzündung der Lunge: Fieber, grüner Auswurf, einseitige Rasselgeräusche, Infiltrat, Antibiotika",
            "Herzinsuffizienz": "schwache Pumpe, zu viel Wasser: Orthopnoe, Knöchelödeme, großes Herz, Furosemid",
            "COPD-Exazerbation": "Schub einer chronischen Erkrankung der Bronchien: Giemen, Nikotin, Spray, Überblähung, Inhalation",
            "Lungenembolie": "Gerinnsel in der Lunge: plötzlicher Beginn, atemabhängige Schmerzen, geschwollene Wade, D-Dimere, Heparin",
        },
        # Prompts are English sentences, in which these words stand.
        wording=Wording(writer="a doctor on duty in a German hospital", label="diagnosis"),
        attributes=("jüngerer Mensch", "älterer Mensch", "nachts in der Notaufnahme", "Einweisung durch den Hausarzt"),
    ),
    finding_ways="""
fever / hat Fieber und Schüttelfrost | hat kein Fieber / Fieber + | Ø Fieber / Fieber mit Schüttelfrost | kein Fieber
green sputum / hat grünen Auswurf | hat keinen Auswurf / Auswurf grün | Ø Auswurf / grüner, eitriger Auswurf | kein Auswurf
dry cough / hat einen trockenen Husten | hat keinen Husten / trockener Husten | Ø Husten / trockener Husten | kein Husten
orthopnoea / braucht nachts mehrere Kissen, Orthopnoe | schläft flach ohne Orthopnoe / Orthopnoe + | Ø Orthopnoe / Orthopnoe | keine Orthopnoe
swollen ankles / hat Knöchelödeme | hat keine Knöchelödeme / Knöchelödeme bds | Ø Knöchelödeme / Knöchelödeme beidseits | keine Knöchelödeme
swollen calf / hat eine geschwollene, schmerzhafte Wade | hat keine Schmerzen in der Wade / Wade re geschwollen | Waden weich / einseitig geschwollene Wade | keine Schwellung der Wade
pleuritic pain / hat atemabhängige Schmerzen in der Brust | hat keine Schmerzen in der Brust / Thoraxschmerz atemabhängig | Ø Thoraxschmerz / atemabhängige Thoraxschmerzen | keine Thoraxschmerzen
wheeze at home / hört nachts ein Giemen | hört kein Giemen / Giemen zu Hause | Ø Giemen zu Hause / Giemen in der Nacht | kein Giemen in der Nacht
sudden onset / nennt einen plötzlichen Beginn | nennt einen schleichenden Beginn / plötzlicher Beginn | schleichender Beginn / plötzlicher Beginn | schleichender Beginn
blood coughed up / hatte Hämoptysen | hatte keine Hämoptysen / Hämoptysen 1x | Ø Hämoptysen / Hämoptysen | keine Hämoptysen
more inhaler / braucht das Spray immer öfter | braucht kein Spray / Spray ++ | Ø Spray / steigender Bedarf an Spray | kein Gebrauch von Spray
weight gain / hat in einer Woche an Gewicht zugenommen | hat ein stabiles Gewicht / Gewicht ↑ | Gewicht stabil / rasche Zunahme an Gewicht | stabiles Gewicht
smoker / raucht | raucht nicht / Nikotin + | Ø Nikotin / Nikotin fortgesetzt | kein Nikotin
heart attack / hatte vor Jahren einen Herzinfarkt | hatte nie etwas am Herzen / Z. n. MI | Ø kardiale VE / Z. n. Myokardinfarkt | keine kardialen Vorerkrankungen
surgery / lag nach einer Operation lange im Bett | hatte zuletzt keine Operation / Z. n. OP vor 2 Wo | Ø OP zuletzt / kürzliche Operation | keine kürzliche Operation
airways disease / hat seit Jahren COPD und schlechte Bronchien | hatte nie etwas an den Bronchien / COPD bekannt | Ø COPD / chronische Erkrankung der Bronchien | keine Erkrankung der Bronchien
cancer / ist wegen eines Tumors in Behandlung | hatte nie einen Tumor / aktiver Tumor | Ø Tumor / aktiver Tumor | kein Tumor
diabetes / hat Diabetes | hat keinen Diabetes / DM2 | Ø DM / Diabetes mellitus | kein Diabetes mellitus
crackles on one side / Rasselgeräusche nur auf einer Seite | gleiches Atemgeräusch auf beiden Seiten / RGs einseitig | VAG seitengleich / einseitige Rasselgeräusche | seitengleiches Vesikuläratmen
crackles at both bases / feuchte Rasselgeräusche basal auf beiden Seiten | basal freie Lungen / feuchte RGs bds basal | basal frei / feuchte Rasselgeräusche basal beidseits | basal keine Rasselgeräusche
wheeze heard / Giemen über der ganzen Lunge | kein Giemen beim Abhören / Giemen bds | Ø Giemen / diffuses exspiratorisches Giemen | kein exspiratorisches Giemen
neck veins / gestaute Halsvenen | flache Halsvenen / Halsvenen gestaut | Halsvenen flach / gestaute Halsvenen | flache Halsvenen
fast pulse / Tachykardie | normaler Puls / tachykard | HF norm / Tachykardie | normale Herzfrequenz
consolidation / ein Infiltrat auf dem Röntgenbild | kein Infiltrat auf dem Röntgenbild / Rö Infiltrat | Rö Ø Infiltrat / Infiltrat im Röntgen-Thorax | kein Infiltrat im Röntgen-Thorax
big heart / ein großes Herz auf dem Röntgenbild | ein normales Herz auf dem Röntgenbild / Rö Herz groß | Rö Herz norm / großes Herz | normal großes Herz
hyperinflation / überblähte Lungen auf dem Röntgenbild | normale Lungen auf dem Röntgenbild / Rö Überblähung | Rö Ø Überblähung / Überblähung der Lunge | keine Überblähung
CRP / ein hohes CRP | ein normales CRP / CRP ↑ | CRP norm / CRP erhöht | CRP normwertig
BNP / ein hohes BNP | ein normales BNP / BNP ↑ | BNP norm / BNP erhöht | BNP normwertig
D-dimer / hohe D-Dimere | normale D-Dimere / D-Dimere ↑ | D-Dimere neg / D-Dimere erhöht | D-Dimere negativ
carbon dioxide / ein hoher pCO2 | ein normaler pCO2 / pCO2 ↑ | pCO2 norm / pCO2 erhöht | pCO2 normwertig
antibiotics / Antibiotika über die Vene | vorerst keine Antibiotika / Antibiotika iv | Ø Antibiotika / Antibiotika intravenös | keine Antibiotika
furosemide / Furosemid zum Entwässern | vorerst kein Furosemid / Furosemid iv | Ø Furosemid / Furosemid intravenös | kein Furosemid
nebulisers / Inhalation und Prednisolon | vorerst keine Inhalation / Inhalation + Prednisolon | Ø Inhalation / Inhalation und Prednisolon intravenös | keine Inhalation
heparin / Heparin in voller Dosis | vorerst kein Heparin / Heparin therap Dosis | Ø Heparin / Heparin in therapeutischer Dosis | kein Heparin
oxygen / Sauerstoff über die Nase | kein Sauerstoff nötig / O2 über NS | RL / Sauerstoffgabe über Nasensonde | kein Sauerstoffbedarf
""",
    ward_ways="""
H / hat seit gestern Bauchweh / Bauchschmerz seit gestern / abdominelle Schmerzen seit dem Vortag
H / stürzte auf der Treppe auf die Hüfte / Treppensturz, Hüftschmerz / häuslicher Sturz mit Hüftschmerzen
H / musste sich mehrmals übergeben / Erbrechen 4x / rezidivierendes Erbrechen
H / muss ständig Wasser lassen, und es brennt / Dysurie, Pollakisurie / Dysurie und Pollakisurie
H / hat den ganzen Tag ein Pochen im Kopf / Kopfschmerz ++ / starke Kopfschmerzen
H / bekam nach dem Essen einen juckenden Ausschlag / juckendes Exanthem / urtikarielles Exanthem
H / war kurz weg und fiel um / Synkope kurz / kurzzeitige Bewusstlosigkeit
H / schnitt sich beim Kochen in den Finger / Schnittverletzung D2 / Schnittverletzung am Zeigefinger
B / nimmt Tabletten gegen hohen Blutdruck / aHT / arterielle Hypertonie
B / hat als Kind den Blinddarm verloren / Z. n. AE / Z. n. Appendektomie
B / hat brüchige Knochen / Osteoporose, ED 2019 / Osteoporose, ED 2019
B / hat öfter Migräne / Migräne / Migräne ohne Aura
E / Druckschmerz rechts unten im Bauch / DS re UB / Druckschmerz im rechten Unterbauch
E / ein kurzes, nach außen gedrehtes Bein / Bein verkürzt, außenrotiert / Beinverkürzung und Außenrotation
E / ein frei beweglicher Nacken / Ø Meningismus / kein Meningismus
E / eine saubere, flache Wunde / Wunde sauber / saubere oberflächliche Wunde
E / trockene Zunge, müder Eindruck / AZ red, exsikkiert / reduzierter AZ bei Exsikkose
T / ein Bruch an der Hüfte auf dem Röntgenbild / Rö SHF / Schenkelhalsfraktur
T / auffälliger Urin / U-Stix pos / Urin-Stix positiv
T / nichts Auffälliges im Kopf-CT / cCT oB / cCT ohne pathologischen Befund
T / leicht erhöhte Nierenwerte / Krea ↑ / eingeschränkte Nierenfunktion
P / Flüssigkeit über den Tropf / Vollelektrolyt iv / intravenöse Volumengabe
P / die Chirurgen schauen noch / Konsil Chir, V. a. Appendizitis / chirurgisches Konsil bei V. a. Appendizitis
P / genäht und nach Hause entlassen / Naht, Entl / Wundnaht und Entlassung
P / Schmerzmittel und Ruhe / Analgesie / bedarfsadaptierte Analgesie
P / morgen früh in den OP / OP morgen / operative Versorgung am Folgetag
""",
    complaint="Atemnot",
    ward_complaints=("Sturz", "Bauchschmerzen", "Unwohlsein", "Hautausschlag", "Kopfschmerzen"),
    openings=(
        (
            "Mann, {age} Jahre, kommt wegen {complaint}, krank seit {days} Tagen",
            "Frau, {age} Jahre, kommt wegen {complaint}, krank seit {days} Tagen",
        ),
        ("{age} J., m, {complaint}, Beginn vor {days} d", "{age} J., w, {complaint}, Beginn vor {days} d"),
        (
            "Vorstellung des {age}-jährigen Patienten wegen {complaint}, Beschwerdebeginn vor {days} Tagen",
            "Vorstellung der {age}-jährigen Patientin wegen {complaint}, Beschwerdebeginn vor {days} Tagen",
        ),
    ),
    measurements=(
        "Sauerstoff {saturation} Prozent, Temperatur {heat}",
        "AF {rate}, SpO2 {saturation}%, RR syst {pressure}, T {heat}",
        "Atemfrequenz {rate}/min, Sättigung {saturation} %, Temperatur {heat} °C",
    ),
    subjects=(("Er", "Der Patient"), ("Sie", "Die Patientin")),
    leads={
        "H": (("{She} ", "{Patient} "), ("Anam: ", "Pat. gibt an: "), ("Anamnestisch ", "Aktuelle Beschwerden: ")),
        "B": (("{She} ", "Von früher weiß man: {she} "), ("VE: ", "Bek: "), ("Vorerkrankungen: ", "Vorbekannt: ")),
        "E": (("Bei der Untersuchung: ", "Zu finden war: "), ("KU: ", "Unters: "), ("Klinisch ", "Bei Aufnahme ")),
        "T": (
            ("Die Ergebnisse: ", "Labor und Bilder: "),
            ("Labor/Rö: ", "Diagn: "),
            ("Diagnostik: ", "In der Diagnostik "),
        ),
        "P": (("Wie es weitergeht: ", "Fürs Erste: "), ("Th: ", "Proc: "), ("Therapie: ", "Therapie und Procedere: ")),
    },
    heads=(
        ("Verlauf", "Früher", "Untersuchung", "Ergebnisse", "Vorgehen"),
        ("Anam", "VE", "KU", "Diagn", "Proc"),
        ("Aktuelle Anamnese", "Vorerkrankungen", "Untersuchungsbefund", "Diagnostik", "Therapie und Procedere"),
    ),
    conditions=("Pneumonie", "Herzinsuffizienz", "COPD-Exazerbation", "Lungenembolie"),
    usual=(
        ("wer eine {1} hat, kennt das: {0}", "bei einer {1} hört oder sieht man oft: {0}", "{0}: das war eine {1}"),
        ("{1}: {0}", "{0} = V. a. {1}", "typ bei {1}: {0}"),
        ("bei {1} ist zu erwarten: {0}", "bei Verdacht auf {1} ist zu achten auf: {0}", "{0}: an eine {1} denken"),
    ),
    unusual=("selten bei einer {1}: {0}", "{0}: eher Ø {1}", "{0}: eine {1} ist wenig wahrscheinlich"),
    conjunction=" und ",
    decimal_sign=",",
)

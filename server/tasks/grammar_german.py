"""Demo notes in German: the words of a Notaufnahme's notes on breathlessness. They describe no real patient."""

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
            "Herzinsuffizienz": "schwache Pumpe, zu viel Wasser: Orthopnoe, geschwollene Knöchel, großes Herz, Furosemid",
            "COPD-Exazerbation": "Schub einer chronischen Erkrankung der Bronchien: Giemen, Nikotin, Spray, Überblähung, Inhalation",
            "Lungenembolie": "Gerinnsel in der Lunge: plötzlicher Beginn, atemabhängige Schmerzen, geschwollene Wade, D-Dimere, Heparin",
        },
        # Prompts are English sentences, in which these words stand.
        wording=Wording(writer="a doctor on duty in a German hospital", label="diagnosis"),
        attributes=("jüngerer Mensch", "älterer Mensch", "nachts in der Notaufnahme", "Einweisung durch den Hausarzt"),
    ),
    finding_ways="""
fever / hat Fieber und Schüttelfrost | hat kein Fieber / Fieber + | Ø Fieber / Fieber mit Schüttelfrost | kein Fieber
green sputum / hustet grünen Schleim ab | hustet keinen Schleim ab / Auswurf grünlich | Ø Auswurf / eitriger Auswurf | kein Auswurf
dry cough / hat einen trockenen Husten | hat keinen Husten / Reizhusten | Ø Husten / trockener Reizhusten | kein Husten
orthopnoea / braucht nachts mehrere Kissen, Orthopnoe | schläft flach ohne Orthopnoe / Orthopnoe + | Ø Orthopnoe / Orthopnoe | keine Orthopnoe
swollen ankles / hat geschwollene Knöchel | hat keine geschwollenen Knöchel / US-Ödeme bds | Ø US-Ödeme / Unterschenkelödeme beidseits | keine Unterschenkelödeme
swollen calf / hat eine geschwollene, schmerzhafte Wade | hat keine Schmerzen in der Wade / Wade re geschwollen | Waden weich / einseitige Wadenschwellung | keine Wadenschwellung
pleuritic pain / hat Stiche in der Brust beim Einatmen | hat keine Schmerzen in der Brust / Thoraxschmerz atemabhängig | Ø Thoraxschmerz / atemabhängige Thoraxschmerzen | keine Thoraxschmerzen
wheeze at home / pfeift nachts beim Atmen | pfeift nicht beim Atmen / Giemen zu Hause | Ø Giemen zu Hause / pfeifende Atmung | keine pfeifende Atmung
sudden onset / sagt, es kam ganz plötzlich | sagt, es kam nach und nach / akuter Beginn | schleichender Beginn / plötzlicher Beginn | schleichender Beginn
blood coughed up / hat etwas Blut gehustet | hat kein Blut gehustet / Hämoptysen 1x | Ø Hämoptysen / Hämoptysen | keine Hämoptysen
more inhaler / braucht das Spray immer öfter | braucht kein Spray / Spray ++ | Ø Spray / steigender Bedarf an Bronchodilatatoren | keine Bronchodilatatoren
weight gain / hat in einer Woche an Gewicht zugenommen | hält das Gewicht / Gewicht ↑ | Gewicht stabil / rasche Gewichtszunahme | stabiles Körpergewicht
smoker / raucht | raucht nicht / Nikotin + | Ø Nikotin / fortgesetzter Nikotinabusus | kein Nikotinabusus
heart attack / hatte vor Jahren einen Herzinfarkt | hatte nie etwas am Herzen / Z. n. MI | Ø kardiale VE / Z. n. Myokardinfarkt | keine kardialen Vorerkrankungen
surgery / lag nach einer Operation lange im Bett | hatte zuletzt keine Operation / Z. n. OP vor 2 Wo | Ø OP zuletzt / kürzliche Operation | keine kürzliche Operation
airways disease / hat seit Jahren COPD und schlechte Bronchien | hatte nie etwas an den Bronchien / COPD bekannt | Ø COPD / chronische Atemwegserkrankung | keine Atemwegserkrankung
cancer / ist wegen Krebs in Behandlung | hatte nie Krebs / aktives Malignom | Ø Malignom / aktive Tumorerkrankung | keine Tumorerkrankung
diabetes / ist zuckerkrank | ist nicht zuckerkrank / DM2 | Ø DM / Diabetes mellitus | kein Diabetes mellitus
crackles on one side / Rasseln nur auf einer Seite | gleiches Atemgeräusch auf beiden Seiten / RGs einseitig | VAG seitengleich / einseitige klingende Rasselgeräusche | seitengleiches Vesikuläratmen
crackles at both bases / feuchtes Rasseln unten auf beiden Seiten | freie Lungen unten / feuchte RGs bds basal | basal frei / feuchte Rasselgeräusche basal beidseits | basal keine Rasselgeräusche
wheeze heard / Pfeifen über der ganzen Lunge | kein Pfeifen beim Abhören / Giemen bds | Ø Giemen / diffuses exspiratorisches Giemen | kein exspiratorisches Giemen
neck veins / gestaute Halsvenen | flache Halsvenen / obere EFS | Ø EFS / obere Einflussstauung | keine Einflussstauung
fast pulse / rasender Puls | ruhiger Puls / tachykard | HF norm / Tachykardie | normale Herzfrequenz
consolidation / ein Schatten auf dem Röntgenbild | kein Schatten auf dem Röntgenbild / Rö Infiltrat | Rö Ø Infiltrat / Infiltrat im Röntgen-Thorax | kein Infiltrat im Röntgen-Thorax
big heart / ein großes Herz auf dem Röntgenbild | ein normales Herz auf dem Röntgenbild / Rö Herz groß | Rö Herz norm / Herz verbreitert | Herz normal groß
hyperinflation / überblähte Lungen auf dem Röntgenbild | normale Lungen auf dem Röntgenbild / Rö Überblähung | Rö Ø Überblähung / Überblähung der Lunge | keine Überblähung
CRP / ein hohes CRP | ein normales CRP / CRP ↑ | CRP norm / CRP erhöht | CRP normwertig
BNP / ein hohes BNP | ein normales BNP / BNP ↑ | BNP norm / BNP erhöht | BNP normwertig
D-dimer / hohe D-Dimere | normale D-Dimere / D-Dimere ↑ | D-Dimere neg / D-Dimere erhöht | D-Dimere negativ
carbon dioxide / zu viel Kohlendioxid im Blut | normales Kohlendioxid im Blut / pCO2 ↑ | pCO2 norm / Hyperkapnie | keine Hyperkapnie
antibiotics / Antibiotika über die Vene | vorerst keine Antibiotika / AB iv | Ø AB / Antibiotika intravenös | keine Antibiotika
furosemide / Furosemid zum Entwässern | vorerst kein Furosemid / Furosemid iv | Ø Furosemid / Furosemid intravenös | keine Diuretika
nebulisers / Inhalieren und Prednisolon | vorerst kein Inhalieren / Inhalation + Prednisolon | Ø Inhalation / Inhalationstherapie und Prednisolon | keine Inhalationstherapie
heparin / Heparin in voller Dosis | vorerst kein Heparin / Heparin therap Dosis | Ø Heparin / therapeutische Heparinisierung | keine Heparinisierung
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

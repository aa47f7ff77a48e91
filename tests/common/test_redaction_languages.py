"""Personal information in German, French, Spanish and Italian is masked; innocent clinical phrases stay."""

import pytest

from common.errors import ConfigError
from common.personal_patterns import LANGUAGES, PATTERNS
from common.redaction import Redactor, entities, redact

PERSONAL = {
    "german": [
        ("Herr Dr. med. Weber rief an", "[PERSON] rief an"),
        ("Frau Anna von Müller-Lüdenscheidt klagt", "[PERSON] klagt"),
        ("geb. am 03.04.1951 in Köln, geb. Schneider", "geb. am [DATE] in Köln, [PERSON]"),
        ("Aufnahme am 3. April 2021, Kontrolle am 12.05.", "Aufnahme am [DATE], Kontrolle am [DATE]"),
        ("Fallnummer 4711123, KVNR A123456780", "[RECORD], [RECORD]"),
        ("Steuer-ID 86095742719", "Steuer-ID [TAX]"),
        ("Rente 15070649C103, Reisepass C01X00T41", "Rente [SSN], Reisepass [ID]"),
        ("Tel. 030 12345678", "Tel. [PHONE]"),
        ("Hauptstraße 12a, 50667 Köln", "[ADDRESS]"),
        ("72-jährige Patientin; 68 J., m; 71 Jahre alt", "[AGE] Patientin; [AGE], m; [AGE]"),
        ("IBAN DE89370400440532013000, 1.200 Euro", "IBAN [IBAN], [CURRENCY]"),
    ],
    "french": [
        ("M. Dupont va bien", "[PERSON] va bien"),
        ("Mme Le Goff, vue par le Dr Lefèvre", "[PERSON], vue par le [PERSON]"),
        ("née le 03/04/1951", "née le [DATE]"),
        ("le 3 avril 2021 et le 1er mai 2020", "le [DATE] et le [DATE]"),
        ("IPP 80012345, dossier n° 1234567", "[RECORD], [RECORD]"),
        ("NIR 2 51 04 75 123 456 78", "NIR [SSN]"),
        ("Tél. 01 42 34 56 78", "Tél. [PHONE]"),
        ("12 rue de la Paix, 75002 Paris", "[ADDRESS]"),
        ("Patiente de 72 ans ; H 68 ans", "[AGE] ; [AGE]"),
        ("FR1420041010050500013M02606, 1 200 euros", "[IBAN], [CURRENCY]"),
    ],
    "spanish": [
        ("Sr. García Pérez", "[PERSON]"),
        ("Dra. Martínez y Doña Carmen Ruiz", "[PERSON] y [PERSON]"),
        ("nacido el 03/04/1951", "nacido el [DATE]"),
        ("3 de abril de 1951", "[DATE]"),
        ("DNI 12345678Z, NIE X1234567L", "DNI [ID], NIE [ID]"),
        ("NHC 1234567", "[RECORD]"),
        ("Tel. 912 345 678", "Tel. [PHONE]"),
        ("calle de Alcalá 45, 28014 Madrid", "[ADDRESS]"),
        ("mujer de 72 años", "[AGE]"),
        ("pasaporte AAA123456", "[PASSPORT]"),
    ],
    "italian": [
        ("Sig.ra Rossi", "[PERSON]"),
        ("Dott. Bianchi e Dott.ssa De Luca", "[PERSON] e [PERSON]"),
        ("nato il 03/04/1951", "nato il [DATE]"),
        ("3 aprile 1951", "[DATE]"),
        ("codice fiscale RSSMRA85T10A562S", "codice fiscale [TAX]"),
        ("cartella n. 123456", "[RECORD]"),
        ("Tel. 02 1234 5678", "Tel. [PHONE]"),
        ("via Garibaldi 12, 20121 Milano", "[ADDRESS]"),
        ("donna di 72 anni, di anni 72", "[AGE], [AGE]"),
        ("patente RM1234567X, passaporto AA1234567", "[LICENCE], [PASSPORT]"),
        ("carta d'identità CA12345AA", "[ID]"),
    ],
}
CLINICAL = {
    "german": [
        "RR 120/80, HF 72, Temp 37,2, SpO2 94%",
        "Bisoprolol 2,5 mg 1-0-1-0",
        "Z. n. Myokardinfarkt, V. a. Lungenembolie, ED 2019",
        "Patient seit 3 Tagen mit Fieber",
        "10000 Einheiten Heparin s.c.",
        "Nikotinabusus seit 20 Jahren, 40 py",
        "Na 138, K 4,2, Hb 13,2, Leukozyten 12400",
        "Fall von Pneumonie im Mai",
        "eGFR 45 ml/min/1,73 m2, CA 19-9 normwertig",
        "AZ reduziert, EZ adipös, BMI 31,2, Frau mit Dyspnoe",
    ],
    "french": [
        "TA 120/80, FC 72, T° 37,2, sat 94%",
        "bisoprolol 2,5 mg 1-0-1",
        "ATCD : HTA, DT2, IDM ancien",
        "fièvre depuis 3 jours, tabac sevré depuis 10 ans",
        "HBPM 4000 UI x2",
        "Na 138, K 4,2, Hb 13,2, GB 12400",
        "TTT : ATB IV, O2 2 L/min",
        "recherche de M. tuberculosis négative",
        "DFG 45 ml/min/1,73 m2",
        "évolution depuis mars, chute il y a 4 jours",
    ],
    "spanish": [
        "TA 120/80, FC 72, Tª 37,2, sat 94%",
        "bisoprolol 2,5 mg 1-0-1",
        "AP: HTA, DM2, IAM antiguo",
        "fiebre desde hace 3 días, exfumador desde hace 10 años",
        "enoxaparina 4000 UI/24 h",
        "Na 138, K 4,2, Hb 13,2, leucocitos 12400",
        "dolor torácico pleurítico, disnea de reposo",
        "tratamiento por vía oral, SatO2 92% basal",
        "FG 45 ml/min/1,73 m2",
        "ingreso en mayo por neumonía",
    ],
    "italian": [
        "PA 120/80, FC 72, T 37,2, SpO2 94%",
        "bisoprololo 2,5 mg 1-0-1",
        "APR: ipertensione, DM2, pregresso IMA",
        "febbre da 3 giorni, ex fumatore da 10 anni",
        "enoxaparina 4000 UI x2 sc",
        "Na 138, K 4,2, Hb 13,2, GB 12400",
        "terapia per via orale e via EV",
        "dispnea da sforzo, MV ridotto alle basi",
        "eGFR 45 ml/min/1,73 m2",
        "ricovero a maggio per polmonite",
    ],
}


def test_every_language_but_english_is_tested_here():
    assert PERSONAL.keys() == CLINICAL.keys() == set(LANGUAGES) - {"english"}
    assert len({patterns.code for patterns in PATTERNS.values()}) == len(LANGUAGES)
    assert all(len(examples) >= 10 for table in (PERSONAL, CLINICAL) for examples in table.values())


@pytest.mark.parametrize(
    ("language", "text", "redacted"),
    [(language, *example) for language, examples in PERSONAL.items() for example in examples],
)
def test_what_is_personal_is_masked(language, text, redacted):
    assert redact(text, language) == redacted
    assert redact(redacted, language) == redacted
    assert entities(text, language).total() == redacted.count("[")


@pytest.mark.parametrize(
    ("language", "text"), [(language, text) for language, texts in CLINICAL.items() for text in texts]
)
def test_what_is_clinical_stays(language, text):
    assert redact(text, language) == text


def test_titles_are_those_of_the_language():
    assert redact("Frau Schmidt, Mme Dupont", "german") == "[PERSON], Mme Dupont"
    assert redact("Frau Schmidt, Mme Dupont", "french") == "Frau Schmidt, [PERSON]"


def test_an_unknown_language_is_refused_in_one_line():
    with pytest.raises(ConfigError, match=r"got 'latin'"):
        Redactor(language="latin")

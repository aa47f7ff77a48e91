"""Patterns of personal information in clinical notes for each language, which `redaction` searches for.

Each language has regions for telephone numbers, presidio's recognisers for national numbers, and our own patterns for
titles with names, dates, ages, record numbers, addresses and sums of money. Two kinds of presidio recognisers are
omitted: those that mistake clinical abbreviations for number plates or any nine digits for the number of a practice,
and those that find nothing without a context word.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_NUMBER = r"\d+(?:,\d+)*(?:\.\d+)?"
_HANDLE = (r"(?<![\w@.\]])@\w{2,}", r"(?<![\w/])/?u/[\w-]{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalPatterns:
    """The patterns of personal information in one language.

    Attributes:
        code: ISO 639-1 code of the language.
        regions: Regions whose telephone numbers are found without a country code; each region costs time.
        recognizers: Names of presidio's recognisers.
        own: Our own regular expressions, keyed by kind.
    """

    code: str
    regions: tuple[str, ...]
    recognizers: tuple[str, ...]
    own: Mapping[str, tuple[str, ...]]


def _english() -> PersonalPatterns:
    month = (
        r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
        r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
    )
    name = r"[A-Z][\w'’-]*(?: [A-Z]\.)?(?: [A-Z][\w'’-]+){0,2}"
    way = r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Boulevard|Blvd|Court|Ct|Way|Place|Square|Terrace|Highway)"
    filed = r"(?:medical )?record|chart|case|patient|account|insurance|member"
    who = r"man|woman|lady|gentleman|male|female|boy|girl|patient"
    return PersonalPatterns(
        code="en",
        regions=("US", "GB", "DE", "FR"),
        recognizers=(
            "MedicalLicenseRecognizer",
            "UsSsnRecognizer",
            "UsItinRecognizer",
            "UsPassportRecognizer",
            "UsBankRecognizer",
            "NhsRecognizer",
            "UsLicenseRecognizer",
        ),
        own={
            "PERSON": (
                rf"\b(?:Dr|Mr|Mrs|Ms|Miss|Mx|Prof|Professor|Doctor|Nurse|Sir)\b\.? {name}",
                rf"(?i:\b(?:my name is|name|signed|patient|attending|physician):?) {name}(?=[\s,.;]|$)",
            ),
            "RECORD": (rf"(?i:\b(?:MRN|{filed})(?: ?(?:id|no|number))?\.?)[ :#]*[A-Za-z]{{0,3}}-?\d[\d-]{{3,}}\b",),
            "AGE": (
                r"(?i:\b\d{1,3}[- ]?(?:years?|yrs?|months?|weeks?)[- ]old\b)",
                r"(?i:\b\d{1,3} ?(?:y/?o|yo)\b)",
                r"(?i:\bage[d:]? \d{1,3}\b)",
                rf"(?i:\b(?:{who}) of \d{{1,3}}\b)",
            ),
            "DATE": (
                rf"\b{month} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? (?:19|20)\d\d\b)?",
                rf"\b{month} (?:19|20)\d\d\b",
                rf"\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{month}(?: (?:19|20)\d\d)?\b",
            ),
            "ADDRESS": (
                rf"\b\d{{1,5}} (?:[A-Z][\w'’-]+ ){{1,3}}{way}\b\.?(?:,? (?:Apt|Suite|Unit)\.? ?\w+)?",
                r"\b[A-Z]{2} \d{5}(?:-\d{4})?\b",
                r"\bP\.? ?O\.? Box \d+\b",
            ),
            "CURRENCY": (
                rf"[$€£¥] ?{_NUMBER}\w*(?: ?(?i:k|thousand|million|billion)\b)?",
                rf"(?i:\b{_NUMBER} ?(?:dollars|euros|pounds|bucks|usd|eur|gbp)\b)",
            ),
            "HANDLE": _HANDLE,
        },
    )


# Of the other languages. In German every noun has a capital: a name after a title is at most two words.
_WORD = r"[A-ZÀ-ÖØ-Þ][\w'’-]+"
_LINKS = r"(?:(?:von|van|de|du|des|di|del|della|der|den|la|le|zu|d['’]) ?){0,2}"
_TOWN = rf"(?:,? (?:D-)?\d{{5}} {_WORD})?"
_DAY = r"\d{1,2}(?:\.|er|º|°)?"
_YEAR = r"(?:19|20)\d\d"
_DOTTED = r"\b\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d\d)\b"
_SUM = r"\d+(?:[. ]\d{3})*(?:,\d+)?"


def _titled(titles: str, words: int) -> str:
    """Return the pattern for one or more titles, each with its dot, followed by a name of at most `words` words."""
    first = r"(?:[A-ZÀ-ÖØ-Þ]\. ?)?"
    return rf"\b(?:(?:{titles}) ?)+(?<=[ .]){first}{_LINKS}{_WORD}(?: {_LINKS}{_WORD}){{0,{words - 1}}}"


def _written(months: str, of: str = "") -> tuple[str, ...]:
    """Return the patterns for dates that spell out the month, such as "3. April 1951" and "April 2019"."""
    return (
        rf"(?i:\b{_DAY} ?(?:{of})?(?:{months})\.?(?: (?:{of})?{_YEAR})?(?!\w))",
        rf"(?i:\b(?:{months})\.? (?:{of})?{_YEAR}\b)",
        _DOTTED,
    )


def _filed(words: str) -> tuple[str, ...]:
    """Return the pattern for a record number that follows one of these words."""
    return (rf"(?i:\b(?:{words}))[ :#]*[A-Za-z]{{0,3}}-?\d[\d-]{{3,}}\b",)


def _money(words: str) -> tuple[str, ...]:
    """Return the patterns for sums of money, with `words` as additional names of currencies."""
    return (rf"[$€£¥] ?{_SUM}\w*", rf"(?i:\b{_SUM} ?(?:[$€£¥]|(?:euros?|eur|{words})\b))")


def _german() -> PersonalPatterns:
    titles = (
        r"Herrn? |Frau |Fr\. |Hr\. |Dres\.|Dr\.|Prof\.|Priv\.-Doz\.|med\.|dent\.|rer\.|nat\.|Doktor |Professor "
        r"|Schwester |Pfleger "
    )
    months = (
        r"Jan(?:uar|\.)|Jänner|Feb(?:ruar|\.)|März|Apr(?:il|\.)|Mai|Juni|Juli|Aug(?:ust|\.)|Sept?(?:ember|\.)"
        r"|Okt(?:ober|\.)|Nov(?:ember|\.)|Dez(?:ember|\.)"
    )
    street = r"(?:[Ss]tra(?:ß|ss)e|[Ss]tr\.|[Ww]eg|[Pp]latz|[Aa]llee|[Gg]asse|[Dd]amm|[Uu]fer)"
    filed = r"(?:Fall|Aufnahme|Patienten|Akten|Pat\.|Versicherten|Versicherungs)-?(?:nummer|nr\.?|-?ID)|Pat\.-Nr\.|KVNR"
    return PersonalPatterns(
        code="de",
        regions=("DE", "AT", "CH"),
        recognizers=(
            "DeTaxIdRecognizer",
            "DeHealthInsuranceRecognizer",
            "DeSocialSecurityRecognizer",
            "DeIdCardRecognizer",  # passports have numbers of the same form
            "DeFuehrerscheinRecognizer",
        ),
        own={
            "PERSON": (
                _titled(titles, 2),
                rf"(?i:\b(?:mein Name ist|(?:Vor|Nach|Familien)?name:|gez\.|geb(?:orene|\.))) {_WORD}(?:,? {_WORD})?",
            ),
            "RECORD": _filed(filed),
            "AGE": (
                r"(?i:\b\d{1,3} ?-?jährig\w*)",
                r"(?i:\b\d{1,3} Jahre alt\w*)",
                r"\b\d{1,3} ?J\.(?= ?[,(]? ?[mwd]\b)",
                r"(?i:\bAlter:? \d{1,3}\b)",
            ),
            "DATE": (*_written(months), r"\b(?<=am )\d{1,2}\.\d{1,2}\.(?!\d)"),
            "ADDRESS": (
                rf"\b(?:[A-ZÄÖÜ][\w-]*{street}|(?:[A-ZÄÖÜ][\w.-]+ ){street}) ?\d{{1,4}} ?[a-z]?\b{_TOWN}",
                r"(?i:\bPostfach \d[\d ]+\b)",
                r"(?i:\bPLZ:? (?:D-)?\d{5}\b)",
            ),
            "CURRENCY": _money(r"franken|chf"),
            "HANDLE": _HANDLE,
        },
    )


def _french() -> PersonalPatterns:
    titles = r"M\. |MM\. |Mr |Mme |Mmes |Mlle |Monsieur |Madame |Mademoiselle |Dr\.? |Pr\.? |Docteur |Professeur "
    months = (
        r"janv(?:ier|\.)|févr?(?:ier|\.)|mars|avr(?:il|\.)|mai|juin|juil(?:let|\.)|août|sept(?:embre|\.)|oct(?:obre|\.)"
        r"|nov(?:embre|\.)|déc(?:embre|\.)"
    )
    who = r"patiente?|homme|femme|monsieur|dame|âgée?s?|garçon|fille"
    way = r"(?:rue|avenue|av\.|boulevard|bd|place|impasse|chemin|allée|quai|route|cours|square)"
    filed = r"IPP|NDA|NIP|IEP|(?:n°|numéro) (?:de |d['’])?(?:dossier|séjour|patient|admission)|dossier n°"
    return PersonalPatterns(
        code="fr",
        regions=("FR", "BE", "CH"),
        recognizers=(),
        own={
            "PERSON": (_titled(titles, 3), rf"(?i:\b(?:je m['’]appelle|(?:pré)?nom ?:|née? )) ?{_WORD}(?: {_WORD})?"),
            "SSN": (
                r"\b[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3}(?: ?\d\d)?\b",  # NIR
            ),
            "RECORD": _filed(filed),
            "AGE": (
                rf"(?i:\b(?:{who}) (?:de )?\d{{1,3}} ans\b)",
                r"\b[HF] ?\d{1,3} ans\b",
                r"(?i:\bâge ?:? \d{1,3}(?: ans)?\b)",
            ),
            "DATE": _written(months),
            "ADDRESS": (rf"(?i:\b\d{{1,4}}(?: ?bis| ?ter)?,? {way}) {_LINKS}(?:[\wÀ-ÿ'’-]+ ){{0,2}}?{_WORD}{_TOWN}",),
            "PASSPORT": (r"(?i:\bpasseport(?: n°)? ?:? ?)\d\d[A-Z]{2}\d{5}\b",),
            "CURRENCY": _money(r"francs|chf"),
            "HANDLE": _HANDLE,
        },
    )


def _spanish() -> PersonalPatterns:
    titles = r"Sr\. |Sra\. |Srta\. |Dr\. |Dra\. |Prof\. |Don |Doña |Dña\. |Señor |Señora |Doctor |Doctora "
    months = r"enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|setiembre|octubre|noviembre|diciembre"
    who = r"paciente|varón|hombre|mujer|señora?|niñ[oa]"
    way = r"(?:[Cc]alle|C/|[Aa]venida|[Aa]vda\.|[Pp]laza|[Pp]za\.|[Pp]aseo|[Cc]amino|[Rr]onda)"
    filed = r"NHC|CIPA?|NUHSA|(?:n[.º°]*|número)(?: de)? (?:historia(?: clínica)?|episodio|expediente)"
    return PersonalPatterns(
        code="es",
        regions=("ES",),
        recognizers=("EsNifRecognizer", "EsNieRecognizer"),
        own={
            "PERSON": (
                _titled(titles, 3),
                rf"(?i:\b(?:me llamo|nombre:|apellidos:|fdo\.:?)) ?{_WORD}(?: {_WORD}){{0,2}}",
            ),
            "RECORD": _filed(filed),
            "AGE": (
                rf"(?i:\b(?:{who}) de \d{{1,3}} años\b)",
                r"(?i:\b\d{1,3} años de edad\b)",
                r"(?i:\bedad:? \d{1,3}(?: años)?\b)",
            ),
            "DATE": _written(months, of="del? "),
            "ADDRESS": (rf"{way} ?{_LINKS}{_WORD}(?: {_LINKS}{_WORD}){{0,2}},? (?:n[.º°]+ ?)?\d{{1,4}}\b{_TOWN}",),
            "PASSPORT": (r"(?i:\bpasaporte(?: n[.º°]+)?:? )[A-Z]{2,3}\d{6}\b",),
            "CURRENCY": _money(r"pesetas|pesos"),
            "HANDLE": _HANDLE,
        },
    )


def _italian() -> PersonalPatterns:
    titles = (
        r"Sig\.ra |Sig\.na |Sig\. |Signora |Signor |Dott\.ssa |Dott\. |Dr\.ssa |Dr\. |Dottoressa |Dottor |Prof\.ssa "
        r"|Prof\. "
    )
    months = r"gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre"
    who = r"paziente|uomo|donna|signora?|bambin[oa]"
    way = r"(?:[Vv]ia|[Vv]iale|[Vv]\.le|[Pp]iazza|[Pp]\.zza|[Cc]orso|[Cc]\.so|[Vv]icolo|[Ll]argo)"
    filed = r"(?:cartella(?: clinica)?|nosologico|pratica|ricovero|tessera sanitaria)(?: n\.?[°º]?| numero)?"
    return PersonalPatterns(
        code="it",
        regions=("IT", "CH"),
        recognizers=("ItFiscalCodeRecognizer", "ItVatCodeRecognizer"),
        own={
            "PERSON": (
                _titled(titles, 3),
                rf"(?i:\b(?:mi chiamo|(?:cog)?nome:|firmato:?)) {_WORD}(?: {_WORD}){{0,2}}",
            ),
            "RECORD": _filed(filed),
            "AGE": (
                rf"(?i:\b(?:{who}) di (?:anni )?\d{{1,3}}(?: anni)?\b)",
                r"(?i:\betà:? \d{1,3}(?: anni)?\b)",
                r"(?i:\bdi anni \d{1,3}\b)",
            ),
            "DATE": _written(months),
            "ADDRESS": (rf"\b{way} {_LINKS}{_WORD}(?: {_LINKS}{_WORD}){{0,2}},? (?:n\.? ?)?\d{{1,4}}\b{_TOWN}",),
            "PASSPORT": (r"(?i:\bpassaporto(?: n\.)?:? )[A-Z]{2}\d{7}\b",),
            "ID": (
                r"(?i:\bcarta d['’]identità(?: elettronica)?(?: n\.)?:? )(?:[A-Z]{2} ?\d{7}|[A-Z]{2}\d{5}[A-Z]{2})\b",
            ),
            "LICENCE": (r"(?i:\bpatente(?: di guida)?(?: n\.)?:? )(?:[A-Z]{2}\d{7}[A-Z]|U1\w{7}[A-Z])\b",),
            "CURRENCY": _money(r"lire|chf"),
            "HANDLE": _HANDLE,
        },
    )


PATTERNS = {
    "english": _english(),
    "german": _german(),
    "french": _french(),
    "spanish": _spanish(),
    "italian": _italian(),
}
"""Patterns, keyed by the name of the language."""
LANGUAGES = tuple(PATTERNS)

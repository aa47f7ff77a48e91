"""Finds and masks personal information in texts, by patterns and optionally by a model for named entities.

`redact("Call Dr. Smith at 212-555-0123")` is "Call [PERSON] at [PHONE]". The patterns are those of presidio-analyzer,
checksums and context words included, over a blank spaCy pipeline, and some of our own for clinical notes:
record numbers, ages, addresses, names after a title, written dates, sums of money. Patterns find no names without a
title and no places: those need a model for named entities. Masking is a convention, not a guarantee.

Nothing here opens a connection or writes a log.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import ConfigError
from common.models import checkpoints
from common.system.extras import needs
from common.system.optional import blocked_import

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine, EntityRecognizer

Span = tuple[int, int, str]
"""Start, end and kind of a piece of text."""

_THRESHOLD = 0.3
"""Minimum of presidio's scores: distinctive patterns exceed it, weak ones only next to a context word."""
_REGIONS = ("US", "GB", "DE", "FR")
"""Regions whose telephone numbers are found without a country code; each costs time."""

_MASKS = {
    "EMAIL_ADDRESS": "EMAIL",
    "PHONE_NUMBER": "PHONE",
    "US_SSN": "SSN",
    "UK_NHS": "RECORD",
    "US_ITIN": "SSN",
    "US_MBI": "RECORD",
    "US_NPI": "LICENCE",
    "MEDICAL_LICENSE": "LICENCE",
    "US_DRIVER_LICENSE": "LICENCE",
    "US_PASSPORT": "PASSPORT",
    "US_BANK_NUMBER": "ACCOUNT",
    "CREDIT_CARD": "CARD",
    "IBAN_CODE": "IBAN",
    "IP_ADDRESS": "IP",
    "MAC_ADDRESS": "IP",
    "DATE_TIME": "DATE",
    "UK_POSTCODE": "ADDRESS",
    # Kinds of models for named entities.
    "PER": "PERSON",
    "LOC": "LOCATION",
    "GPE": "LOCATION",
    "FAC": "LOCATION",
    "ORG": "ORGANISATION",
}
"""Mask of each kind whose mask has a name other than the kind's. Kinds of `_PATTERNS` have masks of their own names."""

_MODEL_KINDS = ("PERSON", "PER", "LOC", "LOCATION", "GPE", "FAC", "ORG", "DATE")
"""Kinds of named entities that are taken from a model."""

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_NAME = r"[A-Z][\w'’-]*(?: [A-Z]\.)?(?: [A-Z][\w'’-]+){0,2}"
_WAY = r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Boulevard|Blvd|Court|Ct|Way|Place|Square|Terrace|Highway)"
_FILED = r"(?:medical )?record|chart|case|patient|account|insurance|member"
_WHO = r"man|woman|lady|gentleman|male|female|boy|girl|patient"
_NUMBER = r"\d+(?:,\d+)*(?:\.\d+)?"

_PATTERNS = {
    "PERSON": (
        rf"\b(?:Dr|Mr|Mrs|Ms|Miss|Mx|Prof|Professor|Doctor|Nurse|Sir)\b\.? {_NAME}",
        rf"(?i:\b(?:my name is|name|signed|patient|attending|physician):?) {_NAME}(?=[\s,.;]|$)",
    ),
    "RECORD": (rf"(?i:\b(?:MRN|{_FILED})(?: ?(?:id|no|number))?\.?)[ :#]*[A-Za-z]{{0,3}}-?\d[\d-]{{3,}}\b",),
    "AGE": (
        r"(?i:\b\d{1,3}[- ]?(?:years?|yrs?|months?|weeks?)[- ]old\b)",
        r"(?i:\b\d{1,3} ?(?:y/?o|yo)\b)",
        r"(?i:\bage[d:]? \d{1,3}\b)",
        rf"(?i:\b(?:{_WHO}) of \d{{1,3}}\b)",
    ),
    "DATE": (
        rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? (?:19|20)\d\d\b)?",
        rf"\b{_MONTH} (?:19|20)\d\d\b",
        rf"\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?: (?:19|20)\d\d)?\b",
    ),
    "ADDRESS": (
        rf"\b\d{{1,5}} (?:[A-Z][\w'’-]+ ){{1,3}}{_WAY}\b\.?(?:,? (?:Apt|Suite|Unit)\.? ?\w+)?",
        r"\b[A-Z]{2} \d{5}(?:-\d{4})?\b",
        r"\bP\.? ?O\.? Box \d+\b",
    ),
    "CURRENCY": (
        rf"[$€£¥] ?{_NUMBER}(?: ?(?i:k|thousand|million|billion)\b)?",
        rf"(?i:\b{_NUMBER} ?(?:dollars|euros|pounds|bucks|usd|eur|gbp)\b)",
    ),
    "HANDLE": (r"(?<![\w@.\]])@\w{2,}", r"(?<![\w/])/?u/[\w-]{3,}"),
}


class Redactor:
    """Finds and masks personal information.

    Args:
        names: An additional model for named entities: a spaCy package or folder, or a transformers token classifier by
            folder or by name in the local cache; None: patterns only.

    Raises:
        ConfigError: There is no such model here.
    """

    def __init__(self, names: str | None = None) -> None:
        # spaCy's tokeniser needs no torch, but a model for names may.
        self._analyzer = _analyzer("transformers", *(() if names else ("torch",)))
        self._named = _model(names) if names else None

    def spans(self, text: str) -> list[Span]:
        """Find spans of personal information, in order; overlapping ones are merged and get the kind of the longest."""
        text = text.encode("utf-8", "replace").decode()  # half a surrogate pair is one "?"
        spans = [(hit.start, hit.end, hit.entity_type) for hit in self._analyzer.analyze(text, language="en")]
        if self._named:
            spans += [span for span in self._named(text) if span[2] in _MODEL_KINDS]
        return _merged((start, end, _MASKS.get(kind, kind)) for start, end, kind in spans if start < end)

    def redact(self, text: str) -> str:
        """Replace each span of personal information by a mask such as [EMAIL]; doing so twice changes nothing more."""
        pieces, at = [], 0
        for start, end, kind in self.spans(text):
            pieces += [text[at:start], f"[{kind}]"]
            at = end
        return "".join([*pieces, text[at:]])

    def entities(self, text: str) -> Counter[str]:
        """Count the spans of personal information of each kind."""
        return Counter(kind for _, _, kind in self.spans(text))


@cache
def default() -> Redactor:
    """Return the redactor with patterns only."""
    return Redactor()


def redact(text: str) -> str:
    """Redact a text by patterns only; see `Redactor.redact`."""
    return default().redact(text)


def entities(text: str) -> Counter[str]:
    """Count personal information by patterns only; see `Redactor.entities`."""
    return default().entities(text)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[tuple[int, int, int, str]] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1], span[2])):
        if merged and start < merged[-1][1]:
            first, last, longest, named = merged.pop()
            named = kind if end - start > longest else named
            merged.append((first, max(last, end), max(longest, end - start), named))
        else:
            merged.append((start, end, end - start, kind))
    return [(start, end, kind) for start, end, _, kind in merged]


def _analyzer(*unneeded: str) -> "AnalyzerEngine":
    """Return a Presidio analyzer with our recognisers, without weights and without importing `unneeded` packages."""
    needs("the search for personal information", "presidio_analyzer", extra="transformers")
    with blocked_import(*unneeded):
        import spacy
        from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
        from presidio_analyzer.nlp_engine import SpacyNlpEngine

    logging.getLogger("presidio-analyzer").setLevel(logging.WARNING)  # it logs every text
    engine = SpacyNlpEngine()
    engine.nlp = {"en": spacy.blank("en")}  # type: ignore[assignment] # `load` would download one
    registry = RecognizerRegistry(recognizers=_recognizers(), supported_languages=["en"])
    return AnalyzerEngine(
        registry=registry, nlp_engine=engine, supported_languages=["en"], default_score_threshold=_THRESHOLD
    )


def _recognizers() -> Sequence["EntityRecognizer"]:
    from presidio_analyzer import Pattern, PatternRecognizer
    from presidio_analyzer import predefined_recognizers as presidio

    class Email(presidio.EmailRecognizer):
        """A recogniser that accepts any address: the original checks a list of suffixes that it downloads."""

        def validate_result(self, pattern_text: str) -> None:
            del pattern_text

    ready = [
        presidio.CreditCardRecognizer,
        presidio.CryptoRecognizer,
        presidio.DateRecognizer,
        presidio.IbanRecognizer,
        presidio.IpRecognizer,
        presidio.UrlRecognizer,
        presidio.MedicalLicenseRecognizer,
        presidio.UsSsnRecognizer,
        presidio.UsItinRecognizer,
        presidio.UsPassportRecognizer,
        presidio.UsBankRecognizer,
        presidio.NhsRecognizer,
        presidio.UsLicenseRecognizer,
    ]
    own_patterns = [
        PatternRecognizer(
            supported_entity=kind,
            patterns=[Pattern(f"{kind} {number}", regex, 0.7) for number, regex in enumerate(patterns)],
            global_regex_flags=re.MULTILINE,
        )
        for kind, patterns in _PATTERNS.items()
    ]
    return [Email(), presidio.PhoneRecognizer(supported_regions=_REGIONS), *(kind() for kind in ready), *own_patterns]


def _model(name: str) -> Callable[[str], list[Span]]:
    """Load a model for named entities; code that comes with it is never run, and nothing is downloaded."""
    import spacy

    try:
        if (Path(name) / "meta.json").is_file() or spacy.util.is_package(name):
            pipeline = spacy.load(name)
            return lambda text: [(piece.start_char, piece.end_char, piece.label_) for piece in pipeline(text).ents]
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ConfigError(
            "the model for names cannot be loaded",
            expected="a spaCy package or folder",
            got=f"{name!r} ({type(error).__name__})",
        ) from error
    return _classifier(name)


def _classifier(name: str) -> Callable[[str], list[Span]]:
    from transformers import TokenClassificationPipeline

    model, tokenizer = checkpoints.load(name, "AutoModelForTokenClassification", what="model for names")
    pipeline: Any = TokenClassificationPipeline
    classify = pipeline(model=model, tokenizer=tokenizer, aggregation_strategy="simple")
    return lambda text: [(entity["start"], entity["end"], entity["entity_group"]) for entity in classify(text)]

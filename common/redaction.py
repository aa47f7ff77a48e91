"""Finds and masks personal information in texts, by patterns and optionally by a model for named entities.

`redact("Call Dr. Smith at 212-555-0123")` is "Call [PERSON] at [PHONE]". The patterns are those of presidio-analyzer,
checksums included, over a blank spaCy pipeline, which sees no context words, and our own patterns for clinical notes:
record numbers, ages, addresses, names after a title, written dates and sums of money, in the language of the text
(`personal_patterns`). Patterns find neither places nor names without a title, which require a model for named entities.
Masking is a convention, not a guarantee.

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
from common.personal_patterns import LANGUAGES, PATTERNS
from common.system.extras import blocked_import, needs
from common.validate import one_of

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine, EntityRecognizer

Span = tuple[int, int, str]
"""Start, end and kind of a piece of text."""

_THRESHOLD = 0.3
"""Minimum presidio score. Distinctive patterns exceed it. Weak patterns would exceed it only next to a context word,
which a blank pipeline does not see."""
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
    "DE_TAX_ID": "TAX",
    "DE_HEALTH_INSURANCE": "RECORD",
    "DE_SOCIAL_SECURITY": "SSN",
    "DE_ID_CARD": "ID",
    "DE_FUEHRERSCHEIN": "LICENCE",
    "ES_NIF": "ID",
    "ES_NIE": "ID",
    "IT_FISCAL_CODE": "TAX",
    "IT_VAT_CODE": "TAX",
    # Kinds of models for named entities.
    "PER": "PERSON",
    "LOC": "LOCATION",
    "GPE": "LOCATION",
    "FAC": "LOCATION",
    "ORG": "ORGANISATION",
}
"""Mask of each kind whose mask differs from the kind's name. Kinds of our own patterns are masked by their names."""

_MODEL_KINDS = ("PERSON", "PER", "LOC", "LOCATION", "GPE", "FAC", "ORG", "DATE")
"""Kinds of named entities that are taken from a model."""


class Redactor:
    """Finds and masks personal information.

    Args:
        names: An additional model for named entities: a spaCy package or folder, or a transformers token classifier by
            folder or by name in the local cache; None for patterns only.
        language: Language of the texts, from `personal_patterns.LANGUAGES`.

    Raises:
        ConfigError: There is no such model here, or there are no patterns for the language.
    """

    def __init__(self, names: str | None = None, language: str = "english") -> None:
        one_of("language", language, among=LANGUAGES)
        # spaCy's tokeniser needs no torch, but a model for names may.
        self._analyzer = _analyzer(language, "transformers", *(() if names else ("torch",)))
        self._code = PATTERNS[language].code
        self._named = _model(names) if names else None

    def spans(self, text: str) -> list[Span]:
        """Return ordered spans of personal information; overlapping spans are merged and get the longest one's kind."""
        text = text.encode("utf-8", "replace").decode()  # half a surrogate pair is one "?"
        spans = [(hit.start, hit.end, hit.entity_type) for hit in self._analyzer.analyze(text, language=self._code)]
        if self._named:
            spans += [span for span in self._named(text) if span[2] in _MODEL_KINDS]
        return _merged((start, end, _MASKS.get(kind, kind)) for start, end, kind in spans if start < end)

    def redact(self, text: str) -> str:
        """Replace each span of personal information by a mask such as [EMAIL]; the operation is idempotent."""
        pieces, at = [], 0
        for start, end, kind in self.spans(text):
            pieces += [text[at:start], f"[{kind}]"]
            at = end
        return "".join([*pieces, text[at:]])

    def entities(self, text: str) -> Counter[str]:
        """Return the number of spans of personal information of each kind."""
        return Counter(kind for _, _, kind in self.spans(text))


@cache
def default(language: str = "english") -> Redactor:
    """Return the redactor that uses only patterns."""
    return Redactor(language=language)


def redactor(language: str, names: str | None) -> Redactor:
    """Return the redactor that uses only patterns or, if `names` is given, that model for names as well."""
    return Redactor(names, language) if names else default(language)


def redact(text: str, language: str = "english") -> str:
    """Redact a text, using only patterns; see `Redactor.redact`."""
    return default(language).redact(text)


def entities(text: str, language: str = "english") -> Counter[str]:
    """Count spans of personal information, using only patterns; see `Redactor.entities`."""
    return default(language).entities(text)


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


def _analyzer(language: str, *unneeded: str) -> "AnalyzerEngine":
    """Return a Presidio analyzer with our recognisers, without weights and without importing `unneeded` packages."""
    needs("the search for personal information", "presidio_analyzer", extra="transformers")
    with blocked_import(*unneeded):
        import spacy
        from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
        from presidio_analyzer.nlp_engine import SpacyNlpEngine

    logging.getLogger("presidio-analyzer").setLevel(logging.WARNING)  # it logs every text
    engine, code = SpacyNlpEngine(), PATTERNS[language].code
    # `load` would download one. No pattern reads its tokens, and the French tokeniser alone takes seconds to compile.
    engine.nlp = {code: spacy.blank("xx")}  # type: ignore[assignment]
    registry = RecognizerRegistry(recognizers=_recognizers(language), supported_languages=[code])
    return AnalyzerEngine(
        registry=registry, nlp_engine=engine, supported_languages=[code], default_score_threshold=_THRESHOLD
    )


def _recognizers(language: str) -> Sequence["EntityRecognizer"]:
    from presidio_analyzer import Pattern, PatternRecognizer
    from presidio_analyzer import predefined_recognizers as presidio

    class Email(presidio.EmailRecognizer):
        """A recogniser that accepts any address: the original checks a list of suffixes that it downloads."""

        def validate_result(self, pattern_text: str) -> None:
            del pattern_text

    chosen = PATTERNS[language]
    of_any_language = [
        Email,
        presidio.CreditCardRecognizer,
        presidio.CryptoRecognizer,
        presidio.DateRecognizer,
        presidio.IbanRecognizer,
        presidio.IpRecognizer,
        presidio.UrlRecognizer,
    ]
    of_the_language = [getattr(presidio, name) for name in chosen.recognizers]
    own_patterns = [
        PatternRecognizer(
            supported_entity=kind,
            patterns=[Pattern(f"{kind} {number}", regex, 0.7) for number, regex in enumerate(patterns)],
            supported_language=chosen.code,
            global_regex_flags=re.MULTILINE,
        )
        for kind, patterns in chosen.own.items()
    ]
    return [
        presidio.PhoneRecognizer(supported_regions=chosen.regions, supported_language=chosen.code),
        *(kind(supported_language=chosen.code) for kind in (*of_any_language, *of_the_language)),
        *own_patterns,
    ]


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
            do="Install it, or name a spaCy package or folder that is here",
            got=f"{name!r} ({type(error).__name__})",
        ) from error
    return _classifier(name)


def _classifier(name: str) -> Callable[[str], list[Span]]:
    from transformers import TokenClassificationPipeline

    model, tokenizer = checkpoints.load_checkpoint(name, "AutoModelForTokenClassification", what="model for names")
    pipeline: Any = TokenClassificationPipeline
    classify = pipeline(model=model, tokenizer=tokenizer, aggregation_strategy="simple")
    return lambda text: [(entity["start"], entity["end"], entity["entity_group"]) for entity in classify(text)]

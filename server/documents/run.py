"""`run.json`: ID, progress and parts of a run; `traffic.json` and `input_weaknesses.json` of a simulation."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar, Self

from common.domain import PRESENT_NAMES
from common.phrases import capital
from common.versions import CAUCUS
from server.documents.codec import ABSENT, from_json
from server.documents.files import Document

VERSIONS = ("flwr", "torch", "sentence-transformers", "dp-accounting", "numpy", "cryptography")
"""Packages for which `run.json` contains the version, in addition to our own."""

COMPLETE, PARTIAL, REFUSED = "complete", "partial", "refused"

TEXTS = "synthetic.jsonl"
"""File of the synthetic texts, in a run folder."""
ZERO_SHOT = "zero_shot.jsonl"
"""File of the texts that the models wrote before any answer."""
TRANSFER = "transfer.jsonl"
"""File of public texts with the labels that the released numbers give them."""


def versions() -> dict[str, str]:
    """Return the versions of the installed packages that a run depends on."""
    installed = {"caucus": CAUCUS}
    for name in VERSIONS:
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary(Document):
    """The `run.json` document.

    Attributes:
        run: ID of the run.
        status: "complete"; "partial" for a run that can be resumed; "refused" for a complete run with texts that
            disclose records, as found in a simulation (`refuse_disclosures`).
        method: Name of the method.
        task: Name of the task.
        parties: L, the number of parties.
        kind: Kind of the texts in the plural, such as "discharge letters"; missing in earlier versions.
        labels: Public descriptions of the task's labels, keyed by label; only `UNLABELLED` for texts without labels;
            empty for a baseline.
        seconds: Wall time in seconds, excluding interruptions.
        warnings: Advice on each query whose answers are expected to be mere noise, keyed by query; a list in earlier
            versions.
        reason: Why the run is partial; written by earlier versions only.
        spans: Public descriptions of the task's types of spans, keyed by type; missing if there are none.
        versions: Versions of the program and its libraries.
        started: Day on which the run began, such as 2026-11-24; this field and the following ones are missing in
            earlier versions.
        models: Names of the language models.
        prompts: SHA-256 of the wordings of prompts in use, in hexadecimal digits.
        encoder: Name of the encoder.
        purpose: Purpose of the texts, as the coordinator states it.
        recipient: Recipient of the texts, as the coordinator states it.
        hospitals: Names of the hospitals of a deployment.
    """

    FILE: ClassVar[str] = "run.json"

    run: str = ""
    status: str
    method: str
    task: str
    parties: int
    kind: str | None = field(default=None, metadata=ABSENT)
    labels: Mapping[str, str | None] | None = field(default=None, metadata=ABSENT)
    seconds: float
    warnings: Mapping[str, str] | None = field(default=None, metadata=ABSENT)
    reason: str | None = field(default=None, metadata=ABSENT)
    spans: Mapping[str, str] | None = field(default=None, metadata=ABSENT)
    versions: Mapping[str, str] = field(default_factory=dict)
    started: str | None = field(default=None, metadata=ABSENT)
    models: tuple[str, ...] | None = field(default=None, metadata=ABSENT)
    prompts: str | None = field(default=None, metadata=ABSENT)
    encoder: str | None = field(default=None, metadata=ABSENT)
    purpose: str | None = field(default=None, metadata=ABSENT)
    recipient: str | None = field(default=None, metadata=ABSENT)
    hospitals: tuple[str, ...] | None = field(default=None, metadata=ABSENT)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read the document back, as `Document.from_json` does."""
        if isinstance(value, Mapping) and isinstance(listed := value.get("warnings"), list):
            value = {**value, "warnings": {warning: warning for warning in listed}}
        summary = from_json(cls, value)
        return replace(summary, method=PRESENT_NAMES.get(summary.method, summary.method))

    @property
    def complete(self) -> bool:
        """Whether the run reached its end."""
        return self.status in {COMPLETE, REFUSED}

    @property
    def forecasts(self) -> dict[str, "Weakness"]:
        """The warnings as weaknesses, keyed by query."""
        code = WeaknessCode.ANSWERS_ARE_NOISE
        return {query: Weakness.from_advice(code, warning) for query, warning in (self.warnings or {}).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic(Document):
    """The `traffic.json` document of a simulation that ran in one process and was not resumed.

    Attributes:
        parties: Number of parties.
        bytes_to_parties: Number of bytes in all messages to the parties.
        bytes_from_parties: Number of bytes in all replies from the parties.
    """

    FILE: ClassVar[str] = "traffic.json"

    parties: int
    bytes_to_parties: int
    bytes_from_parties: int


class WeaknessCode(StrEnum):
    """Names of the weaknesses, which stay the same, the gravest first."""

    RECORDS_DISCLOSED = "records-disclosed"  # more often than test texts, by a test that nothing was learned
    PRIVATE_TEXTS_PUBLIC = "private-texts-public"
    LARGE_DELTA = "large-delta"
    RECORDS_WITHOUT_USER = "records-without-user"
    TEST_TEXTS_PRIVATE = "test-texts-private"
    TEST_TEXTS_PUBLIC = "test-texts-public"
    FEW_TEST_TEXTS = "few-test-texts"  # fewer than 100
    NO_BETTER_THAN_GUESSING = "no-better-than-guessing"
    NO_CLEAR_GAIN = "no-clear-gain"  # or a loss, against the same models without the hospitals
    ANSWERS_ARE_NOISE = "answers-are-noise"  # spread by less than half of the noise (`signal.HOPELESS`), or so expected
    LABELS_WITHOUT_TEXT = "labels-without-text"
    LABEL_SHARES_DIFFER = "label-shares-differ"  # between texts and records, by more than a quarter
    TEXTS_LOST = "texts-lost"  # more than a tenth of the requested texts
    TEXTS_REPEATED = "texts-repeated"  # fewer than half of the texts are different
    PARTIES_WITHOUT_RECORD = "parties-without-record"
    LABELS_WITHOUT_RECORD = "labels-without-record"
    LABELS_WITH_ONE_RECORD = "labels-with-one-record"
    LABELS_IGNORED = "labels-ignored"
    RECORDS_REPEATED = "records-repeated"
    UNNAMED = "unnamed"  # of an earlier version, or of a later one whose code is unknown here

    @classmethod
    def _missing_(cls, value: object) -> "WeaknessCode":
        del value
        return cls.UNNAMED


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness(Document):
    """A weakness of a run, with advice.

    Attributes:
        code: Its name.
        what: The weakness and its consequence, with the run's own figures.
        do: The change to make.
        simulation_only: Whether the figures are of private records, without noise.
    """

    code: WeaknessCode = WeaknessCode.UNNAMED
    what: str
    do: str
    simulation_only: bool = False

    @classmethod
    def from_advice(cls, code: WeaknessCode, advice: str, *, simulation_only: bool = False) -> Self:
        """Return the weakness of a sentence that has what it is and, after a semicolon, the change to make."""
        what, _, do = advice.partition("; ")
        return cls(code=code, what=what, do=capital(do), simulation_only=simulation_only)

    def __str__(self) -> str:
        """Return the weakness as one line of text."""
        name = "" if self.code is WeaknessCode.UNNAMED else f"{self.code}: "
        simulated = " (simulation only)" if self.simulation_only else ""
        return f"{name}{self.what}{simulated}. {capital(self.do)}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWeaknesses(Document):
    """The `input_weaknesses.json` document, which a simulation writes.

    Attributes:
        weaknesses: Weaknesses of the files, found before any query is asked.
    """

    FILE: ClassVar[str] = "input_weaknesses.json"

    weaknesses: tuple[Weakness, ...]

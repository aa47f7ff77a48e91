"""`census.json`: the class sums that a run released, and the guarantee under which any later run may use them.

The guarantee covers everything that is computed from the file, any number of times. The file is not signed. A run that
begins with the file repeats the file's statements, which are only as trustworthy as the file
(`server/operators/class_sums_file.py` checks what can be checked).

`classifier.json`: a classifier of texts, learned from the numbers or from texts, which costs no further privacy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from server.documents.codec import ABSENT, OTHERS
from server.documents.files import Document
from server.documents.privacy import Privacy


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionnaireNumbers(Document):
    """Noised counts of the records with each answer to a questionnaire (`common/queries/questionnaire.py`).

    Attributes:
        answers: Number of records for each question and answer.
        noise: Standard deviation of the noise in each number of `answers`, in records.
        listed: For each term, the number of records that have it among their first `first` listed terms.
        term_noise: Standard deviation of the noise in each number of `listed`, in records.
        first: Maximum number of terms for which one record counts.
    """

    answers: Mapping[str, Mapping[str, float]]
    noise: float
    listed: Mapping[str, float] = field(default_factory=dict)
    term_noise: float = 0.0
    first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSumsNumbers(Document):
    """The released numbers; see `server.operators.class_sums.NoisySums`.

    Attributes:
        labels: The labels.
        sums: (labels, directions) noised sums of the records' coordinates.
        counts: (labels,) noised counts.
        noise: Standard deviation of the noise in the sums.
        count_noise: Standard deviation of the noise in the counts.
        softness: Softness of the nearest-mean classifier; public.
        radius: Largest distance of a record's coordinates from its label's centre.
        basis: (directions, dimensions) float32 in row-major order, as base64.
        centres: (labels, dimensions) float32, encoded like `basis`.
        questionnaire: Answers about the form of the records' texts; None if no questionnaire was asked.
    """

    labels: tuple[str, ...]
    sums: tuple[Any, ...]
    counts: tuple[Any, ...]
    noise: float
    count_noise: float
    softness: float
    radius: float
    basis: str
    centres: str
    questionnaire: QuestionnaireNumbers | None = field(default=None, metadata=ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(Document):
    """Numbers that a run released, in a separate file, such as `census.json`.

    Attributes:
        statement: The guarantee in a sentence.
        run: The run that asked the parties.
        plan_digest: Hex digest of that run's plan.
        encoder: Digest of the encoder that computed the vectors.
        numbers: The numbers, such as the fields of `ClassSumsNumbers`, which the file stores beside the fields of this
            class.
        privacy: The run's `privacy.json`.
    """

    FILE: ClassVar[str] = "census.json"

    statement: str = ""
    run: str
    plan_digest: str
    encoder: str
    numbers: Mapping[str, Any] = field(default_factory=dict, metadata=OTHERS)
    privacy: Privacy


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedClassifier(Document):
    """A linear classifier; see `server.metrics.linear.LinearClassifier`.

    Attributes:
        statement: The guarantee in sentences.
        source: Description of what it was learned from.
        run: The run that asked the parties.
        encoder: Digest of the encoder that computes the vectors.
        labels: The labels.
        weights: (labels, dimensions) float32 in row-major order, as base64.
        intercepts: (labels,) intercepts.
        privacy: The run's `privacy.json`.
    """

    FILE: ClassVar[str] = "classifier.json"

    statement: str
    source: str
    run: str
    encoder: str
    labels: tuple[str, ...]
    weights: str
    intercepts: tuple[float, ...]
    privacy: Privacy

"""Class sums, with a questionnaire about the form of the records' texts, as one query with one noised vector."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError
from common.privacy.sensitivity import Sensitivity
from common.queries.arrays import check_shape
from common.queries.class_sums import ClassSums, ClassSumsSpec
from common.queries.questions import QUESTIONS, Question
from common.queries.terms import check_terms
from common.validate import integers_in


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionnaireSpec(ClassSumsSpec):
    """Class sums, and the number of records with each answer to closed questions and with each term of a public list.

    A record of one of the plan's labels adds to three parts of the answer, which share no coordinate:

    1. what it adds to class sums: integers z with |z|^2 <= B^2, and A (`ClassSumsSpec`);
    2. for each question q that is asked, w_q to the one coordinate of its answer: a rule gives each text exactly one
       of the question's answers (`questions.py`);
    3. w to each of its first m distinct terms, in their order in the text (`terms.Extractor`): to m coordinates at
       most. Terms after these are not counted. Which terms count depends on the text alone.

    Coordinates are disjoint, so squares and absolute values add up. For one record more or less, on the grid,

        l2^2 = B^2 + A^2 + sum_q w_q^2 + m w^2,      l1 = floor(sqrt(k) B) + A + sum_q w_q + m w,

    and a record that reaches the bounds of class sums and has m terms reaches these values. Which terms are on the list
    is public, and the bounds hold for any list, even an empty one. Several records of a user add at most that many
    times as much, as in `closed_set`.

    Attributes:
        words: w_q for the question of this name, in grid units; 0 if it is not asked. The same applies to the next five
            attributes.
        sentences: See `words`.
        person: See `words`.
        numbers: See `words`.
        abbreviations: See `words`.
        ending: See `words`.
        first: m, maximum number of terms that count for a record; 0 if there is no list.
        term: w, grid units that a record adds to each of its first terms; 0 if and only if `first` is 0.
    """

    kind: ClassVar[str] = "questionnaire"
    words: int = 0
    sentences: int = 0
    person: int = 0
    numbers: int = 0
    abbreviations: int = 0
    ending: int = 0
    first: int = 0
    term: int = 0

    def __post_init__(self) -> None:
        ClassSumsSpec.__post_init__(self)  # super() does not work in a dataclass with slots
        integers_in(0, self.grid, **{question.name: getattr(self, question.name) for question in QUESTIONS})
        integers_in(0, 2**10, first=self.first)
        integers_in(0, self.grid, term=self.term)
        if bool(self.first) != bool(self.term):
            raise ConfigError("first and term", expected="both 0 or neither", got=f"{self.first} and {self.term}")
        if self.labels_per_record != 1:  # its form would count once for each label
            raise ConfigError("labels_per_record of a questionnaire", expected="1", got=self.labels_per_record)
        if not self.questions and not self.first:
            raise ConfigError("questionnaire", expected="a question, or terms", got="neither")

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions that are asked."""
        return tuple(question for question in QUESTIONS if self.weight(question))

    def weight(self, question: Question) -> int:
        """Return w_q, the number of grid units that a record adds to the coordinate of its answer to this question."""
        units: int = getattr(self, question.name)
        return units

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the summed answer, in grid units."""
        weights = [self.weight(question) for question in self.questions] + [self.term] * self.first
        l1 = math.isqrt(self.directions * self.grid**2) + self.count + sum(weights)
        l2_squared = self.grid**2 + self.count**2 + sum(weight**2 for weight in weights)
        return Sensitivity(
            l1=l1 * self.max_records,
            l2_squared=l2_squared * self.max_records**2,
            touched=(self.directions + 1 + len(weights)) * self.max_records,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Questionnaire(ClassSums):
    """The query for class sums with a questionnaire.

    Attributes:
        spec: The planned specification.
        terms: (bytes,) uint8, the public list of terms as `terms.encode_terms` writes it; (0,) without terms.
    """

    dtypes: ClassVar[Mapping[str, str]] = {**ClassSums.dtypes, "terms": "|u1"}
    spec: QuestionnaireSpec
    terms: NDArray[np.uint8]

    def __post_init__(self) -> None:
        ClassSums.__post_init__(self)  # super() does not work in a dataclass with slots
        if self.spec.first:
            check_terms(self.spec.kind, self.terms)
        else:
            check_shape(self.spec.kind, "terms", self.terms, np.uint8, (0,))

    @property
    def listed(self) -> int:
        """Number of terms on the list."""
        return int(np.count_nonzero(self.terms == ord("\n")))

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: class sums, the answers to each question in order, the terms."""
        return self.spec.sums + sum(len(question.answers) for question in self.spec.questions) + self.listed

"""Uses of the answers to a questionnaire: proportions of the records, and selection of texts by their form.

Everything here is a function of the coordinator's texts and of noised numbers, so nothing can cost privacy.

Each question counts every record once, and all counts have equal noise. The counts are divided by one estimate of the
number of records; the results for each question are then replaced by the nearest distribution. A term's proportion is
its count divided by the same estimate, limited to [0, 1].
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from common.queries.questionnaire import QuestionnaireSpec
from common.queries.questions import LENGTHS, QUESTIONS, answers
from common.queries.terms import Extractor, words
from server.documents.class_sums import ClassSumsNumbers, QuestionnaireNumbers
from server.domain import Candidate
from server.operators.class_sums import Floats, Labels, NoisySums

WIDER = 4
"""Factor by which a questionnaire enlarges the pools of exemplars, so that those closest in form can be chosen."""
_Z = 1.96
_LONGEST = 64
"""Maximum number of bytes of a term on the list of common words."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aims:
    """Estimated proportions of the records with each answer to each question, followed by those with each term.

    Attributes:
        numbers: The released numbers.
        shares: (F,) in [0, 1].
        noise: Standard deviation of the noise in the proportion of an answer.
        term_noise: Standard deviation of the noise in the proportion of a term.
        records: Estimated number of records, at least 1.
    """

    numbers: QuestionnaireNumbers
    shares: Floats
    noise: float
    term_noise: float
    records: float

    def features(self, texts: Sequence[str]) -> Floats:
        """Return features, (n, F): 1 if a text has the answer, or the term among its first terms, and 0 otherwise."""
        columns = [
            np.eye(len(question.answers))[column]
            for question, column in zip(QUESTIONS, answers(QUESTIONS, texts).T, strict=True)
        ]
        terms, first = list(self.numbers.listed), self.numbers.first
        present = np.zeros((len(texts), len(terms)))
        extractor = Extractor(terms)
        for row, text in zip(present, texts, strict=True):
            row[list(extractor.first(text, first))] = 1
        return np.concatenate([*columns, present], axis=1)

    @property
    def variances(self) -> Floats:
        """Variances of the proportions, (F,): the variance of the noise plus the sampling variance of the records."""
        noise = np.full(len(self.shares), self.noise)
        noise[len(noise) - len(self.numbers.listed) :] = self.term_noise
        return np.asarray(noise**2 + (self.shares * (1 - self.shares) + 1 / self.records) / self.records)

    def rows(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield the question (empty for a term), answer, proportion and half-width of its 95% interval, in order."""
        named = [(question.name, answer) for question in QUESTIONS for answer in question.answers]
        named += [("", term) for term in self.numbers.listed]
        for (question, answer), share in zip(named, self.shares.tolist(), strict=True):
            yield question, answer, share, _Z * (self.noise if question else self.term_noise)


def aims_of(released: ClassSumsNumbers | NoisySums) -> Aims:
    """Return the records' proportions as estimated from released numbers that include a questionnaire."""
    numbers = released.questionnaire
    assert numbers, "asked for"
    label_counts = np.array(released.counts, dtype=np.float64)
    by_name = numbers.answers
    counted = [np.array([by_name[question.name][answer] for answer in question.answers]) for question in QUESTIONS]
    noised = [(label_counts, released.count_noise), *((given, numbers.noise) for given in counted)]
    totals = [(given.sum(), len(given) * noise**2) for given, noise in noised]
    # All are estimates of one number; without noise they are equal.
    precision = np.array([1 / variance if variance else 1.0 for _, variance in totals])
    records = max(1.0, float(precision @ [total for total, _ in totals]) / float(precision.sum()))
    listed = np.fromiter(numbers.listed.values(), np.float64)
    of_terms = np.clip(listed / records, 0, 1)
    return Aims(
        numbers=numbers,
        shares=np.concatenate([*(_distribution(given / records) for given in counted), of_terms]),
        noise=numbers.noise / records,
        term_noise=numbers.term_noise / records,
        records=records,
    )


def _distribution(values: Floats) -> Floats:
    """Return the distribution that is nearest to these values, by squared distance (Duchi et al. 2008)."""
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(falling > excess)[-1]], 0))


def nearest(features: Floats, shares: Floats, variances: Floats, size: int) -> list[int]:
    """Return the indices of `size` rows, ascending, whose mean features come close to the proportions.

    Rows are removed one at a time. Each step removes the row whose removal leaves the smallest sum of squared
    differences from the proportions, each divided by its variance. A very noisy proportion therefore hardly counts.

    Args:
        features: (n, F) of 0 and 1.
        shares: (F,) target proportions.
        variances: (F,) above 0.
        size: Number of rows to keep.
    """
    removed, sums = np.zeros(len(features)), features.sum(axis=0)
    for left in range(len(features) - 1, max(1, size) - 1, -1):
        weight = 1 / left
        change = (weight**2 - 2 * weight * (sums * weight - shares)) / variances
        worst = int((features @ change + removed).argmin())
        sums = sums - features[worst]
        removed[worst] = np.inf
    return [int(place) for place in np.flatnonzero(removed == 0)]


def nearest_by_label(aimed: Aims, texts: Sequence[str], labels: Labels, size: int) -> list[int]:
    """Return the indices of `size` texts that come close to `shares`; each label keeps its proportion of the texts."""
    of_labels = np.eye(int(labels.max()) + 1)[labels]
    of_labels = of_labels[:, of_labels.any(axis=0)]
    shares = of_labels.mean(axis=0)
    return nearest(
        np.concatenate([of_labels, aimed.features(texts)], axis=1),
        np.concatenate([shares, aimed.shares]),
        np.concatenate([(shares * (1 - shares) + 1 / size) / size / len(shares), aimed.variances]),
        size,
    )


def nearest_in_pools(
    aimed: Aims, pools: Mapping[str, Sequence[int]], candidates: Sequence[Candidate], size: int
) -> dict[str, list[int]]:
    """Return, for each label, the `size` members of its pool that come close to the proportions; all if fewer."""
    near = {}
    for label, pool in pools.items():
        rows = aimed.features([candidates[place].text for place in pool])
        near[label] = [pool[place] for place in nearest(rows, aimed.shares, aimed.variances, size)]
    return near


def length(aimed: Aims, generator: np.random.Generator) -> int | None:
    """Draw a number of words from the estimated proportions of lengths, which are the answers to the first question.

    Return None if the noise in a proportion exceeds the proportion of each length under a uniform distribution.
    """
    if aimed.noise * (len(LENGTHS) + 1) > 1:
        return None
    place = int(generator.choice(len(LENGTHS) + 1, p=aimed.shares[: len(LENGTHS) + 1]))
    low, high = (3, *LENGTHS)[place], (*LENGTHS, 2 * LENGTHS[-1])[place]
    return int(generator.integers(low, high))


def common_words(texts: Sequence[str], number: int) -> tuple[str, ...]:
    """Return the words that occur in most of these texts, at most `number` words and at least one."""
    counted = Counter(word for text in texts for word in set(words(text)))
    ranked = sorted(counted, key=lambda word: (-counted[word], word))
    return tuple(word for word in ranked if len(word.encode()) <= _LONGEST)[:number] or ("the",)


def released_answers(
    coordinates: Floats, spec: QuestionnaireSpec, terms: Sequence[str], noise: float
) -> QuestionnaireNumbers:
    """Return the answers by question and term, in records, as the run releases them.

    Args:
        coordinates: Coordinates of the answer that follow those of the class sums, in radii.
        spec: The planned query.
        terms: The list of terms that was sent, if any.
        noise: Standard deviation of the noise in a coordinate, in radii.
    """
    answered, start, to_records = {}, 0, spec.grid / spec.weight(QUESTIONS[0])
    for question in QUESTIONS:
        end = start + len(question.answers)
        counts = coordinates[start:end] * to_records
        answered[question.name] = dict(zip(question.answers, counts.tolist(), strict=True))
        start = end
    of_terms = spec.grid / spec.term if spec.first else 0.0
    return QuestionnaireNumbers(
        answers=answered,
        noise=noise * to_records,
        listed=dict(zip(terms if spec.first else (), (coordinates[start:] * of_terms).tolist(), strict=True)),
        term_noise=noise * of_terms,
        first=spec.first,
    )

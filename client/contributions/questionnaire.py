"""A party's contribution to class sums and a questionnaire, before noise."""

import numpy as np
from numpy.typing import NDArray

from client.contributions import class_sums, counts
from client.records import EmbeddedRecords
from common.queries import questionnaire, questions
from common.queries.terms import decode_terms


def contribution(query: questionnaire.Questionnaire, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return class sums, then counts of the records by their answers and by their first terms, in grid units.

    Records with labels that the query does not have add nothing.

    Returns:
        (query.length,) int64.
    """
    spec = query.spec
    of_labels = np.flatnonzero(records.labels < spec.labels)
    texts = [records.texts[place] for place in of_labels.tolist()]
    parts = [class_sums.contribution(query, records)]
    for question, column in zip(spec.questions, questions.answers(spec.questions, texts).T, strict=True):
        parts.append(spec.weight(question) * np.bincount(column, minlength=len(question.answers)))
    if spec.first:
        places = [
            place for terms in counts.first_terms(decode_terms(query.terms), texts, spec.first) for place in terms
        ]
        parts.append(spec.term * np.bincount(np.array(places, dtype=np.int64), minlength=query.listed))
    return np.concatenate(parts).astype(np.int64)

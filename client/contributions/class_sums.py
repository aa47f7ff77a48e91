"""A party's contribution to class sums: for each label, the sum of its records' coordinates, before noise.

The coordinates are those of each record's vector in a public subspace. Inner products with the subspace's directions
are exact (`client/contributions/exact_products.py`), and everything after them is computed for each record separately,
in a fixed order, so a record adds the same integers in any batch, party or chunk.
"""

import numpy as np
from numpy.typing import NDArray

from client.contributions import counts, exact_products
from client.records import EmbeddedRecords
from common.queries import class_sums, questions
from common.queries.questionnaire import Questionnaire
from common.queries.terms import decode_terms

_ROWS = 4096
"""Number of records processed at a time, to save memory."""
_FURTHEST = 1e150
"""Bound that coordinates are clipped to first, so that their squares are finite."""


def contribution(query: class_sums.ClassSums, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return the sums of the records' coordinates and the number of records, for each label.

    Records with labels that the query does not have add nothing.

    Returns:
        (labels * (directions + 1),) int64, in grid units: for each label the sums along the directions, then the count.
    """
    spec = query.spec
    labels = records.labels
    answer = np.zeros((spec.labels, spec.directions + 1), dtype=np.int64)
    places = np.flatnonzero(labels < spec.labels)
    answer[:, -1] = spec.count * np.bincount(labels[places], minlength=spec.labels)
    integers, units = exact_products.rows_to_integers(query.basis)
    centres = exact_products.vectors_to_integers(query.centres) @ integers.T
    for start in range(0, len(places), _ROWS):
        part = places[start : start + _ROWS]
        products = exact_products.vectors_to_integers(records.vectors[part]) @ integers.T - centres[labels[part]]
        coordinates = shorten_rows(products * (units / float(query.radius[0])), spec.grid)
        for label in np.unique(labels[part]):
            answer[label, :-1] += coordinates[labels[part] == label].sum(axis=0)
    return answer.ravel()


def contribution_with_answers(query: Questionnaire, records: EmbeddedRecords) -> NDArray[np.int64]:
    """Return class sums, then counts of the records by their answers and by their first terms, in grid units.

    Records with labels that the query does not have add nothing.

    Returns:
        (query.length,) int64.
    """
    spec = query.spec
    of_labels = np.flatnonzero(records.labels < spec.labels)
    texts = [records.texts[place] for place in of_labels.tolist()]
    parts = [contribution(query, records)]
    for question, column in zip(spec.questions, questions.answers(spec.questions, texts).T, strict=True):
        parts.append(spec.weight(question) * np.bincount(column, minlength=len(question.answers)))
    if spec.first:
        of_texts = counts.first_terms(decode_terms(query.terms), texts, spec.first)
        places = [place for of_text in of_texts for place in of_text]
        parts.append(spec.term * np.bincount(np.array(places, dtype=np.int64), minlength=query.listed))
    return np.concatenate(parts).astype(np.int64)


def shorten_rows(coordinates: NDArray[np.float64], grid: int) -> NDArray[np.int64]:
    """Shorten rows, in units of the radius, to norm at most 1, and round them toward zero to the grid.

    Entries that are not finite count as zero, since conversion would turn them into the smallest 64-bit integer.

    Returns:
        (records, directions) int64; the sum of squares of each row is at most grid^2.
    """
    coordinates = np.nan_to_num(coordinates, nan=0, posinf=0, neginf=0).clip(-_FURTHEST, _FURTHEST)
    squares = np.zeros(len(coordinates))
    for column in coordinates.T:  # one after the other: the order of a sum over rows is numpy's affair
        squares += column**2
    factors = grid / np.sqrt(np.maximum(squares, 1))
    return lower_entries(np.trunc(coordinates * factors[:, None]).clip(-grid, grid).astype(np.int64), grid)


def lower_entries(integers: NDArray[np.int64], grid: int) -> NDArray[np.int64]:
    """Lower each row's largest entries toward zero, one by one, until its sum of squares is at most grid^2.

    This changes only rows that floating-point rounding left slightly too long; there are few of them, if any.
    """
    out = integers.copy()
    while len(rows := np.flatnonzero((out**2).sum(axis=1) > grid**2)):
        columns = np.abs(out[rows]).argmax(axis=1)
        out[rows, columns] -= np.sign(out[rows, columns])
    return out

"""Comparison with the same models without the hospitals: whether the hospitals' answers improve the texts.

The texts that a run's language models write in its first round, before any answer, show what they write without the
hospitals: these texts depend only on the public task (`server/tools.py` keeps them). The small model is trained on
these texts and, separately, on the synthetic texts, and tested on the same held-out texts. Since a model learns more
from more texts, both trainings use the same number of texts: the larger set is replaced by a random subset in which
each label keeps its proportion.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.errors import CaucusError
from server.domain import Candidate
from server.evaluation.figures import Group, Measured, difference, figure, missing, over_texts, predicted_by
from server.metrics import accuracy

NAME = "zero_shot"

_DRAWS = 5
"""Number of random subsets of the larger set over which figures are averaged, for a small model that trains in a
second."""
_DEFINITION = (
    "The same models without the hospitals: the small model trained on {texts} texts that the language models wrote "
    "before any answer, with the labels as requested, of {written}; as_many: on as many of the {synthetic} synthetic "
    "texts. difference: accuracy of as_many minus that of the former, with its 95 % interval over the test texts, "
    "paired (Bonett and Price 2012)."
)


def compared(measured: Measured, zero_shot: Sequence[Candidate]) -> dict[str, Group]:
    """Return the comparison for `metrics.json`; empty without labels or without held-out, synthetic or zero-shot texts.

    Args:
        measured: The synthetic texts, the test texts and the settings.
        zero_shot: Texts that the same models wrote before any answer, with the requested labels.
    """
    sets = {"zero_shot": zero_shot, "as_many": measured.candidates}
    if not measured.labelled or measured.several or not measured.test or not all(sets.values()):
        return {}
    texts = min(map(len, sets.values()))
    definition = _DEFINITION.format(texts=texts, written=len(zero_shot), synthetic=len(measured.candidates))
    about = {"definition": definition, "trained_on": texts}
    labels, rows = np.array([record.label for record in measured.test]), len(measured.test)
    try:
        answers = {name: _answers(measured, members, texts) for name, members in sets.items()}
    except (CaucusError, ValueError) as error:
        return {NAME: about | missing(("accuracy", "difference"), error, rows=rows)}
    right = {name: np.mean([given == labels for given in of], axis=0) for name, of in answers.items()}
    scores = {name: _scores(answers[name], labels) for name in sets}
    gain = difference(right["zero_shot"], right["as_many"])
    return {NAME: about | scores["zero_shot"] | {"difference": gain, "as_many": scores["as_many"]}}


def _answers(measured: Measured, members: Sequence[Candidate], texts: int) -> list[NDArray[np.str_]]:
    """Predict the test texts' labels by several small models, each trained on a different draw of `texts` members."""
    evaluation = measured.evaluation
    trainings = evaluation.seeds
    if evaluation.model == "tfidf":  # it is deterministic
        trainings = _DRAWS if len(members) > texts else 1
    answers = []
    for number in range(trainings):
        part = _part(members, texts, rng.experiment(measured.experiment_seed, "zero-shot comparison", number))
        answers.append(np.array(predicted_by(measured, part, evaluation, number)[0]))
    return answers


def _part(members: Sequence[Candidate], count: int, generator: np.random.Generator) -> list[Candidate]:
    """Draw `count` of the members at random; each label keeps its proportion, rounded up or down."""
    if count == len(members):
        return list(members)
    order = sorted(generator.permutation(len(members)).tolist(), key=lambda at: members[at].label)
    # One place at random in the first interval, and all others at equal distances from it: systematic sampling.
    places = (np.arange(count) + generator.random()) * len(members) / count
    return [members[order[min(int(place), len(order) - 1)]] for place in places]


def _scores(answers: Sequence[NDArray[np.str_]], labels: NDArray[np.str_]) -> Group:
    right = np.mean([given == labels for given in answers], axis=0)
    return {
        "accuracy": over_texts(lambda at: float(right[at].mean()), len(labels)),
        "macro_f1": figure(
            lambda: float(np.mean([accuracy.macro_f1(given, labels) for given in answers])), rows=len(labels)
        ),
    }

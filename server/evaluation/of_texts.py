"""Groups of figures on the synthetic texts for `metrics.json`, each with its definition; no private records are needed.

A figure that cannot be computed has a reason in place of a value; the other figures are still computed. Groups that use
private records outside a query are computed only in a simulation, by `simulations/private_evaluation/of_records.py`,
and are marked "simulation_only".
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from common.errors import CaucusError, DataError
from common.redaction import entities
from server.documents.metrics import Figure, Group
from server.domain import Candidate
from server.evaluation import label_sets, nearness, released_classifier, zero_shot
from server.evaluation.figures import (
    Measured,
    classification,
    fidelity_group,
    figure,
    language_modelling,
    missing,
    real_against_real,
)
from server.evaluation.small_model import Metric, with_encoder_model
from server.metrics import diversity, intervals
from server.metrics.linear import LinearClassifier

log = logging.getLogger("caucus.measures")

_PERSONAL = (
    "Texts of 1,000 with at least one piece that looks like personal information, by patterns (presidio-analyzer's and "
    "our own); of at most 300 texts drawn with the experiment seed."
)
_SEARCHED = 300
"""Maximum number of texts that are searched for personal information."""
_CUSTOM = "Metrics of the operator's own code, by `evaluation.own`, on the synthetic texts and their labels."


def run_groups(
    measured: Measured,
    *,
    without: Sequence[Candidate],
    classifier: LinearClassifier | None,
    transfer: Sequence[Candidate],
) -> Group:
    """Return the groups of the synthetic texts, of their gain over the models alone, and of the released classifier.

    A run and a later evaluation of its texts measure them in the same way.

    Args:
        measured: Input for the figures.
        without: Texts that the same models wrote without the hospitals, as a classifier reads them; empty if there are
            none.
        classifier: The classifier that the released numbers define, if any.
        transfer: Public texts with that classifier's labels, as a classifier reads them.
    """
    return (
        text_groups(measured)
        | zero_shot.compare_with_zero_shot(measured, without)
        | label_sets.compare_label_sets(measured, without)
        | nearness.nearness(measured, without)
        | released_classifier.measured_with(measured, classifier, transfer)
    )


def text_groups(measured: Measured) -> Group:
    """Return the chosen groups of figures that need no private records, each followed by any reference group."""
    if not measured.candidates:
        return {}
    groups = {
        "utility": _utility,
        "utility_encoder": _utility_encoder,
        "language": _language,
        "fidelity": _fidelity,
        "diversity": _diversity,
        "privacy": _personal,
    }
    made: Group = {}
    for name, measure in groups.items():
        # The last two need no real texts.
        if name in measured.evaluation.metrics and (measured.test or name in {"diversity", "privacy"}):
            made |= measure(measured)
    return made | ({"own": _custom(measured)} if measured.evaluation.own else {})


def missing_record_groups(chosen: Sequence[str], known: Mapping[str, Any]) -> dict[str, Figure]:
    """Return a reason in place of each chosen group that needs private records and was not computed by a simulation."""
    reason = "it looks at private records, which only a simulation has at hand"
    private = ("fidelity_private", "membership", "canaries", "sites", "disclosures", "subgroups")
    names = [name for name in private if name in chosen and name not in known]
    return {name: Figure(reason=reason) for name in names}


def _utility(measured: Measured) -> Group:
    """Measure the configured small model, and measure it with the most probable labels if texts have probabilities."""
    made = {"utility": classification(measured, measured.candidates, measured.evaluation)}
    if any(candidate.probabilities for candidate in measured.candidates):
        hard = [replace(candidate, probabilities=None) for candidate in measured.candidates]
        made["utility_hard_labels"] = classification(measured, hard, measured.evaluation)
    return made


def _utility_encoder(measured: Measured) -> Group:
    """Measure a small model on the encoder's vectors, in addition to the configured one."""
    return {"utility_encoder": classification(measured, measured.candidates, with_encoder_model(measured.evaluation))}


def _language(measured: Measured) -> Group:
    return {"language": language_modelling(measured, measured.drawn(measured.texts, "language"))}


def _fidelity(measured: Measured) -> Group:
    """Measure the fidelity to the test texts and, for comparison, between two random halves of the test texts."""
    test = measured.drawn(measured.test, "halves", len(measured.test))
    half = len(test) // 2
    about = "A random half of the test texts in place of the synthetic ones, against the other half."
    return {
        "fidelity": fidelity_group(
            measured, measured.test, lambda: measured.test_vectors, sets="the synthetic texts and the test texts"
        ),
        "fidelity_real": real_against_real(
            measured, test[:half], test[half:], about, sets="the two halves of the test texts"
        ),
    }


def _diversity(measured: Measured) -> Group:
    texts, vectors, rows = measured.texts, measured.vectors, len(measured.texts)
    figures = {
        "definition": diversity.DEFINITION,
        "self_bleu": figure(lambda: diversity.self_bleu(texts, seed=measured.experiment_seed), rows=rows),
        **{f"distinct_{n}": figure(partial(diversity.distinct, texts, n), rows=rows) for n in (1, 2, 3)},
        "self_similarity": figure(lambda: diversity.self_similarity(vectors), rows=rows),
    }
    return {"diversity": figures}


def _personal(measured: Measured) -> Group:
    """Measure the rates of personal information in the synthetic texts and, for comparison, in public texts.

    A match does not prove a leak, and the absence of matches does not prove that there is no leak (RPSG, appendix F).
    """
    searched, made = {"privacy": measured.whole_texts}, dict[str, Any]()
    try:
        if public := measured.public():
            searched["privacy_public"] = public
    except CaucusError as error:  # the file of public texts may be another machine's
        made["privacy_public"] = missing(["personal_information"], error, rows=0)
    found = {
        name: [set(entities(text, measured.language)) for text in measured.drawn(texts, "personal", _SEARCHED)]
        for name, texts in searched.items()
    }
    # All groups have the same kinds, so that the report can show them side by side.
    kinds = sorted({kind for of_texts in found.values() for of_text in of_texts for kind in of_text})
    definitions = {"privacy": _PERSONAL, "privacy_public": "The same in the public texts."}
    return {
        name: {"definition": definitions[name]} | _rates(of_texts, kinds) for name, of_texts in found.items()
    } | made


def _rates(found: Sequence[set[str]], kinds: Sequence[str]) -> Group:
    """Return the rates per 1,000 texts of those with any personal information and of those with each kind.

    Args:
        found: The kinds that were found in each text.
        kinds: The kinds that have a rate.
    """
    rows, hits = len(found), sum(map(bool, found))
    if not rows:
        error = DataError("texts to search", expected="at least one", got="none")
        return {**missing(["personal_information"], error, rows=0)}
    low, high = intervals.share_interval(hits, rows)
    rates = {kind.lower(): 1000 * sum(kind in of_text for of_text in found) / rows for kind in kinds}
    return {
        "personal_information": Figure(value=1000 * hits / rows, interval=(1000 * low, 1000 * high), rows=rows),
        "of_a_kind": {kind: Figure(value=rate, rows=rows) for kind, rate in rates.items()},
    }


def _custom(measured: Measured) -> Group:
    labels = [candidate.label for candidate in measured.candidates]
    metrics = measured.evaluation.own
    figures = {name: _custom_figure(name, metric, measured.texts, labels) for name, metric in metrics.items()}
    return {"definition": _CUSTOM} | figures


def _custom_figure(name: str, metric: Metric, texts: Sequence[str], labels: Sequence[str]) -> Figure:
    """Compute a user's metric. Epsilon has been spent by then, so no error in the metric may end the run."""
    try:
        number = float(metric(list(texts), list(labels)))
    except Exception as error:  # noqa: BLE001 other people's code; its message may quote a text
        log.warning("evaluation.own.%s failed (%s): the run goes on without it", name, type(error).__name__)
        return Figure(reason=f"it failed ({type(error).__name__})", rows=len(texts))
    return figure(lambda: number, rows=len(texts))

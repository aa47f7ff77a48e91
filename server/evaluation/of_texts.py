"""Groups of figures on the synthetic texts for `metrics.json`, each with its definition; no private records are needed.

A figure that cannot be computed has a reason in place of a value; the other figures are still computed. Groups that use
private records outside a query are computed only in a simulation, by `simulations/private_evaluation/of_records.py`,
and are marked "simulation_only".
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from common.errors import CaucusError, DataError
from common.redaction import entities
from server.documents.metrics import Figure, Group
from server.evaluation.figures import (
    Measured,
    classification,
    fidelity,
    figure,
    language_modelling,
    missing,
    real_against_real,
)
from server.evaluation.small_model import Metric, with_encoder_model
from server.metrics import diversity, intervals

log = logging.getLogger("caucus.measures")

_PERSONAL = (
    "Texts of 1,000 with at least one piece that looks like personal information, by patterns (presidio-analyzer's and "
    "our own); of at most 300 texts drawn with the experiment seed."
)
_SEARCHED = 300
"""Maximum number of texts that are searched for personal information."""
_CUSTOM = "Metrics of the operator's own code, by `evaluation.own`, on the synthetic texts and their labels."


def text_groups(measured: Measured) -> Group:
    """Return the chosen groups of figures that need no private records, each followed by any reference group."""
    groups = {
        "utility": _utility,
        "utility_encoder": _utility_encoder,
        "language": _language,
        "fidelity": _fidelity,
        "diversity": _diversity,
        "privacy": _personal,
    }
    alone = ("diversity", "privacy")  # need no real texts
    names = [name for name in groups if name in measured.evaluation.metrics and (measured.test or name in alone)]
    if not measured.candidates:
        return {}
    made: Group = {}
    for name in names:
        made |= groups[name](measured)
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


def _language(measured: Measured) -> dict[str, Group]:
    return {"language": language_modelling(measured, measured.drawn(measured.texts, "language"))}


def _fidelity(measured: Measured) -> dict[str, Group]:
    """Measure the fidelity to the test texts and, for comparison, between two random halves of the test texts."""
    test = measured.drawn(measured.test, "halves", len(measured.test))
    half = len(test) // 2
    about = "A random half of the test texts in place of the synthetic ones, against the other half."
    return {
        "fidelity": fidelity(measured, measured.test, lambda: measured.test_vectors),
        "fidelity_real": real_against_real(measured, test[:half], test[half:], about),
    }


def _diversity(measured: Measured) -> dict[str, Group]:
    texts, vectors, rows = measured.texts, measured.vectors, len(measured.texts)

    figures = {
        "definition": diversity.DEFINITION,
        "self_bleu": figure(lambda: diversity.self_bleu(texts, seed=measured.experiment_seed), rows=rows),
        **{
            f"distinct_{n}": figure(lambda n=n: diversity.distinct(texts, n), rows=rows)  # type: ignore[misc]
            for n in (1, 2, 3)
        },
        "self_similarity": figure(lambda: diversity.self_similarity(vectors), rows=rows),
    }
    return {"diversity": figures}


def _personal(measured: Measured) -> dict[str, Group]:
    """Measure the rates of personal information in the synthetic texts and, for comparison, in public texts."""
    groups = {"privacy": _rates(measured.drawn(measured.whole_texts, "personal", _SEARCHED), measured.language)}
    try:
        public = measured.public()
    except CaucusError as error:  # the file of public texts may be another machine's
        return groups | {"privacy_public": missing(["personal_information"], error, rows=0)}
    if public:
        rates = _rates(measured.drawn(public, "personal", _SEARCHED), measured.language)
        groups["privacy_public"] = rates | {"definition": "The same in the public texts."}
        _with_all_kinds(list(groups.values()))
    return groups


def _rates(texts: Sequence[str], language: str) -> Group:
    """Return the rates of texts with personal information, in all and by kind, as patterns find it.

    A match does not prove a leak, and the absence of matches does not prove that there is no leak (RPSG, appendix F).
    """
    about: Group = {"definition": _PERSONAL}
    if not texts:
        error = DataError("texts to search", expected="at least one", got="none")
        return about | missing(["personal_information"], error, rows=0)
    kinds, rows = [set(entities(text, language)) for text in texts], len(texts)
    counts = Counter(kind for of_text in kinds for kind in of_text)
    hits = sum(map(bool, kinds))
    low, high = intervals.share_interval(hits, rows)
    return about | {
        "personal_information": Figure(value=1000 * hits / rows, interval=(1000 * low, 1000 * high), rows=rows),
        "of_a_kind": {
            kind.lower(): Figure(value=1000 * count / rows, rows=rows) for kind, count in sorted(counts.items())
        },
    }


def _with_all_kinds(groups: Sequence[Group]) -> None:
    """Add to each group a rate of 0 for every kind of personal information that only other groups contain."""
    if not all("of_a_kind" in group for group in groups):
        return
    kinds = sorted({kind for group in groups for kind in group["of_a_kind"]})
    for group in groups:
        none = Figure(value=0.0, rows=group["personal_information"].rows)
        group["of_a_kind"] = {kind: group["of_a_kind"].get(kind, none) for kind in kinds}


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

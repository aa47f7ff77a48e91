"""What `metrics.json` holds besides the small model: groups of figures, each with what it means.

A group is a mapping with a "definition" and figures. A figure is a mapping with "value", "interval" (95 %, or None) and
"rows", the texts that it rests on; where it cannot be had its value is None and a "reason" says why, and the others go
on. Groups that look at private records outside a query are made by `of_records`, in a simulation alone, and marked
"simulation_only".
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from common import rng
from common.data import canaries
from common.domain import Record
from common.errors import CaucusError, DataError
from common.models.encoder import Encoder
from server.domain import Candidate
from server.evaluate import Evaluation, predictions
from server.metrics import (
    clusters,
    diversity,
    intervals,
    leakage,
    manifolds,
    personal_information,
    surface,
    transport,
    utility,
)
from server.metrics.fidelity import fid

log = logging.getLogger("caucus.measures")

Figure = dict[str, Any]
Group = dict[str, Any]

FEWEST = 20
"""Records of any kind that an attack needs."""
_PERSONAL = 300
_FID = "FID: squared Frechet distance of Gaussians in the encoder's space, biased upward for few texts. "


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What figures are of.

    Attributes:
        candidates: The synthetic texts.
        test: Real texts that are no party's records.
        evaluation: The small model, and the sizes of others.
        encoder: The agreed one.
        experiment_seed: Of all that is drawn.
        private: The records of all parties; empty but in a simulation.
        canaries: Codes that were put among them on purpose.
        embed: As the encoder does; one that remembers what it has embedded saves the most costly part.
    """

    candidates: Sequence[Candidate]
    test: Sequence[Record] = field(repr=False)
    evaluation: Evaluation
    encoder: Encoder
    experiment_seed: int = 0
    private: Sequence[Record] = field(default=(), repr=False)
    canaries: Sequence[str] = field(default=(), repr=False)
    embed: Callable[[Sequence[str]], NDArray[np.float32]] | None = None

    @cached_property
    def texts(self) -> list[str]:
        """Of the candidates."""
        return [candidate.text for candidate in self.candidates]

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(candidates, dim)."""
        return self._embedded(self.texts)

    @cached_property
    def test_vectors(self) -> NDArray[np.float32]:
        """(test, dim)."""
        return self._embedded([record.text for record in self.test])

    @cached_property
    def private_vectors(self) -> NDArray[np.float32]:
        """(private, dim)."""
        return self._embedded([record.text for record in self.private])

    def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return (self.embed or self.encoder.encode)(texts)

    def drawn(self, records: Sequence[Any], purpose: str, most: int | None = None) -> list[Any]:
        """At most so many of them, in an order that the experiment seed decides."""
        order = rng.experiment(self.experiment_seed, "measures", purpose).permutation(len(records))
        return [records[at] for at in order[: most or self.evaluation.texts]]


def of_texts(measured: Measured) -> dict[str, Group]:
    """The chosen groups that need no private record."""
    groups = {
        "utility": _utility, "language": _language, "fidelity": _fidelity, "diversity": _diversity,
        "privacy": _personal,
    }  # fmt: skip
    alone = ("diversity", "privacy")  # all that can be said without real texts
    names = [name for name in groups if name in measured.evaluation.metrics and (measured.test or name in alone)]
    return {name: groups[name](measured) for name in names} if measured.candidates else {}


def of_records(measured: Measured) -> dict[str, Group]:
    """The chosen groups that look at private records: for a simulation."""
    groups = {
        "utility": ("utility_real", _utility_real), "language": ("language_real", _language_real),
        "privacy": ("nearest", _nearest), "fidelity_private": ("fidelity_private", _fidelity_private),
        "membership": ("membership", _membership), "canaries": ("canaries", _canaries),
    }  # fmt: skip
    chosen = [groups[name] for name in groups if name in measured.evaluation.metrics]
    return {name: made(measured) | {"simulation_only": True} for name, made in chosen}


def without_records(chosen: Sequence[str], known: Mapping[str, Any]) -> dict[str, Group]:
    """Of groups that cannot be had without private records, and are not known from a simulation: why."""
    reason = "it looks at private records, which only a simulation has at hand"
    names = [name for name in ("fidelity_private", "membership", "canaries") if name in chosen and name not in known]
    return {name: {"value": None, "reason": reason} for name in names}


def figure(
    value: Callable[[], float], *, rows: int, interval: Callable[[], intervals.Interval | None] | None = None
) -> Figure:
    """A figure, or why there is none."""
    try:
        found = value()
    except (CaucusError, ValueError, ArithmeticError) as error:
        return _none(["figure"], error, rows=rows)["figure"]
    if math.isnan(found):
        return {"value": None, "reason": "it is not a number: nothing divided by nothing", "rows": rows}
    return {"value": found, "interval": interval() if interval else None, "rows": rows}


def _together(make: Callable[[], Mapping[str, float]], names: Sequence[str], *, rows: int) -> dict[str, Figure]:
    """Figures that come from one computation: all of them, or the same reason for each."""
    try:
        made = make()
    except (CaucusError, ValueError, ArithmeticError) as error:
        return _none(names, error, rows=rows)
    return {name: figure(lambda name=name: made[name], rows=rows) for name in names}  # type: ignore[misc]


def _none(names: Iterable[str], error: Exception, *, rows: int) -> dict[str, Figure]:
    """The reason in place of each figure: our message, or a library's kind of error, whose message may hold text."""
    reason = str(error) if isinstance(error, CaucusError) else f"a library failed ({type(error).__name__})"
    log.info("no %s: %s", ", ".join(names), reason)
    return {name: {"value": None, "reason": reason, "rows": rows} for name in names}


def _utility(measured: Measured) -> Group:
    train = [Record(candidate.text, candidate.label) for candidate in measured.candidates]
    weights = [candidate.weight for candidate in measured.candidates]
    return _classified(measured, train, weights, measured.evaluation)


def _utility_real(measured: Measured) -> Group:
    """The same model trained on equally many private records, or all if there are fewer."""
    if measured.evaluation.elsewhere:
        reason = "evaluation.embedding is an endpoint, and private text is never sent anywhere"
        return {"value": None, "reason": reason}
    train = measured.drawn(measured.private, "real", len(measured.candidates))
    plain = replace(measured.evaluation, domain_adaptation="none", target=None)
    return _classified(measured, train, None, plain)


def _classified(
    measured: Measured, train: Sequence[Record], weights: Sequence[float] | None, evaluation: Evaluation
) -> Group:
    seeds = evaluation.seeds if evaluation.model != "tfidf" else 1  # the default draws no lots
    right = [record.label for record in measured.test]
    note = None
    answers: list[list[str]] = []
    try:
        for seed in range(seeds):
            said, note = predictions(
                train, measured.test, weights=weights, evaluation=evaluation, encoder=measured.encoder,
                experiment_seed=measured.experiment_seed + seed,
            )  # fmt: skip
            answers.append(said)
    except (CaucusError, ValueError) as error:
        return {"definition": evaluation.definition} | _none(("accuracy", "macro_f1"), error, rows=len(right))
    unseen = sum(label not in {record.label for record in train} for label in right)
    notes = ([note] if note else []) + [f"{unseen} of {len(right)} test texts have labels never learned"] * bool(unseen)
    spread = f"over {seeds} trainings (Student's t)" if seeds > 1 else "over test texts (bootstrap, 500 draws)"
    return {
        "definition": f"{evaluation.definition} Trained on {len(train)} texts. Intervals {spread}.",
        "accuracy": _scored(utility.accuracy, answers, right),
        "macro_f1": _scored(utility.macro_f1, answers, right),
    } | ({"note": "; ".join(notes)} if notes else {})


def _scored(
    score: Callable[[NDArray[np.str_], NDArray[np.str_]], float], answers: Sequence[Sequence[str]], right: Sequence[str]
) -> Figure:
    first, true = np.array(answers[0]), np.array(right)
    values = [score(np.array(said), true) for said in answers]

    def again(at: NDArray[np.intp]) -> float:
        return score(first[at], true[at])

    return figure(
        lambda: float(np.mean(values)),
        rows=len(right),
        interval=lambda: intervals.over_seeds(values) or intervals.over_rows(again, len(right)),
    )


def _language(measured: Measured) -> Group:
    return _modelled(measured, measured.drawn(measured.texts, "language"))


def _language_real(measured: Measured) -> Group:
    most = min(len(measured.candidates), measured.evaluation.texts)
    return _modelled(measured, [record.text for record in measured.drawn(measured.private, "real", most)])


def _modelled(measured: Measured, train: Sequence[str]) -> Group:
    from server.metrics.language_model import DEFINITION, LanguageModel  # noqa: PLC0415 — as torch

    settings, seeds = measured.evaluation.language_model, measured.evaluation.seeds
    test = [record.text for record in measured.drawn(measured.test, "tested")]
    scores: dict[str, Callable[[NDArray[np.float64]], float]] = {
        "perplexity": lambda sums: float(np.exp(sums[0].sum() / sums[1].sum())),
        "next_token_accuracy": lambda sums: float(sums[2].sum() / sums[1].sum()),
    }
    start = settings.get("start") or "a transformer of its own, from nothing"
    about = f"{DEFINITION} From {start}; trained on {len(train)} texts, {seeds} times."
    try:
        models = (
            # The tokenizer is of the test texts, so that perplexities of different training texts can be compared.
            LanguageModel.train(train, seed=measured.experiment_seed + seed, tokens_of=test, **settings)
            for seed in range(seeds)
        )
        totals = [np.stack(model.totals(test)) for model in models]
    except CaucusError as error:
        return {"definition": about} | _none(scores, error, rows=len(test))
    return {"definition": about} | {
        name: figure(
            lambda score=score: float(np.mean([score(sums) for sums in totals])),  # type: ignore[misc]
            rows=len(test),
            interval=lambda score=score: (
                intervals.over_seeds([score(sums) for sums in totals])  # type: ignore[misc]
                or intervals.over_rows(lambda at: score(totals[0][:, at]), len(test))
            ),
        )
        for name, score in scores.items()
    }


def _fidelity(measured: Measured) -> Group:
    return _compared(measured, measured.test, lambda: measured.test_vectors)


def _fidelity_private(measured: Measured) -> Group:
    return _compared(measured, measured.private, lambda: measured.private_vectors)


def _compared(measured: Measured, real: Sequence[Record], vectors: Callable[[], NDArray[np.float32]]) -> Group:
    seed = measured.experiment_seed
    ours, theirs, rows = measured.vectors, vectors(), len(real)
    texts, labels = [record.text for record in real], [record.label for record in real]

    def overlap() -> Mapping[str, float]:
        found = manifolds.overlap(ours, theirs, seed=seed)
        return {name: getattr(found, name) for name in ("precision", "recall", "f1", "density", "coverage")}

    def divergences() -> Mapping[str, float]:
        found = clusters.divergences(ours, theirs, seed=seed)
        return {name: getattr(found, name) for name in ("mauve", "kl", "total_variation")}

    mine = [candidate.label for candidate in measured.candidates]
    return {
        "definition": _FID + " ".join(each.DEFINITION for each in (clusters, manifolds, transport, surface)),
        "fid": figure(lambda: fid(ours, theirs), rows=rows),
        **_together(divergences, ("mauve", "kl", "total_variation"), rows=rows),
        **_together(overlap, ("precision", "recall", "f1", "density", "coverage"), rows=rows),
        "wasserstein": figure(lambda: transport.wasserstein(ours, theirs, seed=seed), rows=rows),
        "sinkhorn": figure(lambda: transport.sinkhorn(ours, theirs, seed=seed), rows=rows),
        "length_distance": figure(lambda: surface.length_distance(measured.texts, texts), rows=rows),
        "sentiment_agreement": figure(lambda: surface.agreement(measured.texts, mine, texts, labels), rows=rows),
    }


def _diversity(measured: Measured) -> Group:
    texts, vectors, rows = measured.texts, measured.vectors, len(measured.texts)

    def repeated() -> Mapping[str, float]:
        found = diversity.duplicates(texts, vectors)
        return {"exact_duplicates": found.exact, "near_duplicates": found.near}

    return {
        "definition": diversity.DEFINITION,
        "self_bleu": figure(lambda: diversity.self_bleu(texts, seed=measured.experiment_seed), rows=rows),
        **{
            f"distinct_{n}": figure(lambda n=n: diversity.distinct(texts, n), rows=rows)  # type: ignore[misc]
            for n in (1, 2, 3)
        },
        "self_similarity": figure(lambda: diversity.self_similarity(vectors), rows=rows),
        **_together(repeated, ("exact_duplicates", "near_duplicates"), rows=rows),
    }


def _personal(measured: Measured) -> Group:
    texts = measured.drawn(measured.texts, "personal", _PERSONAL)
    try:
        held, kinds = personal_information.personal_information(texts)
    except CaucusError as error:
        return {"definition": personal_information.PERSONAL} | _none(["personal_information"], error, rows=0)
    between = binomtest(int(held.sum()), len(held)).proportion_ci(method="wilson")
    rates = {kind.lower(): {"value": 1000 * count / len(held), "rows": len(held)} for kind, count in kinds.items()}
    return {
        "definition": personal_information.PERSONAL,
        "personal_information": {
            "value": 1000 * float(held.mean()), "interval": (1000 * between.low, 1000 * between.high), "rows": len(held)
        },
        "of_a_kind": rates,
    }  # fmt: skip


def _nearest(measured: Measured) -> Group:
    def distances() -> Mapping[str, float]:
        found = leakage.nearest(measured.vectors, measured.private_vectors, measured.test_vectors)
        return {"records": found.members, "held_out": found.others, "ratio": found.ratio, "closer": found.closer}

    names = ("records", "held_out", "ratio", "closer")
    return {"definition": leakage.NEAREST} | _together(distances, names, rows=len(measured.private))


def _membership(measured: Measured) -> Group:
    held_out = [record.text for record in measured.drawn(measured.test, "others", 2 * measured.evaluation.texts)]
    half = len(held_out) // 2
    others, reference = held_out[:half], held_out[half:]
    members = [record.text for record in measured.drawn(measured.private, "members")]
    about = f"{leakage.DEFINITION} {len(members)} members, {len(others)} others, {len(reference)} for reference."
    rows = len(members) + len(others)
    try:
        if min(len(members), half) < FEWEST:
            raise DataError("membership attack", expected=f"{FEWEST} records and {2 * FEWEST} held out", got="fewer")
        found = leakage.attacks(
            measured.drawn(measured.texts, "language"), members, others, reference,
            shadows=measured.evaluation.shadows, seed=measured.experiment_seed,
            training=measured.evaluation.language_model,
        )  # fmt: skip
    except (CaucusError, ValueError, ArithmeticError) as error:
        return {"definition": about} | _none(("PPL", "REFER", "LIRA"), error, rows=rows)
    return {"definition": about} | {
        name: {"value": attack.auc, "interval": attack.interval, "rows": rows} for name, attack in found.items()
    }


def _canaries(measured: Measured) -> Group:
    """Whether records that were put there on purpose come out: word for word, or as what a model finds likely."""
    from server.metrics.language_model import LanguageModel  # noqa: PLC0415 — as torch

    about = (
        f"{len(measured.canaries)} records with codes drawn at random. extracted: share whose code stands in a "
        "synthetic text. exposure: mean of the bits by which a language model of the synthetic texts prefers a canary "
        f"to {canaries.ALTERNATIVES} others of its form, about 1.44 where nothing was learned, 8 at most (Carlini et "
        "al. 2019)."
    )
    rows = len(measured.canaries)
    try:
        if not measured.canaries:
            raise DataError("canaries", expected="some among the records", got="none", do="Set federation.canaries=20")
        model = LanguageModel.train(
            measured.drawn(measured.texts, "language"),
            seed=measured.experiment_seed, **measured.evaluation.language_model,
        )  # fmt: skip
        others = canaries.alternatives(measured.experiment_seed)
        bits = [leakage.exposure(model, canaries.FORM.format(code), others) for code in measured.canaries]
    except CaucusError as error:
        return {"definition": about} | _none(("extracted", "exposure"), error, rows=rows)
    found = [any(code in text for text in measured.texts) for code in measured.canaries]
    between = binomtest(sum(found), rows).proportion_ci(method="wilson")
    return {
        "definition": about,
        "extracted": {"value": float(np.mean(found)), "interval": (between.low, between.high), "rows": rows},
        "exposure": {"value": float(np.mean(bits)), "interval": intervals.over_seeds(bits), "rows": rows},
    }

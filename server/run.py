"""The main loop of a run; read this first.

    [1/4] plan -> [2/4] open -> [3/4] for each round: step, measure, save -> close -> [4/4] evaluate -> report

The log numbers these steps; a run that asks no hospital skips the second.
The run folder is the product (`server/run_folder.py` lists its files). It is complete, or `run.json` says "partial" and
`--resume` continues from the last completed step. The models' texts then come from the reply cache, and the parties'
answers from the checkpoint. `server/app.py` makes the plan and all other arguments of the loop.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from common.domain import Record
from common.errors import CaucusError
from server.documents.metrics import Metrics
from server.documents.rounds import Payment, RoundReport
from server.documents.run import COMPLETE, PARTIAL, ZERO_SHOT
from server.domain import Candidate
from server.evaluation import (
    federated_count,
    figures,
    nearness,
    of_texts,
    projection,
    released_classifier,
    sections,
    small_model,
    spans,
)
from server.evaluation.small_model import Evaluation
from server.federation.ask import Federation
from server.guarantee.messages import show_epsilon
from server.llm.spending import Spending
from server.method import Labelling, Method, State
from server.metrics import fidelity
from server.metrics.linear import LinearClassifier
from server.prepare.model_checks import UnreadableError, advice_on_contrast, try_prompt
from server.report.tensorboard import track
from server.report.write import write_report
from server.run_folder import RunFolder, read_candidates
from server.tasks.sources import Source
from server.tools import RunTools

log = logging.getLogger("caucus.run")


def run(
    method: Method[Any],
    tools: RunTools,
    federation: Federation,
    folder: RunFolder,
    *,
    source: Source,
    test: Sequence[Record],
    evaluation: Evaluation,
    tracking: str | None = None,
) -> State[Any]:
    """Run to the end, from the beginning or from the last completed step in the run folder.

    Args:
        method: The method.
        tools: The run's tools: models, encoder and queries.
        federation: The parties, which the tools ask.
        folder: The run folder.
        source: The task's public texts, and real texts that do not belong to any party.
        test: These real texts in the form that a classifier reads.
        evaluation: Settings of the measurements.
        tracking: "tensorboard" to write figures for it, or None.

    Returns:
        The last state; all other results are in the folder.
    """
    plan, task = tools.plan, tools.task

    def public() -> list[str]:
        return [example.text for example in source.public_examples()]

    test_vectors = tools.encoder.encode([record.text for record in test])
    notes = advice_on_contrast(method, tools.providers)
    for note in (*notes, *folder.summary.forecasts.values()):
        log.warning("%s", note)
    state = folder.resumed(method.memory) or method.start(tools)
    folder.save(state, PARTIAL)

    if state.round < method.rounds:
        _check_models(method, tools)
    if plan.queries:
        log.info("[2/4] asking %d hospitals to take part", plan.parties)
        federation.open()
    while state.round < method.rounds:
        tools.start_round(state.candidates)
        with tools.asking_again_after_errors():
            state = method.step(state, tools)
        state = replace(state, candidates=tools.with_spans(state.candidates))
        if state.round == 1:
            folder.keep_zero_shot(state.candidates if task.headings else tools.zero_shot)
        vectors = tools.embed([candidate.text for candidate in task.classifier_inputs(state.candidates)])
        *earlier, report = state.rounds
        report = replace(
            report,
            notes=report.notes if earlier else (*report.notes, *notes),
            **_fid(vectors, test_vectors),
            seconds=tools.meter.seconds(),
            queries=tuple(tools.meter.queries()),
            paid=payments(tools.spending, before=earlier),
            epsilon=folder.epsilon(),
        )
        state = replace(state, rounds=(*earlier, report))
        folder.save(state, PARTIAL)
        track(tracking, folder.path, state.round, report.for_readers())
        log.info("[3/4] round %d of %d: %s", state.round, method.rounds, _progress(state, method.rounds, plan.epsilon))
    count, state = _federated_count(federation, tools, state, folder)
    if count:
        folder.save(state, PARTIAL)  # what the count has cost
    if plan.queries:
        federation.close()

    classifier, transfer = _knowledge(method, tools, state, public, folder)
    log.info("[4/4] evaluating %s texts: %s", f"{len(state.candidates):,}", ", ".join(evaluation.metrics) or "accuracy")
    measured = figures.Measured(
        candidates=task.classifier_inputs(state.candidates),
        test=test,
        evaluation=evaluation,
        encoder=tools.encoder.encoder,
        experiment_seed=tools.experiment_seed,
        embed=tools.embed,
        released=[candidate.text for candidate in state.candidates],
        public=public,
        language=task.language,
    )
    before = read_candidates(folder.path, ZERO_SHOT)
    cleaned = [report.cleaned for report in state.rounds]
    paid = payments(tools.spending)
    metrics = Metrics(
        content=small_model.metrics(measured.candidates, test, evaluation, measured.encoder)
        | nearness.nearest_texts(measured)
        | count
        | of_texts.run_groups(
            measured,
            without=task.classifier_inputs(before),
            classifier=classifier,
            transfer=task.classifier_inputs(transfer),
        )
        | sections.section_groups(state.candidates, source.held_out, task)
        | spans.span_groups(
            state.candidates, before, source.held_out_spans, task, cleaned, experiment_seed=tools.experiment_seed
        )
        | ({"paid": paid} if paid else {})
    )
    metrics.save(folder.path)
    track(tracking, folder.path, state.round + 1, metrics)
    vectors = measured.embedded(measured.whole_texts) if measured.in_sections else measured.vectors
    projection.synthetic_map(vectors).save(folder.path)
    folder.save(state, COMPLETE)
    write_report(folder.path)
    return state


def _check_models(method: Method[Any], tools: RunTools) -> None:
    """Check that each model answers, and try one prompt of each remote model that the method asks for texts.

    Raises:
        ProviderError: A model does not answer, or the replies of none can be read.
    """
    unreadable: list[UnreadableError] = []
    for provider in tools.providers.values():
        provider.check()
        if provider.remote and method.max_texts(tools.task, tools.models):
            words = getattr(method, "words", None)
            seed = tools.experiment_seed
            try:
                try_prompt(provider, tools.task, texts=method.texts_per_request, words=words, experiment_seed=seed)
            except UnreadableError as error:
                unreadable.append(error)
    if len(unreadable) == len(tools.providers):
        raise unreadable[0]
    for of_model in unreadable:
        log.warning("%s", of_model)  # the other models write the texts


def _progress(state: State[Any], rounds: int, epsilon: float) -> str:
    """Return facts on a run after a round: texts and their distance, the cost of answers, and the time left."""
    report, left = state.rounds[-1], rounds - state.round
    seconds = sum(sum((measured.seconds or {}).values()) for measured in state.rounds) / state.round
    facts = (
        f"{len(state.candidates):,} texts",
        "" if report.fid is None else f"distance from real texts (FID) {report.fid:.3f}",
        f"ε {show_epsilon(report.epsilon or 0.0)} of {show_epsilon(epsilon)} spent" if epsilon else "",
        f"about {tqdm.format_interval(left * seconds)} for the rounds left" if left else "",
    )
    return ", ".join(filter(None, facts))


def _fid(vectors: NDArray[np.float32], test_vectors: NDArray[np.float32]) -> dict[str, Any]:
    """Return the FID and its error; empty, with the reason in the log, if they cannot be computed."""
    if not len(test_vectors):
        return {}
    try:
        return {"fid": fidelity.fid(vectors, test_vectors), "fid_error": fidelity.fid_error(vectors, test_vectors)}
    except CaucusError as error:
        log.info("no FID: %s", error)
        return {}


def _knowledge(
    method: Method[Any], tools: RunTools, state: State[Any], public: Callable[[], Sequence[str]], folder: RunFolder
) -> tuple[LinearClassifier | None, list[Candidate]]:
    """Write and return the classifier made from the released numbers, if any, and its labels for public texts."""
    if not isinstance(method, Labelling) or not tools.task.one_label:
        return None, []
    classifier = method.classifier(state)
    transfer = released_classifier.transfer_set(
        public(),
        lambda texts: method.training_labels(state, tools.embed(texts)),
        list(tools.task.labels),
        most=method.transfer,
        experiment_seed=tools.experiment_seed,
    )
    folder.keep_classifier(classifier, transfer)
    return classifier, transfer


def _federated_count(
    federation: Federation, tools: RunTools, state: State[Any], folder: RunFolder
) -> tuple[dict[str, Any], State[Any]]:
    """Return the accuracy on the parties' own records, from a private count, and the state with the count noted.

    The first value is empty if the plan has no such count.
    """
    plan = tools.plan
    if not federated_count.plans_count(plan):
        return {}, state
    vectors = tools.embed([candidate.text for candidate in state.candidates])
    answered = federation.ask(federated_count.NAME, 0, federated_count.question(vectors, state.candidates, plan))
    tools.meter.count(plan, answered)
    *earlier, last = state.rounds
    queries = {query.index: query for query in (*last.queries, *tools.meter.queries())}  # once after a crash, too
    noted = replace(last, queries=tuple(queries.values()), epsilon=folder.epsilon())
    return {"federated": federated_count.federated_count_group(plan, answered)}, replace(
        state, rounds=(*earlier, noted)
    )


def payments(spending: Spending, before: Sequence[RoundReport] = ()) -> dict[str, Payment]:
    """Return this run's payments for remote models, keyed by name, minus those in the reports of earlier rounds.

    A round's report therefore includes the payments of every process that worked on the round, before or after a crash.
    """
    left = {model: paid.payment for model, paid in spending.paid().items()}
    for report in before:
        for model, earlier in report.paid.items():
            left[model] -= earlier
    return {model: payment for model, payment in left.items() if payment.replies}

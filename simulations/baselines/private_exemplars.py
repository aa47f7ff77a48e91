"""Private exemplars: texts from prompts that show private records, and these records as training data, at ε = ∞.

This baseline shows the benefit of exemplars without any protection: the results of methods that choose synthetic
exemplars by private votes are expected between this baseline and a run without votes. A prompt contains as many records
as a prompt of WASP contains texts. With `method.texts=false` no texts are written, and the small model is trained on
the exemplars alone. The baseline exists only in a simulation (`simulations/baselines/unprotected.py`), and only
language models on this machine see the records.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from common import rng
from common.domain import Record
from common.errors import ConfigError
from server.domain import Task
from server.evaluation import nearness, of_texts, small_model
from server.llm import providers
from server.llm.base import Provider, Request
from server.llm.clean import Cleaner
from server.llm.generate import Generated, generate
from server.llm.orders import Order, even_orders
from server.llm.render import Prompts
from server.llm.requests import by_example
from server.llm.spending import Spending
from server.method import NoMemory, State
from server.operators import selection
from server.operators.round_report import make_report
from server.prepare.build import build
from server.settings.methods import PrivateExemplarsSettings
from server.settings.schema import SimulationSettings
from server.tasks.sources import Source
from simulations.baselines import unprotected
from simulations.federation.measured import with_records
from simulations.private_evaluation.of_records import record_groups

NAME = "private_exemplars"

STATEMENT = (
    "Private exemplars: no privacy (ε is infinite). Language models were shown private records, and texts or figures "
    "were made from them. Neither texts nor figures may leave; it is a baseline for experiments."
)
NOT_COVERED = "The private records that prompts showed: nothing about them is protected."


def private_exemplars(settings: SimulationSettings, folder: Path) -> None:
    """Write the run folder of a run with prompts that show private records.

    Raises:
        ConfigError: A setting is out of range, there are no held-out texts for the evaluation, or a record would be
            sent to another machine.
        ProviderError: A language model fails.
    """
    started = time.monotonic()
    method = _method(settings)
    source, private, held_out = unprotected.records_of(settings)
    task = source.task()
    shown = random_records(private, task, method.exemplars, settings.experiment_seed)
    held_out = task.classifier_inputs(held_out)
    if method.texts:
        state, metrics = _written(settings, folder, source, shown, held_out)
    else:
        unprotected.check_labels(task)
        records = [Record(text, label) for label, texts in shown.items() for text in texts]
        state = State(memory=NoMemory())
        metrics = unprotected.train_on_records(settings, task.classifier_inputs(records), held_out)
    unprotected.write_baseline(
        settings,
        folder,
        task,
        state=state,
        metrics=metrics,
        statement=STATEMENT,
        not_covered=NOT_COVERED,
        started=started,
    )


def random_records(private: Sequence[Record], task: Task, count: int, experiment_seed: int) -> dict[str, list[str]]:
    """Return the texts of `count` random records of each label, or of all if there are fewer, keyed by label."""
    shown = {}
    for label in task.labels:
        texts = [record.text for record in private if record.label == label]
        order = rng.experiment(experiment_seed, "private exemplars", label).permutation(len(texts))
        shown[label] = [texts[at] for at in order[:count]]
    return shown


def _method(settings: SimulationSettings) -> PrivateExemplarsSettings:
    assert isinstance(settings.method, PrivateExemplarsSettings), "by whose name this was called"
    return settings.method


def _written(
    settings: SimulationSettings,
    folder: Path,
    source: Source,
    shown: Mapping[str, Sequence[str]],
    held_out: Sequence[Record],
) -> tuple[State[NoMemory], dict[str, Any]]:
    """Write the texts; return them as a state of the run, and figures on them; texts and figures are unprotected."""
    measured = with_records(settings, [])
    evaluation, encoder = measured.evaluation, measured.encoder
    prompts = Prompts(settings.llm.prompts, name_other_labels=settings.llm.name_other_labels)
    models: dict[str, Provider] = providers.providers(
        {name: build(model, partial=True) for name, model in settings.llm.used.items()},
        public_texts=source.public_texts,
        public_examples=source.public_examples,
        encoder=encoder,
        experiment_seed=settings.experiment_seed,
        spending=Spending(),
        folder=folder / "state",
        prompts=prompts,
    )
    remote = [name for name, model in models.items() if model.remote]
    # Whatever its model is, some of its figures are by an encoder, and these texts are as private as the records.
    endpoint = not encoder.runs_here or (evaluation.embedding is not None and not evaluation.embedding.runs_here)
    if remote or endpoint:
        raise ConfigError(
            f"method {NAME}",
            expected="language models and an encoder that run here: private text is never sent anywhere",
            got=", ".join(remote) or "an endpoint for the evaluation",
            do="Choose models that are computed locally, such as llm=builtin",
        )
    cleaner = providers.cleaner(settings.llm.clean, source.task(), source.public_texts, prompts=prompts)
    harvest = _generated(settings, models, source, shown, cleaner)
    report = make_report(
        0,
        list(models),
        requested=harvest.requested,
        generated=harvest.candidates,
        candidates=len(harvest.candidates),
        work=[harvest],
    )
    inputs = source.task().classifier_inputs(harvest.candidates)
    measured = replace(measured, candidates=inputs, released=[candidate.text for candidate in harvest.candidates])
    metrics = small_model.metrics(inputs, held_out, evaluation, encoder)
    metrics |= of_texts.text_groups(measured) | nearness.nearness(measured, ()) | record_groups(measured)
    state = State(round=1, candidates=tuple(harvest.candidates), rounds=(report,), memory=NoMemory())
    return state, metrics


def _generated(
    settings: SimulationSettings,
    models: Mapping[str, Provider],
    source: Source,
    shown: Mapping[str, Sequence[str]],
    cleaner: Cleaner,
) -> Generated:
    method, task = _method(settings), source.task()

    def write(order: Order, texts: int, generator: np.random.Generator) -> Request:
        good, _ = selection.draw_exemplars(shown[order.label], (), method.exemplars, generator)
        return by_example(
            task,
            order.label,
            texts=texts,
            rng=generator,
            good=good,
            temperature=method.temperature,
            words=method.words,
        )

    return generate(
        models,
        even_orders(method.samples, task, list(models)),
        write,
        round_number=0,
        texts_per_request=method.texts_per_request,
        experiment_seed=settings.experiment_seed,
        cleaner=cleaner,
    )

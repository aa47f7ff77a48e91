"""The form of a completing model's prompts where `completion.form` is auto, chosen before anything private is asked.

Each form writes the same few zero-shot texts. Chosen is the one with the largest share of texts that are nearest, under
the run's encoder, to the public description of the label that was requested; of equal ones the first of `FORMS`. A text
that was lost, or that the form wrote before, counts as wrong. The replies are in the run's cache, so that a resumed run
chooses the same. Nothing private is looked at, and no accuracy on held-out texts.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from common import rng
from common.models.encoder import TextEncoder
from common.system.progress import progress
from server.domain import Task
from server.llm import prompts
from server.llm.base import Formed, Provider, form_of
from server.llm.forms import AUTO, FORMS

log = logging.getLogger("caucus.llm")

TEXTS = 40
"""Number of texts of each form, spread over the labels."""


def in_chosen_forms(
    providers: Mapping[str, Provider], task: Task, encoder: TextEncoder, *, experiment_seed: int
) -> dict[str, Provider]:
    """The models, each of those with the form auto in the form that suits it and the task.

    Args:
        providers: Language models by name.
        task: The task, whose labels' descriptions the texts are compared with.
        encoder: The run's encoder.
        experiment_seed: Seed of the prompts.

    Raises:
        ProviderError: A model fails.
    """
    chosen = dict(providers)
    for name, provider in providers.items():
        if isinstance(provider, Formed) and provider.form == AUTO:
            with progress(f"choosing the form of prompts of {name}"):
                agreements = {
                    form: agreement(provider.in_form(form), task, encoder, experiment_seed=experiment_seed)
                    for form in FORMS
                }
            form = max(agreements, key=lambda form: agreements[form])
            shares = ", ".join(f"{form} {share:.0%}" for form, share in agreements.items())
            log.info("prompts of %s: %s (share of %d texts nearest to their label: %s)", name, form, TEXTS, shares)
            chosen[name] = provider.in_form(form)
    return chosen


def forms_in_words(providers: Mapping[str, Provider]) -> dict[str, str]:
    """Form of the prompts of each model that completes a list, as far as it is known before a run."""
    choice = f"auto: chosen before the first round, by {TEXTS} zero-shot texts in each of {', '.join(FORMS)}"
    forms = {name: form for name, provider in providers.items() if (form := form_of(provider))}
    return {name: choice if form == AUTO else form for name, form in forms.items()}


def agreement(provider: Provider, task: Task, encoder: TextEncoder, *, experiment_seed: int) -> float:
    """Share of zero-shot texts whose nearest description is that of their label, of those requested."""
    stream, task = rng.experiment(experiment_seed, "form", provider.name), replace(task, structure=None)
    labels = list(task.labels)
    drawn = stream.permutation(np.resize(np.arange(len(labels)), max(TEXTS, len(labels))))[:TEXTS]
    requests = [prompts.by_example(task, labels[at], texts=1, rng=stream) for at in drawn]
    written = dict.fromkeys(
        (text, at) for at, reply in zip(drawn, provider.generate(requests), strict=True) for text in reply.texts
    )
    if not written:
        return 0.0
    texts, requested = zip(*written, strict=True)
    descriptions = encoder.encode([description or label for label, description in task.labels.items()])
    nearest = (encoder.encode(texts) @ descriptions.T).argmax(axis=1)
    return float(np.sum(nearest == np.array(requested))) / len(requests)

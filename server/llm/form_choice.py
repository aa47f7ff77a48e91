"""The form of a completing model's prompts if `completion.form` is auto, chosen before anything private is asked.

Each form writes a few zero-shot texts for the same requests. The margin of a text is its cosine, under the run's
encoder, with the public description of the requested label, minus that with the nearest other description.
The form with the largest mean margin is chosen; among equal ones the first of `FORMS`. The replies are in the run's
cache, so that a resumed run chooses the same form. Neither private nor held-out texts are looked at.
"""

import logging
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from common import rng
from common.models.encoder import TextEncoder
from common.system.progress import progress
from server.domain import Task
from server.llm import prompts
from server.llm.base import Formed, Provider, form_of
from server.llm.clean import Cleaner
from server.llm.forms import AUTO, FORMS
from server.llm.generate import write

log = logging.getLogger("caucus.llm")

TEXTS = 24
"""Number of texts of each form, spread over the labels. Of the forms in `README.md` the one with the lowest margins is
chosen by 10 % of random samples of this size on banking10, and by 2 % on mts_notes8."""


def in_chosen_forms(
    providers: Mapping[str, Provider], task: Task, encoder: TextEncoder, *, cleaner: Cleaner, experiment_seed: int
) -> dict[str, Provider]:
    """Return the models; each one with the form auto gets the form that suits it and the task.

    Args:
        providers: Language models by name.
        task: The task, whose labels' descriptions the texts are compared with.
        encoder: The run's encoder.
        cleaner: The run's rules for texts.
        experiment_seed: Seed of the prompts.

    Raises:
        ProviderError: A model fails.
    """
    chosen = dict(providers)
    for name, provider in providers.items():
        if isinstance(provider, Formed) and provider.form == AUTO:
            with progress(f"choosing the form of prompts of {name}"):
                variants = {form: provider.in_form(form) for form in FORMS}
                margins = {
                    form: margin(variant, task, encoder, cleaner=cleaner, experiment_seed=experiment_seed)
                    for form, variant in variants.items()
                }
            form = max(margins, key=lambda form: margins[form])
            compared = ", ".join(f"{other} {mean:.3f}" for other, mean in margins.items())
            log.info("prompts of %s: %s (mean margins of %d texts: %s)", name, form, TEXTS, compared)
            chosen[name] = variants[form]
    return chosen


def forms_in_words(providers: Mapping[str, Provider]) -> dict[str, str]:
    """Return the form of the prompts of each model that completes a list, if it is known before a run."""
    choice = f"auto: chosen before the first round, by {TEXTS} zero-shot texts in each of {', '.join(FORMS)}"
    forms = {name: form for name, provider in providers.items() if (form := form_of(provider))}
    return {name: choice if form == AUTO else form for name, form in forms.items()}


def margin(provider: Provider, task: Task, encoder: TextEncoder, *, cleaner: Cleaner, experiment_seed: int) -> float:
    """Return the mean margin of the zero-shot texts that a model writes; minus infinity if it writes none."""
    name, labels = provider.name, list(task.labels)
    stream, plain = rng.experiment(experiment_seed, "form", name), replace(task, structure=None)
    drawn = stream.permutation(np.resize(np.arange(len(labels)), max(TEXTS, len(labels))))[:TEXTS]
    requests = [(name, prompts.by_example(plain, labels[at], texts=1, rng=stream)) for at in drawn]
    replies = write({name: provider}, requests, cleaner=cleaner).texts
    texts = [text for reply in replies for text in reply]
    if not texts:
        return -math.inf
    descriptions = encoder.encode([description or label for label, description in task.labels.items()])
    cosines = encoder.encode(texts) @ descriptions.T
    places = np.arange(len(texts)), np.repeat(drawn, [len(reply) for reply in replies])
    own = cosines[places]
    cosines[places] = -math.inf
    return float(np.mean(own - cosines.max(axis=1)))

"""Membership inference and other attacks that measure how much synthetic texts reveal about private records.

Attacks access private records without a query, so they are only for simulations.

A membership attack decides whether a record was among the records from which the texts were made. A language model is
trained on the synthetic texts; members are records of the parties, and non-members are a random part of the same source
that no party had, so that no difference of time or style separates them (RPSG, appendix E). Scores of a record x,
higher for a member:

    PPL    -nll(x), the likelihood of the record under the model (Carlini et al. 2021)
    REFER  nll_reference(x) / nll(x): the same, relative to a model trained on other texts of the source (ibid.)
    LIRA   mean of nll_shadow(x) - nll(x): a likelihood ratio of Gaussians of one variance, offline, because there are
           too few shadow models for a variance per record (Carlini et al. 2022, sections IV.C and V.B); each
           shadow model is trained on a random half of these other texts

Each attack's figure is the area under its ROC curve: 0.5 for guessing, 1 for certainty.

Disclosures of records are compared with those of phantoms: test texts that no party has (arXiv 2606.16952). A
hospital's own `caucus-party audit` uses the same features and tests; `client/disclosures/learning.py` explains what is
tested. Test texts take the place of the control records. The test of "no learning" is exact if they are a random sample
of the same source, as with `task=csv` and a random split; otherwise a difference between the sources is mistaken for a
disclosure.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from client.disclosures import features, learning
from common.errors import DataError
from common.validate import integers
from server.documents.metrics import Figure, Group
from server.evaluation import subgroups
from server.evaluation.figures import share
from server.metrics.intervals import area_under_curve
from server.metrics.language_model import FROM_SCRATCH, LanguageModel
from server.settings.evaluation import Training

MEMBERSHIP = (
    "Area under the ROC curve of attacks that tell records of the parties from a random held-out part of the same "
    "source, by a language model trained on the synthetic texts: PPL by its likelihood alone, REFER by the ratio to a "
    "model trained on other held-out texts, LIRA (offline, one variance) by the mean difference from shadow models "
    "trained on halves of those. 0.5 is guessing. Intervals by DeLong."
)
"""Definition of the membership attacks' figures, shown in reports."""
FEATURES = tuple(feature.replace(" ", "_") for feature in features.FEATURES)
"""Names of the figures, one for each feature, in the same order as the features."""

DISCLOSURES = (
    "Shares of the parties' records, and of as few or as many test texts (control), that the synthetic texts disclose: "
    "by personal information or five words in a row that are in no other of these texts, by one of the "
    f"{features.MOST} longest spans in common with a text, by a nearest text that is nearest in comparison with the "
    f"second nearest (also {features.MOST}), or by being in the tenth that is nearest to a text. p: probability of as "
    "many disclosed records or more if nothing was learned (hypergeometric). found: number of features that reject "
    "this, false alarms of all together being 5% at most (Holm). any: by any of these; worst_label, worst_length and "
    "worst_hospital: of the group of records with the most. It needs test texts from the same source; what no "
    "feature shows is not seen, such as a style, a translation or records whose text occurs more than once."
)
"""Definition of the disclosures' figures, shown in reports."""


def attacks(
    synthetic: Sequence[str],
    members: Sequence[str],
    others: Sequence[str],
    reference: Sequence[str],
    *,
    shadows: int = 2,
    seed: int = 0,
    training: Training = FROM_SCRATCH,
) -> dict[str, Figure]:
    """Run the PPL, REFER and LIRA attacks on the synthetic texts.

    Args:
        synthetic: Training texts of the attacked model; at least one.
        members: At least two records of the parties.
        others: At least two texts from the same source that no party had.
        reference: At least two more such texts, on which reference and shadow models are trained.
        shadows: Number of shadow models, each trained on a half of `reference`.
        seed: Experiment seed.
        training: Training settings for all models.

    Raises:
        DataError: There are too few texts.
    """
    integers(1, shadows=shadows)
    if min(len(members), len(others), len(reference)) < 2:
        raise DataError("membership attack", expected="at least two members, others and reference texts", got="fewer")
    half = (len(reference) + 1) // 2
    halves = [np.random.default_rng([seed, shadow]).permutation(len(reference))[:half] for shadow in range(shadows)]
    # All have one tokenizer, or likelihoods could not be compared.
    target = LanguageModel.train(synthetic, training, seed=seed, tokens_of=reference)
    reference_model = LanguageModel.train(reference, training, seed=seed + 1, tokens_of=reference)
    shadow_models = [
        LanguageModel.train([reference[row] for row in rows], training, seed=seed + 2 + at, tokens_of=reference)
        for at, rows in enumerate(halves)
    ]
    return run_attacks(target, reference_model, shadow_models, members, others)


def run_attacks(
    target: LanguageModel,
    reference: LanguageModel,
    shadows: Sequence[LanguageModel],
    members: Sequence[str],
    others: Sequence[str],
) -> dict[str, Figure]:
    """Run the PPL, REFER and LIRA attacks with trained models."""
    texts = [*members, *others]
    nll = target.nll(texts)
    scores = {
        "PPL": -nll,
        "REFER": reference.nll(texts) / nll,
        "LIRA": np.mean([shadow.nll(texts) for shadow in shadows], axis=0) - nll,
    }
    areas = {name: area_under_curve(values[: len(members)], values[len(members) :]) for name, values in scores.items()}
    return {name: Figure(value=area, interval=interval, rows=len(texts)) for name, (area, interval) in areas.items()}


def exposure(model: LanguageModel, canary: str, alternatives: Sequence[str]) -> float:
    """Return the exposure of a canary in bits (Carlini et al. 2019): log2(number of candidates / rank of the canary).

    Args:
        model: Model trained on texts that may contain the canary.
        canary: Text that was inserted into the records.
        alternatives: Texts of the same form that were not inserted; more of them give a finer scale.

    Returns:
        A value from 0, if the canary is the least likely candidate, to log2(len(alternatives) + 1), if it is the most
        likely. In a tie the canary counts as the less likely candidate. The mean is about 1.44 if nothing was learned.

    Raises:
        DataError: There are no alternatives.
    """
    if not alternatives:
        raise DataError("canary", expected="at least one alternative of the same form", got="none")
    nll = model.nll([canary, *alternatives])
    rank = 1 + int((nll[1:] <= nll[0]).sum())
    return math.log2(len(nll) / rank)


def phantom_figures(
    records: Sequence[str],
    control: Sequence[str],
    texts: Sequence[str],
    embedded: Callable[[Sequence[str]], NDArray[np.float32]],
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Group:
    """Return the figures, keyed by name: each feature's two fractions and p-value, and how many features reject.

    `note` contains the smallest number of disclosed records that can be detected. `features` lists the features that
    reject, if any.

    Args:
        records: Texts of the parties' records.
        control: Test texts.
        texts: The synthetic texts.
        embedded: Function that returns the vectors of texts, (texts, dim).
        groups: For each way of grouping the records, such as "label", the name of each record's group.

    Raises:
        DataError: Too few records or test texts are left after removing those with a text that occurs more than once.
    """
    kept, kept_control = learning.unique_sequences(records, control)
    pool = [*(records[place] for place in kept), *(control[place] for place in kept_control)]
    nearness = features.nearest(embedded(pool), embedded(texts))
    flags = features.flag_disclosed(pool, texts, personal=features.personal_values, nearness=nearness)
    n, m = len(kept), len(kept_control)
    tests, disclosing = learning.learning(flags, n), []
    made: Group = {}
    for name, test in zip(FEATURES, tests, strict=True):
        for figure, count, rows in ((name, test.training, n), (f"{name}_control", test.control, m)):
            made[figure] = share(count, rows)
        made[f"{name}_p"] = Figure(value=test.p, rows=n + m)
        if test.rejected:
            disclosing.append(f"{test.feature} ({test.training} of {n} records, {test.control} of {m} test texts)")
    fewest = learning.fewest(n, m, features=len(tests))
    note = f'Fewer than {fewest} disclosed records cannot be found among these; "nothing found" proves no privacy.'
    by_any = np.any([*flags.values()], axis=0)
    made |= {"any": share(int(by_any[:n].sum()), n), "any_control": share(int(by_any[n:].sum()), m)}
    of_kept = {kind: [names[place] for place in kept] for kind, names in (groups or {}).items()}
    made |= subgroups.worst(by_any[:n].astype(float), of_kept, highest=True)
    made |= {"found": Figure(value=len(disclosing), rows=n + m), "note": note}
    return made | ({"features": ", ".join(disclosing)} if disclosing else {})

"""Disclosures of records compared with those of phantoms: test texts that no party has (arXiv 2606.16952).

A hospital's own `caucus-party audit` uses the same features and tests; `client/disclosures/learning.py` explains what
is tested. Test texts take the place of the control records. The test of "no learning" is exact if they are a random
sample of the same source, as with `task=csv` and a random split; otherwise a difference between the sources is mistaken
for a disclosure.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from client.disclosures import features, learning
from server.documents.metrics import Figure, Group
from server.evaluation import subgroups
from server.evaluation.figures import share

NAMES = tuple(feature.replace(" ", "_") for feature in features.FEATURES)
"""Names of the figures, one for each feature, in the same order as the features."""

DEFINITION = (
    "Shares of the parties' records, and of as few or as many test texts (control), that the synthetic texts disclose: "
    "by personal information or five words in a row that are in no other of these texts, by one of the "
    f"{features.MOST} longest spans in common with a text, by a nearest text that is nearest in comparison with the "
    f"second nearest (also {features.MOST}), or by being in the tenth that is nearest to a text. p: probability of as "
    "many disclosed records or more if nothing was learned (hypergeometric). found: number of features that reject "
    "this, false alarms of all together being 5% at most (Holm). any: by any of these; worst_label, worst_length and "
    "worst_hospital: of the group of records with the most. It needs test texts from the same source; what no "
    "feature shows is not seen, such as a style, a translation or records whose text occurs more than once."
)
"""Definition of the figures, shown in reports."""


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
    flags = features.disclosed_records(pool, texts, nearness=nearness, personal=features.personal_values)
    n, m = len(kept), len(kept_control)
    tests, disclosing = learning.learning(flags, n), []
    made: Group = {}
    for name, test in zip(NAMES, tests, strict=True):
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

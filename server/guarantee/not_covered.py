"""Limits of a run's guarantee, in plain words."""

from common.plan import not_covered as by_plan
from server.documents.privacy import Privacy
from server.guarantee.rounding import show_epsilon


def not_covered(privacy: Privacy) -> list[str]:
    """List what the guarantee does not cover; each item has the form "Heading: explanation."."""
    scope = by_plan.Scope(
        asked=bool(privacy.queries),
        unproven=privacy.unproven,
        noisy=privacy.noisy,
        masked=privacy.masked,
        malicious=privacy.malicious,
        corrupt=privacy.corrupt,
        colluders=privacy.assumed_colluders,
        against={row.colluders: show_epsilon(row.epsilon) for row in privacy.against_colluders},
        largest_coalition=privacy.largest_coalition,
        max_dropouts=privacy.max_dropouts,
        survivors=privacy.assumed_survivors,
        user_records=privacy.adjacency.max_records if privacy.by_user else None,
        trained=any(query.noise_multiplier for query in privacy.queries),
    )
    items = by_plan.not_covered(scope)
    if privacy.labels_from_records:
        items.append(
            "Labels: they were taken from the private training file; which labels occur there is not protected."
        )
    if not privacy.simulation:
        items.append(
            "Figures of test texts: if the run has test texts (task.test), accuracy, FID and the like are computed "
            "from them without noise. None of these figures is protected: whoever publishes one publishes a fact about "
            "those texts."
        )
    if privacy.simulation:
        items.append(
            "Figures computed in the simulation: accuracy and FID were computed from the test records without noise, "
            "and those marked as simulation only from the private records without noise. None of these figures is "
            "protected."
        )
        items.append(
            "Records as dealt: the guarantee is for the records that each simulated party was dealt. How one record or "
            "user more in the file would change who is dealt what (federation.partition, federation.records) is not "
            "covered, nor the number of records, by which automatic settings may be chosen (expected_records)."
        )
        items.append(
            "Refusal: that a run is refused for what its texts disclose (refuse_disclosures), or is not, is found from "
            "the records without noise."
        )
    return items

"""The guarantee in words: the paragraphs for `privacy.json`, and the privacy cost in one line for the terminal."""

import math
from collections.abc import Iterator
from dataclasses import replace

from common.plan.not_covered import not_covered
from common.plan.words import subsampled
from server.documents.privacy import Privacy
from server.guarantee.case import LIMIT, UNKNOWN, Kind, effective_epsilon, guarantee_kind, unprotected
from server.guarantee.rounding import at_most_times, counted, hospitals, one_in, show_delta, show_epsilon


def stated(privacy: Privacy) -> Privacy:
    """Return the same document with its statement in words, and with the list of what the guarantee does not cover."""
    return replace(privacy, statement=statement(privacy), not_covered=tuple(run_not_covered(privacy)))


def statement(privacy: Privacy) -> str:
    """State what is guaranteed, against whom, and under which assumptions.

    Args:
        privacy: The run's `privacy.json`; its fields `statement` and `not_covered` are ignored.

    Returns:
        Paragraphs, separated by an empty line.
    """
    kind = guarantee_kind(privacy)
    if kind is Kind.NONE:
        first, *others = _no_guarantee(privacy)
        paragraphs = [first, *_reused(privacy), *others]
    elif kind is Kind.NOT_ASKED:
        nothing = (
            "No question about private records was put to any hospital, so the released texts do not depend on them."
        )
        paragraphs = [*_reused(privacy), nothing]
    else:
        paragraphs = [*_reused(privacy), *_guarantee(privacy), _how(privacy), *_figures(privacy), *_spent(privacy)]
    if privacy.labels_from_records:
        paragraphs.append(
            "Not covered: the labels. They were taken from the private training file without noise, so the texts show "
            "which labels occur there. Name the labels in the task's file instead, from public knowledge."
        )
    if privacy.simulation:
        paragraphs.append(
            "This was a simulation: the records of all hospitals were on one machine, so nothing was hidden from the "
            "person who ran it. The statements about hospitals and coordinator hold in a deployment, where each "
            "hospital keeps its own records."
        )
    return "\n\n".join(paragraphs)


def run_not_covered(privacy: Privacy) -> list[str]:
    """Return a list of what a run's guarantee does not cover; each item has the form "Heading: explanation."."""
    items = not_covered(privacy, show_epsilon)
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


def warning(privacy: Privacy | None) -> str | None:
    """Return the warning about a run at the top of its page; None if its texts have a guarantee, or need none."""
    if privacy is None:
        return UNKNOWN
    if not unprotected(privacy):
        return None
    # Baselines, which put no question, have statements of their own, each of which begins with such a warning.
    return (
        privacy.statement.split("\n\n")[0] if not privacy.queries and privacy.statement else _no_guarantee(privacy)[0]
    )


def of_numbers(privacy: Privacy, run: str) -> str:
    """Return the guarantee of released numbers, such as a census, in sentences for the file of these numbers.

    Args:
        privacy: The `privacy.json` of the run that asked the parties.
        run: ID of that run.
    """
    if not privacy.noisy or privacy.unproven:
        return (
            f"Released by run {run} without {'a proof' if privacy.noisy else 'noise'}: these numbers, and all that is "
            "made of them, have no guarantee; treat them as private data."
        )
    return (
        f"Released by run {run} with ε = {show_epsilon(privacy.epsilon)} and δ = {show_delta(privacy.delta)} for each "
        f"{'user' if privacy.by_user else 'record'}. Whatever is made of these numbers alone has the same guarantee, "
        "however often they are used: `privacy` states it in full."
        + (" Which labels occur was taken from records without noise." if privacy.labels_from_records else "")
    )


def cost(privacy: Privacy | None) -> str:
    """State the planned and spent privacy loss; pass None if `privacy.json` is missing or cannot be read."""
    kind = guarantee_kind(privacy)
    if privacy is None:
        return "not known: privacy.json cannot be read"
    if kind is Kind.NONE:
        return "no guarantee (ε = ∞)"
    if kind is Kind.NOT_ASKED and not privacy.earlier:
        return "no hospital was asked (ε = 0)"
    planned, delta = show_epsilon(privacy.planned_epsilon), show_delta(privacy.delta)
    if privacy.earlier:
        return f"ε = {planned}, δ = {delta} of run {privacy.earlier.run}, which asked; nothing more was asked"
    spent = show_epsilon(privacy.spent.epsilon)
    return f"ε = {planned} planned and {spent} spent, δ = {delta} planned and spent"


def _no_guarantee(privacy: Privacy) -> list[str]:
    """Return the paragraphs for a run without a guarantee, the first of which says so."""
    if privacy.unproven:
        return _unproven(privacy)
    if privacy.queries:
        return _without_noise(privacy)
    return [
        (
            "No privacy: private records were used without a question to any hospital and without noise (ε is "
            "infinite). The released texts can depend on single records without any bound."
        )
    ]


def _unproven(privacy: Privacy) -> list[str]:
    """Return the paragraphs for a run with queries that lack a privacy proof.

    If the paper claims a guarantee for a noised choice, they state that claim. They also state the guarantee for the
    other queries.
    """
    names = privacy.unproven
    paragraphs = [
        (
            f"The released texts have no end-to-end guarantee (ε is infinite): {', '.join(names)} takes texts from the "
            "hospitals that are written from private records, and there is no proof that these do not reveal a record."
        )
    ]
    delta = show_delta(privacy.delta)
    for query in privacy.queries:
        choice = query.choice
        if not choice or math.isinf(choice.claimed_epsilon):
            continue
        paragraphs.append(
            f"{query.name}: the method's paper claims ε = {show_epsilon(choice.claimed_epsilon)} and δ = {delta} "
            f"for its choice. This claim is not about the texts: it would hold if the {query.candidates} candidates "
            "were the same for every record, but they are written from the record. With such candidates, one choice "
            f"with this noise would cost ε = {show_epsilon(choice.epsilon_among_public_candidates)}, and no δ."
        )
    proven = [query.name for query in privacy.queries if query.name not in names]
    if proven and math.isfinite(privacy.proven_epsilon):
        paragraphs.append(
            f"What is still guaranteed: {', '.join(proven)}, and everything computed from their answers alone, have "
            f"computational differential privacy with ε = {show_epsilon(privacy.proven_epsilon)} and δ = {delta}."
        )
    return paragraphs


def _reused(privacy: Privacy) -> Iterator[str]:
    """Yield a paragraph on the earlier run whose numbers this run uses, if it does."""
    if not privacy.earlier:
        return
    run = privacy.earlier.run
    cost = (
        "released without a guarantee; what follows is said of that run."
        if unprotected(privacy)
        else "released, and using these again costs nothing more: what follows is the guarantee under which run "
        f"{run} got them. It holds for everything that is made of these numbers, together."
    )
    yield (
        "No question was put to any hospital in this run. Its texts depend on the hospitals' records only through the "
        f"numbers that run {run} {cost}"
    )


def _without_noise(privacy: Privacy) -> list[str]:
    first = (
        "No privacy: no noise was added to the hospitals' answers (ε is infinite). The released texts can depend on "
        "single records without any bound. Such a run is for experiments with data that need no protection."
    )
    if not privacy.summed:
        return [first, "The coordinator saw the exact answers of each hospital."]
    others = f"; and of {privacy.unsummed} each hospital's own exact answer" if privacy.unsummed else ""
    return [first, f"Secure aggregation showed the coordinator only the hospitals' sums, but those are exact{others}."]


def _guarantee(privacy: Privacy) -> list[str]:
    epsilon, delta = effective_epsilon(privacy), privacy.delta
    unit, given = "any one record", "a given record was"
    if privacy.by_user:
        unit = f"all records of any one user (of which at most {privacy.adjacency.max_records} count)"
        given = "a given user's records were"
    factor, guesses = at_most_times(epsilon), privacy.readers_guesses
    extra = f", apart from an additional probability of at most δ ({one_in(delta)})" if delta else ""
    first = (
        f"The hospitals' records are protected by computational differential privacy with ε = {show_epsilon(epsilon)} "
        f"and δ = {show_delta(delta)}. Adding or removing {unit} makes no result of the run more than {factor} as "
        f"probable{extra}."
    )
    if (most := privacy.labels_per_record) > 1:
        first += f" A record counts under up to {most} of its labels, and this holds for all of them together."
    few = f" This holds {privacy.condition}." if privacy.condition else ""
    alone = ""
    if guesses.right < guesses.worst:
        alone = f" ε and δ alone would allow {guesses.worst:g}%, against the worst mechanism that has them."
    second = (
        "What this means: suppose somebody knows all other records and has to guess from the released texts whether "
        f"{given} used, with yes and no equally likely. With the noise of this run that guess is right in at most "
        f"{guesses.right:g}% of cases; a coin toss is right in 50%.{alone}{few} {LIMIT} The smaller ε "
        "is, the closer the limit is to the coin toss."
    )
    third = (
        "Computational means: the noise, and every random choice of records, is computed from secret keys by AES-256. "
        "The guarantee holds against everybody who cannot tell its output from true randomness."
    )
    return [first, second, third]


def _how(privacy: Privacy) -> str:
    if not privacy.summed:
        return (
            f"How: {privacy.mechanism}. Each hospital adds the whole noise to its own answers before they leave it, so "
            "the guarantee also holds against the coordinator and against the other hospitals."
            + _subsampled(privacy)
            + _trained(privacy)
        )
    share = privacy.noise_parties
    colluders = privacy.assumed_colluders
    trusted = (
        f"even if {hospitals(colluders)} told the coordinator all they know"
        if colluders
        else "as long as no hospital tells the coordinator what it knows"
    )
    return (
        f"How: {privacy.mechanism}. Each hospital adds 1/{share} of the noise variance to its answers. "
        f"Secure aggregation shows the coordinator only the sum over all hospitals that stayed, at least "
        f"{privacy.assumed_survivors} of {privacy.parties}. That sum contains the whole noise {trusted}. "
        + (
            "The coordinator is not trusted: hospitals sign their keys and the list of hospitals whose answers are in "
            "the sum."
            if privacy.malicious
            else "The coordinator is assumed to follow the protocol, but may try to learn from everything that it sees."
        )
        + _unsummed(privacy)
        + _subsampled(privacy)
        + _trained(privacy)
    )


def _subsampled(privacy: Privacy) -> str:
    user, sentences = privacy.by_user, []
    whose, who = ("the user's", "a user") if user else ("its", "a record")
    for query in privacy.queries:
        if subset := query.subsampling:
            steps = query.mechanism == "dp-sgd"
            clause = subsampled(subset.rate, by_user=user, redrawn=subset.redrawn, steps=steps)
            sentences.append(
                f" {query.name}: {clause}; only {whose} hospital knows who does. Against anybody who learns that {who} "
                "took part, the loss is larger than ε."
            )
    return "".join(sentences)


def _trained(privacy: Privacy) -> str:
    return "".join(
        f" {query.name}: each hospital trains its own language model in {query.steps} steps. The standard deviation "
        f"of the noise is {query.noise_multiplier:.3g} times the largest change that one protected unit can make to "
        "a step. The texts are sampled from that model."
        for query in privacy.queries
        if query.noise_multiplier
    )


def _unsummed(privacy: Privacy) -> str:
    if not privacy.unsummed:
        return ""
    return (
        f" Not summed: {privacy.unsummed}. For these, each hospital adds the whole noise itself, and the coordinator "
        "sees each hospital's own answer."
    )


def _figures(privacy: Privacy) -> list[str]:
    """Return paragraphs on other values of ε: if all add their noise, without δ, and with the papers' formula."""
    paragraphs = []
    everybody, planned = privacy.if_all_add_noise_epsilon, privacy.planned_epsilon
    if everybody is not None and show_epsilon(everybody) != show_epsilon(planned):
        paragraphs.append(
            f"If every hospital adds its noise and keeps it secret, the released texts have ε = "
            f"{show_epsilon(everybody)}; nothing here relies on that. Against the coordinator and "
            f"{counted(privacy.assumed_colluders, 'colluding hospital', 'colluding hospitals')}, a hospital's answers "
            f"have ε = {show_epsilon(privacy.party_epsilon)}."
        )
    pure = privacy.pure_epsilon
    if pure is not None and pure <= privacy.epsilon * (1 + 1e-9):
        paragraphs.append(
            f"The guarantee is pure: it also holds with ε = {show_epsilon(pure)} and no δ, except that each "
            "draw of noise deviates from its distribution by less than 1e-30 in total variation."
        )
    if privacy.calibration == "paper":
        paragraphs.append(
            "The noise is that of the papers' formula (the classical Gaussian mechanism, with the papers' "
            f"sensitivity) for ε = {show_epsilon(privacy.epsilon)}, for comparison only. Its actual cost is "
            f"ε = {show_epsilon(privacy.planned_epsilon)}."
        )
    return paragraphs


def _spent(privacy: Privacy) -> Iterator[str]:
    asked, planned = privacy.spent.queries_asked, privacy.spent.queries_planned
    cost = f"ε = {show_epsilon(privacy.spent.epsilon)}"
    if privacy.earlier:
        return
    if asked < planned:
        yield (
            f"Of {counted(planned, 'planned query', 'planned queries')}, {asked} had been asked when this was written; "
            f"they cost {cost}. The ε above is that of the whole plan."
        )
    elif privacy.max_attempts > 1:
        yield (
            f"The ε above pays for {privacy.max_attempts} attempts at each of {planned} queries. The queries asked "
            f"cost {cost}."
        )

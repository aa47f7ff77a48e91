"""The report's card that explains what a run's guarantee means for its two sides.

On one side are the readers of the texts; on the other are the coordinator and the parties, who see the answers from
which the texts were made.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from common.plan.guesses import Guesses, scale
from server.documents.files import Document
from server.documents.privacy import Privacy
from server.guarantee.case import LIMIT, Kind, effective_epsilon, guarantee_kind
from server.guarantee.rounding import at_most_times, hospitals, one_in, show_delta, show_epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee(Document):
    """The guarantee of a run, in words for its readers.

    Attributes:
        kind: The case of the guarantee.
        epsilon: ε for one protected unit; 0 if no query was asked, infinite if there is no bound.
        title: The guarantee in a few words, beginning with "No guarantee" if there is none.
        reader: Sentences on what a reader of the texts can infer about one protected unit.
        insiders: Sentences on what the coordinator and the parties can infer about one protected unit.
        worth: The shortest answer to the question whether the texts are safe, without a full stop.
        safe: Sentences that say what `worth` means; the other fields state the conditions.
        assumes: Sentences on the assumptions of the guarantee, and on what it does not cover.
        further: Sentences for those who want to know more: other beliefs than an even one, what ε alone implies, and
            the thresholds of the words in `worth`.
        right_guesses: Upper bound on a reader's percentage of right guesses, as stated in `safe`; 100 if there is no
            bound.
    """

    kind: Kind
    epsilon: float
    title: str
    reader: str
    insiders: str
    worth: str
    safe: str
    assumes: str = ""
    further: tuple[str, ...] = ()
    right_guesses: float = 100


def guarantee(privacy: Privacy | None) -> Guarantee:
    """Return the guarantee of a run in words.

    Args:
        privacy: The run's `privacy.json`; None if it is missing or cannot be read.
    """
    kind = guarantee_kind(privacy)
    if privacy is None:
        return Guarantee(
            kind=kind,
            epsilon=math.inf,
            title="No guarantee is known",
            reader="No readable privacy statement was found. Treat these texts as private data.",
            insiders="What the coordinator and the hospitals saw is unknown.",
            worth="Unknown",
            safe="Nobody can tell from this folder whether the texts are safe.",
        )
    assumes = " ".join(_assumes(privacy, kind))
    epsilon = effective_epsilon(privacy)
    if kind is Kind.NONE:
        return Guarantee(
            kind=kind,
            epsilon=epsilon,
            title="No guarantee: ε = ∞",
            reader="Whoever reads the texts may learn what a single record says: nothing bounds it. Treat them as "
            "private data.",
            insiders=_without_bound(privacy),
            assumes=assumes,
            worth="No guarantee (ε = ∞)",
            safe="Nothing limits what the texts give away: treat them as private data.",
        )
    if kind is Kind.NOT_ASKED:
        return Guarantee(
            kind=kind,
            epsilon=epsilon,
            title="ε = 0: no query about private records",
            reader="Whoever reads the texts learns nothing about any record from them"
            + (", but which labels occur" if privacy.labels_from_records else "")
            + ": no hospital was asked about its records.",
            insiders="The coordinator saw no answer of any hospital.",
            assumes=assumes,
            right_guesses=50,
            worth="No hospital was asked",
            safe="No hospital was asked about its records, so the texts tell nothing of them"
            + (", but which labels occur." if privacy.labels_from_records else "."),
        )
    unit = f"all records of one user, at most {privacy.adjacency.max_records}" if privacy.by_user else "one record"
    return Guarantee(
        kind=kind,
        epsilon=epsilon,
        title=f"ε = {show_epsilon(epsilon)}, δ = {show_delta(privacy.delta)} for {unit}",
        reader=_reader(privacy),
        insiders=_insiders(privacy, epsilon),
        assumes=assumes,
        worth=f"{_word(privacy.readers_guesses)} (ε = {show_epsilon(privacy.readers_epsilon)})",
        safe=_safe(privacy, epsilon),
        further=tuple(_further(privacy)),
        right_guesses=privacy.readers_guesses.right,
    )


def _word(guesses: Guesses) -> str:
    return f"{'No' if guesses.strength == 'none' else guesses.strength.capitalize()} protection"


def _safe(privacy: Privacy, epsilon: float) -> str:
    """Return sentences on what ε promises and whose data are protected, in the same words as a hospital's page."""
    readers, inside = privacy.readers_guesses, max(epsilon, privacy.party_epsilon)
    others, few = "", f", {privacy.condition}" if privacy.condition else ""
    if not privacy.earlier and show_epsilon(inside) != show_epsilon(privacy.readers_epsilon):
        insiders = privacy.insiders_guesses
        helped = f", helped by {hospitals(privacy.assumed_colluders)}" if privacy.assumed_colluders else ""
        others = (
            f"; the coordinator{helped} (ε = {show_epsilon(inside)}, {_word(insiders).lower()}) in at most "
            f"{insiders.right:g}%"
        )
    labels = " Which labels occur is not covered." if privacy.labels_from_records else ""
    return (
        "Somebody who reads the texts and knows all other records guesses rightly in at most "
        f"{readers.right:g}% of cases whether {_whose(privacy)} took part{few}{others}; a coin toss is right in 50%. "
        f"{LIMIT} Strong protection means at most 60%, weak 75% or more.{labels}"
    )


def _whose(privacy: Privacy) -> str:
    return "a user's records" if privacy.by_user else "a record"


def _reader(privacy: Privacy) -> str:
    epsilon, delta, right = privacy.readers_epsilon, privacy.delta, privacy.readers_guesses.right
    known, unknown, more = "all records but one", "that record was", " A person with several records is protected less."
    if privacy.by_user:
        known, unknown, more = "all records but those of one user", "those records were", ""
    apart = f", apart from a chance of at most δ ({one_in(delta)})" if delta else ""
    few = f" This holds {privacy.condition}." if privacy.condition else ""
    return (
        f"Somebody who reads the texts, knows {known} and is asked whether {unknown} used, yes and no being equally "
        f"likely, is right in at most {right:g}% of cases; a coin toss is right in 50%. ε = {show_epsilon(epsilon)} "
        f"says that no conclusion is more than {at_most_times(epsilon)} as probable if {unknown} used as if not, nor "
        f"the other way round{apart}.{few}{more}"
    )


def _further(privacy: Privacy) -> Iterator[str]:
    readers, epsilon = privacy.readers_guesses, privacy.readers_epsilon
    for belief in readers.beliefs:
        yield f"Somebody who reads the texts and has another belief: {belief.words(_whose(privacy))}."
    alone = f"ε = {show_epsilon(epsilon)} and δ = {show_delta(privacy.delta)} alone"
    if readers.right < readers.worst:
        yield (
            f"From {alone}, only {readers.worst:g}% of right guesses follows, for an even belief: so many are right "
            "against the worst mechanism with them. The noise of this run is another one, and its whole distribution "
            f"gives {readers.right:g}%."
        )
    else:
        yield f"These figures follow from {alone}."
    everybody = privacy.if_all_add_noise_epsilon
    if everybody is not None and show_epsilon(everybody) != show_epsilon(epsilon):
        yield (
            f"If every hospital adds its noise and keeps it secret, the texts have ε = {show_epsilon(everybody)}. No "
            "figure here relies on that."
        )
    yield scale()


def _insiders(privacy: Privacy, epsilon: float) -> str:
    if privacy.earlier:
        return (
            f"No hospital was asked in this run. Its texts are made of what run {privacy.earlier.run} released "
            "under this guarantee, at no further cost."
        )
    inside = max(epsilon, privacy.party_epsilon)
    bound = f"in at most {privacy.insiders_guesses.right:g}% of cases (ε = {show_epsilon(inside)})"
    if not privacy.summed:
        return (
            "The coordinator and the other hospitals may see each hospital's answers, with the whole noise already in "
            f"them: they guess rightly {bound}."
        )
    least, parties, unsummed = privacy.assumed_survivors, privacy.parties, privacy.unsummed
    over = f"all {parties}" if least == parties else f"at least {least} of {parties}"
    helped, several, others = privacy.assumed_colluders, privacy.largest_coalition + 1, parties - 1
    single = (
        f"; with that of {several} or more, it may see the single answers of each other hospital, which then have "
        "that hospital's own part of the noise alone"
    ) * (several <= others)
    alone = f"With {hospitals(helped)} telling it all they know" if helped else "Alone"
    return (
        f"The coordinator sees only noised sums over {over} hospitals"
        + (f", and of {unsummed} each hospital's own answer with the whole noise in it" if unsummed else "")
        + f". {alone}, it guesses rightly {bound}."
        + (f" With the help of more hospitals it can subtract their noise and learn more{single}." * (helped < others))
    )


def _without_bound(privacy: Privacy) -> str:
    if not privacy.queries:
        return "No hospital was asked: all records were in one place, open to whoever ran this."
    if privacy.unproven:
        return f"The coordinator receives {', '.join(privacy.unproven)}, written from each hospital's records."
    if not privacy.summed:
        return "The coordinator saw the exact answers of each hospital."
    unsummed = privacy.unsummed
    others = f", and of {unsummed} each hospital's own exact answer" if unsummed else ""
    return f"The coordinator saw only the hospitals' sums, by secure aggregation, but those are exact{others}."


def _assumes(privacy: Privacy, kind: Kind) -> Iterator[str]:
    if kind is Kind.BOUNDED:
        ciphers = "nobody breaks the cipher that makes the noise (computational differential privacy)"
        if privacy.summed:
            ciphers = "nobody breaks the ciphers that make noise and masks (computational differential privacy)"
            if privacy.malicious:
                few = "1 hospital is" if privacy.corrupt == 1 else f"{privacy.corrupt} hospitals are"
                ciphers += f", and that at most {few} corrupt"
            else:
                ciphers += ", and that the coordinator follows the protocol"
        yield f"It is assumed that {ciphers}."
    if privacy.labels_from_records:
        yield "Not covered: which labels occur, as they were taken from the private file without noise."
    if privacy.simulation and kind is not Kind.NONE:
        yield (
            "What is said of coordinator and hospitals holds in a deployment, but not in this simulation: whoever ran "
            "it had all records."
        )

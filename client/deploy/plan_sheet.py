"""The sheet from which a person decides on a plan: its facts in sentences, for both the terminal and the page.

Privacy losses are rounded up; noise and remaining budget are rounded down. The plan's labels, purpose and recipient and
the names of queries are texts from the coordinator. Their unprintable and blank characters are escaped, so that these
texts can neither overwrite facts nor, after a gap, look like a further fact.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from client.approvals import PlanApproval
from client.deploy.plan_amounts import Budget, Given, OwnRecords
from client.deploy.plan_facts import NOT_STATED_BY_THE_PLAN, PlanFacts, down, up
from client.deploy.shown_labels import shown_labels
from common.domain import is_one_population
from common.phrases import in_fours, quoted
from common.plan.guesses import SCALE, Guesses
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.plan.words import differences, few_corrupt, subsampled
from common.spelling import BLANK
from common.system.log_lines import utc


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of the sheet, or a further sentence about the previous fact.

    Attributes:
        name: The fact's name; empty for a further sentence.
        sentence: The sentence.
        folded: Whether a terminal wraps the sentence into short lines; if not, the sentence is short enough.
    """

    name: str
    sentence: str
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the sheet, which has a title (empty for the first part) and facts."""

    title: str
    facts: tuple[Fact, ...]


def sheet(facts: PlanFacts) -> tuple[Part, ...]:
    """Return the sheet of a plan."""
    approval, plan = facts.approval, facts.plan
    return (
        Part(
            "",
            (
                Fact("plan", f"{approval.plan_digest[:16]}, first seen {utc(approval.first_seen)} UTC"),
                Fact("digest", in_fours(approval.plan_digest)),
                Fact("", "compare it by telephone with the coordinator and with other hospitals"),
                *((Fact("over?", facts.quiet, folded=True),) if facts.quiet else ()),
                *_changes(facts),
            ),
        ),
        Part("what it is for, in the coordinator's words", tuple(_purpose(plan))),
        Part("who takes part", (Fact("hospitals", _hospitals(facts)),)),
        Part("who can see what", tuple(_sight(facts))),
        Part(f"what it can cost in privacy, at delta {plan.delta!r}", tuple(_cost(facts))),
        Part(
            "what the guarantee does not cover; a party is a hospital that takes part",
            tuple(
                Fact("" if number else "not covered", f"- {item}", folded=True)
                for number, item in enumerate(facts.not_covered)
            ),
        ),
        Part("this hospital", tuple(_here(facts))),
    )


def decision(approval: PlanApproval) -> str:
    """Return a line about the decision on a plan: by whom, when and why; empty if there is no decision."""
    by = f" by {approval.by}" if approval.by else ""
    when = f", {utc(approval.decided)} UTC" if approval.decided else ""
    why = f": {plain(approval.reason)}" if approval.reason else ""
    return f"run {plain(approval.run)}: {approval.decision}{by}{when}{why}"


def amounts(budget: Budget) -> str:
    """Return how much of a limited budget is left and how much a plan uses, in epsilon at the delta of `budget`."""
    assert budget.limit is not None
    left, taken = down(max(0.0, budget.limit - budget.before)), up(budget.after - budget.before)
    adds = f"this run adds at most {taken} to what the other runs have spent"
    return f"of epsilon {budget.limit:g}, {left} is left and {adds}, counted by the limit on all runs at its own delta"


def plain(word: str) -> str:
    """Return a word as one printable line, with unprintable and blank characters escaped."""
    return word if word.isprintable() and BLANK.isdisjoint(word) else ascii(word)


def _changes(facts: PlanFacts) -> Iterator[Fact]:
    if facts.before is None:
        yield Fact("changes", "no earlier run of this name, or of this same plan, was approved here")
        return
    when = f"{utc(facts.before.decided)} UTC" if facts.before.decided else "earlier"
    yield Fact("changes", f"since run {plain(facts.before.run)}, approved {when}:")
    for change in facts.changes:
        yield Fact("", f"- {plain(change)}", folded=True)
    if facts.before.plan_digest == facts.approval.plan_digest:
        yield Fact("", "none: it is this same plan, with the same digest")


def _purpose(plan: Plan) -> Iterator[Fact]:
    not_stated = f"ask the coordinator {', '.join(NOT_STATED_BY_THE_PLAN)}: the plan does not say it"
    yield Fact("purpose", plain(plan.purpose), folded=True)
    yield Fact("recipient", plain(plan.recipient), folded=True)
    yield Fact("", "both are the coordinator's word alone: nothing enforces them")
    yield Fact("method", plain(plan.method), folded=True)
    yield Fact("not stated", not_stated, folded=True)


def _sight(facts: PlanFacts) -> Iterator[Fact]:
    plan = facts.plan
    lifting = f"{plan.threshold} of the {plan.degree + 1} hospitals that hold shares of a mask can lift it together"
    yield Fact("coordinator", facts.trust)
    yield Fact("threshold", lifting if plan.secure else "none, because there are no masks")
    if plan.secure:
        sentence = differences(plan.max_dropouts)
        yield Fact("differences", sentence, folded=True)
    yield Fact("colluders", f"{_colluders(facts.colluders)} assumed to help the coordinator")
    yield Fact("own texts", _own_texts(facts))


def _cost(facts: PlanFacts) -> Iterator[Fact]:
    plan = facts.plan
    answers, helpers = "of this hospital's answers, for the coordinator", ""
    if facts.colluders:
        helpers = f" and {facts.colluders} colluder{'s' if facts.colluders > 1 else ''}"
    most = "once" if plan.max_attempts == 1 else f"up to {plan.max_attempts} times, each counted in epsilon"
    whose = "a record" if plan.unit == "sample" else "a user's records"
    yield Fact("protects", facts.unit)
    yield Fact("answers", f"each question is answered with fresh noise {most}")
    few = f"for readers {few_corrupt(facts.corrupt, plan.parties)}"
    yield Fact("epsilon", _epsilon(plan.epsilon, facts.planned, "of all that the run releases"))
    yield Fact("", _epsilon(facts.epsilon_released, facts.released, f"of the synthetic texts, {few}"))
    yield Fact("", _epsilon(facts.epsilon_against, facts.against, f"{answers}{helpers}"))
    yield Fact("", _epsilon(facts.epsilon_alone, facts.alone, f"{answers} once every mask is lifted"))
    if up(facts.epsilon_if_all_add_noise) != up(facts.epsilon_released):
        everybody = f"{up(facts.epsilon_if_all_add_noise)} of the synthetic texts if every hospital adds its noise"
        yield Fact("", f"{everybody}; nothing here relies on it")
    yield Fact(
        "a guess",
        f"of somebody who knows all other records, whether {whose} took part, yes and no equally likely: right at "
        "most as often as stated above; a coin toss is right in 50% of cases. It is a limit for any attack on what is "
        "released, not a forecast",
        folded=True,
    )
    for belief in facts.released.beliefs:
        yield Fact("", f"for readers who believe otherwise, {belief.words(whose)}", folded=True)
    if facts.released.right < facts.released.worst:
        worst = (
            f"epsilon {up(facts.epsilon_released)} by itself would allow right guesses in {facts.released.worst:g}% of "
            "cases, against the worst noise that has it; the noise of this plan is not the worst"
        )
        yield Fact("", worst, folded=True)
    yield Fact("protection", f"{facts.released.strength}, for readers. {SCALE.rstrip('.')}", folded=True)
    if is_one_population(plan.labels):
        yield Fact("labels", "none: what is asked for each label is asked once, for all records together", folded=True)
    if plan.labels_per_record > 1:
        number = plan.labels_per_record
        several = (
            f"a record counts under up to {number} of its labels, the first {number} that the plan has; the noise "
            "covers all of them together"
        )
        yield Fact("labels", several, folded=True)
    if plan.by_section:
        yield Fact(
            "sections", "the labels are headings: a record counts under each with the text of that section alone"
        )
    for query in plan.queries:
        yield from _query(query, plan)


def _here(facts: PlanFacts) -> Iterator[Fact]:
    approved = facts.approval.decision == "approved"
    outcome = "refused even when approved" if approved else "it cannot be approved"
    beyond = f"BEYOND this hospital's limits, {outcome}: {plain(facts.beyond)}"
    if facts.given:
        yield Fact("answered", _given(facts.given), folded=True)
    yield from _named("lifetime budget", _lifetime(facts.budget))
    if facts.budget.problem:
        unsure = f"NOT certain, it may be more; the service does not start with this ledger: {facts.budget.problem}"
        yield Fact("", unsure, folded=True)
    yield from _named("records", _records(facts.records, facts.plan))
    yield Fact("limits", beyond if facts.beyond else "within this hospital's limits")
    if facts.beyond:
        yield Fact("", _fits(facts))
    learns = "the coordinator learns it, a refusal too, and when it was made; never who made it, or why"
    yield Fact("decision", learns)


def _given(given: Given) -> str:
    lost = f"; of {given.uncharged} answered ones the charges were lost with another ledger" if given.uncharged else ""
    return f"{given.answered} questions, by the audit log; {given.charged} answers charged, by the ledger{lost}"


def _fits(facts: PlanFacts) -> str:
    if facts.fits is None:
        return "the epsilon at which it would fit is not calculated: it takes too long, or several plans are shown"
    if facts.fits == 0:
        return "no smaller epsilon would make it fit"
    return f"the same plan would fit at epsilon {down(facts.fits)} or less (known here alone: tell it, or do not)"


def _named(name: str, sentences: Iterable[str]) -> Iterator[Fact]:
    for number, sentence in enumerate(sentences):
        yield Fact("" if number else name, sentence)


def _epsilon(epsilon: float, guesses: Guesses, whose: str) -> str:
    return f"{up(epsilon)} {whose}: a right guess in at most {guesses.right:g}% of cases"


def _colluders(number: int) -> str:
    return "no other hospital is" if not number else "1 other hospital is" if number == 1 else f"{number} others are"


def _own_texts(facts: PlanFacts) -> str:
    if not facts.own_texts:
        return "none leave this hospital: its answers are numbers"
    return f"up to {facts.own_texts} leave this hospital, made from its records by its own model"


def _hospitals(facts: PlanFacts) -> str:
    names = [quoted(name) + " (this hospital)" * (name == facts.hospital) for name in facts.hospitals]
    if facts.unknown:
        names.append(f"{facts.unknown} NOT on this hospital's roster")
    return f"{facts.plan.parties}: {', '.join(names)}; {facts.plan.survivors} or more in each sum"


def _query(query: PlannedQuery, plan: Plan) -> Iterator[Fact]:
    noise = "NO noise"
    if query.scale:
        noise = f"{query.mechanism} noise, scale {down(query.scale / query.spec.noise_grid)}"
    masks = "" if query.summed or not plan.secure else ", NO masks: the coordinator sees this hospital's own answer"
    proof = ", NO proof: its released texts may give a record away" if query.unproven else ""
    kind = f" ({query.spec.kind})" if query.name != query.spec.kind else ""
    often = "once" if query.times == 1 else f"{query.times} times"
    yield Fact("query", f"{plain(query.name)}{kind}, asked {often}: {noise}{masks}{proof}")
    yield Fact("", f"asks: {query.spec.asks}", folded=True)
    if query.rate < 1:
        by_user, steps = plan.unit != "sample", query.mechanism == "dp-sgd"
        clause = subsampled(query.rate, by_user=by_user, redrawn=query.redraw, steps=steps)
        # A small probability hides who takes part, and a delta of its size leaves almost no noise for those who do.
        yield Fact("", clause)


def _lifetime(budget: Budget) -> Iterator[str]:
    # The limit has a delta of its own, so that shares of it are shown first: two deltas on one sheet would be compared.
    if budget.limit is None:
        before, after = (f"epsilon {up(epsilon)}" for epsilon in (budget.before, budget.after))
        yield f"NO limit on all runs: {before} by other runs, up to {after} with this one"
    else:
        before, after = (f"{up(100 * epsilon / budget.limit, 1)} %" for epsilon in (budget.before, budget.after))
        yield f"{before} is used by other runs, up to {after} with this one"
        left = down(100 * (1 - budget.after / budget.limit), 1)
        yield "NOT enough" if budget.after > budget.limit else f"{left} % is left afterwards"
        yield amounts(budget)
    yield f"whoever sees all these answers guesses rightly in at most {budget.guesses.right:g}% of cases"
    if budget.apart:
        yield "of all data sets; the service counts those alone that share a record with the present one"


def _records(records: OwnRecords, plan: Plan) -> Iterator[str]:
    if is_one_population(plan.labels):
        yield f"all {records.total} may take part, as one population: the plan has no labels (known here alone)"
        yield from _limited(records)
        return
    named = "sections under headings" if plan.by_section else "labels"
    each = f"; each counts under all of its {named} here" if plan.labels_per_record > 1 else ""
    yield f"{records.eligible} of {records.total} have one of the plan's labels (known here alone){each}"
    yield from _limited(records)
    if plan.by_section and not records.eligible:
        yield "`headings` in client.yaml has none of them, or no text begins a line with one"
    for label, count in records.of_label.items():
        yield f"{plain(label)}: {count}"
    if records.without:
        yield f"none has: {', '.join(map(plain, records.without))}"
    if records.unasked:
        unasked = (f"{label} ({count})" for label, count in shown_labels(records.unasked).items())
        yield f"not asked for, they take no part: {', '.join(unasked)}"


def _limited(records: OwnRecords) -> Iterator[str]:
    if records.most is not None:
        whose = f"each of {records.users} users" if records.users is not None else "them all, as no user is named"
        yield f"{records.taking_part} of these take part: up to {records.most} of {whose}"

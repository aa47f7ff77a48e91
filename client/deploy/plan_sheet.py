"""The sheet from which a person decides on a plan: its facts in sentences, for both the terminal and the page.

Privacy losses are rounded up; noise and remaining budget are rounded down. The plan's labels, the coordinator's
statements and the names of queries are texts from the coordinator. Their unprintable and blank characters are escaped,
so that these texts can neither overwrite facts nor, after a gap, look like a further fact.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace

from client.approvals import PlanApproval
from client.deploy.asked import asked
from client.deploy.plan_amounts import Budget, OwnRecords
from client.deploy.plan_facts import PlanFacts, down, up
from client.deploy.shown_labels import shown_labels
from common.domain import NOT_STATED, is_one_population
from common.page.words import ENGLISH, catalogue, spelt
from common.phrases import in_fours, quoted
from common.plan.guesses import Guesses, scale
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
        english: Whether the sentence is English in every language, as errors are.
    """

    name: str
    sentence: str
    folded: bool = False
    english: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the sheet, which has a title (empty for the first part), facts, and the code of its language."""

    title: str
    facts: tuple[Fact, ...]
    language: str = ENGLISH


def sheet(facts: PlanFacts, language: str = ENGLISH) -> tuple[Part, ...]:
    """Return the sheet of a plan in the reader's language."""
    say = catalogue(__package__, language)
    delta = spelt(repr(facts.plan.delta), language)
    parts = {
        "": _plan(facts, say),
        say.titles.purpose: _purpose(facts, say),
        say.titles.hospitals: [Fact(say.names.hospitals, _hospitals(facts, say))],
        say.titles.sight: _sight(facts, say, language),
        say.titles.cost.format(delta): _cost(facts, say, language),
        say.titles.not_covered: (
            Fact("" if number else say.names.not_covered, f"- {item}", folded=True)
            for number, item in enumerate(facts.not_covered(language))
        ),
        say.here.title: _here(facts, say, language),
    }
    return tuple(Part(title, tuple(listed), language) for title, listed in parts.items())


def decision(approval: PlanApproval) -> str:
    """Return a line about the decision on a plan: by whom, when and why; empty if there is no decision."""
    by = f" by {approval.by}" if approval.by else ""
    when = f", {utc(approval.decided)} UTC" if approval.decided else ""
    why = f": {plain(approval.reason)}" if approval.reason else ""
    ended = f"ended by this hospital for good, {utc(approval.closed)} UTC; before: " if approval.closed else ""
    return f"run {plain(approval.run)}: {ended}{approval.decision}{by}{when}{why}"


def plain(word: str) -> str:
    """Return a word as one printable line, with unprintable and blank characters escaped."""
    return word if word.isprintable() and BLANK.isdisjoint(word) else ascii(word)


def _plan(facts: PlanFacts, say: SimpleNamespace) -> Iterator[Fact]:
    approval, before = facts.approval, facts.before
    yield Fact(say.names.plan, say.plan.seen.format(approval.plan_digest[:16], utc(approval.first_seen)))
    yield Fact(say.names.digest, in_fours(approval.plan_digest))
    yield Fact("", say.plan.compare)
    if facts.quiet:
        yield Fact(say.names.over, facts.quiet, folded=True, english=True)
    if before is None:
        yield Fact(say.names.changes, say.plan.first)
        return
    since = say.plan.since.format(plain(before.run), utc(before.decided)) if before.decided else ""
    yield Fact(say.names.changes, since or say.plan.since_earlier.format(plain(before.run)))
    for change in facts.changes:
        yield Fact("", f"- {plain(change)}", folded=True, english=True)
    if before.plan_digest == approval.plan_digest:
        yield Fact("", say.plan.same)


def _purpose(facts: PlanFacts, say: SimpleNamespace) -> Iterator[Fact]:
    for name, statement in facts.stated.items():
        known = plain(statement) if statement != NOT_STATED else say.purpose.unknown
        yield Fact(getattr(say.names, name), known, folded=True)
    yield Fact("", say.purpose.word_alone)
    yield Fact(say.names.method, plain(facts.plan.method), folded=True)
    yield Fact(say.names.not_stated, say.purpose.ask.format(", ".join(say.purpose.not_stated)), folded=True)


def _hospitals(facts: PlanFacts, say: SimpleNamespace) -> str:
    this_one = say.hospitals.this
    names = [this_one.format(quoted(name)) if name == facts.hospital else quoted(name) for name in facts.hospitals]
    if facts.unknown:
        names.append(say.hospitals.unknown.format(facts.unknown))
    return str(say.hospitals.all.format(facts.plan.parties, ", ".join(names), facts.plan.survivors))


def _sight(facts: PlanFacts, say: SimpleNamespace, language: str) -> Iterator[Fact]:
    plan, sight = facts.plan, say.sight
    lifting = sight.lifting.format(plan.threshold, plan.degree + 1)
    yield Fact(say.names.coordinator, facts.trust(language))
    yield Fact(say.names.threshold, lifting if plan.secure else sight.no_masks)
    if plan.secure:
        yield Fact(say.names.differences, differences(plan.max_dropouts, language), folded=True)
    few = sight.one_helper if facts.colluders == 1 else sight.helpers.format(facts.colluders)
    yield Fact(say.names.colluders, few if facts.colluders else sight.no_helper)
    yield Fact(say.names.own_texts, sight.texts.format(facts.own_texts) if facts.own_texts else sight.no_texts)


def _cost(facts: PlanFacts, say: SimpleNamespace, language: str) -> Iterator[Fact]:
    plan, cost = facts.plan, say.cost
    whom = cost.coordinator
    if facts.colluders:
        whom = cost.one_colluder if facts.colluders == 1 else cost.colluders.format(facts.colluders)
    few = few_corrupt(facts.corrupt, plan.parties, language)
    often = cost.once if plan.max_attempts == 1 else cost.attempts.format(plan.max_attempts)

    def epsilon(value: float, guesses: Guesses, sentence: str, *shown: object) -> str:
        right = spelt(f"{guesses.right:g}", language)
        return str(cost.guessed.format(spelt(up(value), language), sentence.format(*shown), right))

    yield Fact(say.names.protects, _unit(plan, say))
    yield Fact(say.names.answers, often)
    yield Fact(say.names.epsilon, epsilon(plan.epsilon, facts.planned, cost.of_all))
    yield Fact("", epsilon(facts.epsilon_released, facts.released, cost.of_texts, few))
    yield Fact("", epsilon(facts.epsilon_against, facts.against, cost.of_answers, whom))
    yield Fact("", epsilon(facts.epsilon_alone, facts.alone, cost.of_alone))
    if up(facts.epsilon_if_all_add_noise) != up(facts.epsilon_released):
        yield Fact("", cost.if_all.format(spelt(up(facts.epsilon_if_all_add_noise), language)))
    if user := facts.of_user:
        texts, answers = cost.user_texts, cost.user_answers
        yield Fact(say.names.of_user, epsilon(user.epsilon_released, user.released, texts, user.records))
        yield Fact("", epsilon(user.epsilon_against, user.against, answers, whom, user.records))
    yield from _guesses(facts, say, language)
    if is_one_population(plan.labels):
        yield Fact(say.names.labels, cost.no_labels, folded=True)
    if plan.labels_per_record > 1:
        yield Fact(say.names.labels, cost.several.format(plan.labels_per_record), folded=True)
    if plan.by_section:
        yield Fact(say.names.sections, cost.sections)
    for query in plan.queries:
        yield from _query(query, plan, say, language)


def _guesses(facts: PlanFacts, say: SimpleNamespace, language: str) -> Iterator[Fact]:
    cost, released = say.cost, facts.released
    whose = cost.record if facts.plan.unit == "sample" else cost.user
    yield Fact(say.names.guess, cost.guess.format(whose), folded=True)
    for belief in released.beliefs:
        yield Fact("", cost.belief.format(belief.words(whose, language)), folded=True)
    if released.right < released.worst:
        figures = (spelt(figure, language) for figure in (up(facts.epsilon_released), f"{released.worst:g}"))
        yield Fact("", cost.worst.format(*figures), folded=True)
    strength = cost.strength.format(getattr(cost.words, released.strength), scale(language).rstrip("."))
    yield Fact(say.names.protection, strength, folded=True)


def _unit(plan: Plan, say: SimpleNamespace) -> str:
    if plan.unit == "sample":
        return str(say.cost.each_record)
    records = sorted({query.spec.max_records for query in plan.queries})
    return str(say.cost.each_user.format(f" {say.cost.or_word} ".join(map(str, records)) or say.cost.no_word))


def _query(query: PlannedQuery, plan: Plan, say: SimpleNamespace, language: str) -> Iterator[Fact]:
    said = say.query
    noise = spelt(down(query.scale / query.spec.noise_grid), language) if query.scale else ""
    parts = [said.noise.format(query.mechanism, noise) if query.scale else said.no_noise]
    parts += [said.no_masks] if plan.secure and not query.summed else []
    parts += [said.no_proof] if query.unproven else []
    kind = f" ({query.spec.kind})" if query.name != query.spec.kind else ""
    often = said.once if query.times == 1 else said.often.format(query.times)
    yield Fact(say.names.query, said.asked.format(f"{plain(query.name)}{kind}", often, ", ".join(parts)))
    yield Fact("", said.asks.format(asked(query.spec, language)), folded=True)
    if query.rate < 1:
        by_user, steps = plan.unit != "sample", query.mechanism == "dp-sgd"
        # A small probability hides who takes part, and a delta of its size leaves almost no noise for those who do.
        yield Fact("", subsampled(query.rate, by_user=by_user, redrawn=query.redraw, steps=steps, language=language))


def _here(facts: PlanFacts, say: SimpleNamespace, language: str) -> Iterator[Fact]:
    here, approved = say.here, facts.approval.decision == "approved"
    if given := facts.given:
        sentence = here.given_lost if given.uncharged else here.given
        yield Fact(here.answered, sentence.format(given.answered, given.charged, given.uncharged), folded=True)
    yield from _named(here.budget, _lifetime(facts.budget, here, language))
    if facts.budget.problem:
        yield Fact("", here.unsure.format(facts.budget.problem), folded=True)
    yield from _named(here.records, _records(facts.records, facts.plan, here))
    if facts.beyond:
        yield Fact(here.limits, (here.beyond_approved if approved else here.beyond).format(plain(facts.beyond)))
        fits = here.fits_none if facts.fits == 0 else here.fits_unknown
        if facts.fits or not facts.advised:
            yield Fact("", here.fits.format(spelt(down(facts.fits), language)) if facts.fits else fits)
    else:
        yield Fact(here.limits, here.within)
    yield Fact(here.decision, here.learns)


def _named(name: str, sentences: Iterable[str]) -> Iterator[Fact]:
    for number, sentence in enumerate(sentences):
        yield Fact("" if number else name, sentence)


def _lifetime(budget: Budget, here: SimpleNamespace, language: str) -> Iterator[str]:
    def shown(*figures: str) -> Iterator[str]:
        return (spelt(figure, language) for figure in figures)

    # The limit has a delta of its own, so that shares of it are shown first: two deltas on one sheet would be compared.
    if budget.limit is None:
        yield here.no_limit.format(*shown(up(budget.before), up(budget.after)))
    else:
        yield here.used.format(*shown(*(up(100 * spent / budget.limit, 1) for spent in (budget.before, budget.after))))
        left = here.left.format(*shown(down(100 * (1 - budget.after / budget.limit), 1)))
        yield here.not_enough if budget.after > budget.limit else left
        amounts = down(max(0.0, budget.limit - budget.before)), up(budget.after - budget.before)
        yield here.amounts.format(*shown(f"{budget.limit:g}", *amounts))
    yield here.guessed.format(*shown(f"{budget.guesses.right:g}"))
    if budget.apart:
        yield here.apart


def _records(records: OwnRecords, plan: Plan, here: SimpleNamespace) -> Iterator[str]:
    if is_one_population(plan.labels):
        yield here.one_population.format(records.total)
        yield from _limited(records, here)
        return
    each = here.each_section if plan.by_section else here.each_label
    counted = each if plan.labels_per_record > 1 else here.labels
    yield counted.format(records.eligible, records.total)
    yield from _limited(records, here)
    if plan.by_section and not records.eligible:
        yield here.no_heading
    for label, count in records.of_label.items():
        yield f"{plain(label)}: {count}"
    if records.without:
        yield here.without.format(", ".join(map(plain, records.without)))
    if records.unasked:
        unasked = (f"{label} ({count})" for label, count in shown_labels(records.unasked).items())
        yield here.unasked.format(", ".join(unasked))


def _limited(records: OwnRecords, here: SimpleNamespace) -> Iterator[str]:
    if records.most is not None:
        sentence = here.limited_unnamed if records.users is None else here.limited
        yield sentence.format(records.taking_part, records.most, records.users)
    elif records.users is not None:
        yield here.users.format(records.users, records.most_of_user)

"""The sheet from which a person decides on a plan: its facts in sentences, for both the terminal and the page.

Privacy losses are rounded up; noise and remaining budget are rounded down. The plan's labels, the coordinator's
statements and the names of queries are texts from the coordinator. Their unprintable and blank characters are escaped,
so that these texts can neither overwrite facts nor, after a gap, look like a further fact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from types import SimpleNamespace

from client.approval.amounts import LifetimeBudget, OwnRecords
from client.approval.entries import PlanApproval
from client.approval.facts import PlanFacts, round_down, round_up
from client.approval.questions import question_in_words
from client.approval.standing import end_of_run, given_answers, limits_refuse
from client.deploy.settings import HospitalSettings
from client.records import shown_labels
from common.domain import NOT_STATED, is_one_population
from common.errors import CaucusError, ConfigError, PlanError
from common.page.words import ENGLISH, catalogue, spelt
from common.phrases import group_by_four, quote_name, shorten_exponent
from common.plan.facts import differences, not_covered, protected_unit, subsampling_clause
from common.plan.guesses import Guesses, scale
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.system.log_lines import escaped_line, utc


@dataclass(frozen=True, slots=True)
class SheetFact:
    """One fact of the sheet, in sentences; without a name, it continues the previous one.

    The terminal shows all sentences here. The page shows the warnings of all facts first, then what is `short` of each,
    and the details below.

    Attributes:
        warning: What a person must know before anything else.
        short: What a person needs to decide.
        details: What explains it, or is rarely needed.
        urgent: Whether the warning is that the limits refuse the plan.
        english: Whether the sentences are English in every language, as errors are.
    """

    name: str
    _: KW_ONLY
    warning: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    urgent: bool = False
    english: bool = False

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences, in the order of the terminal."""
        return self.warning + self.short + self.details


@dataclass(frozen=True, slots=True)
class SheetSection:
    """A section of the sheet, which has a title (empty for the first one) and facts."""

    title: str
    facts: tuple[SheetFact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSheet:
    """One plan as a person sees it, in the terminal and on the page.

    Attributes:
        facts: The facts about the plan; None if it cannot be read or shown, as a plan of another version.
        sections: The facts in sentences.
        problem: Why the plan cannot be shown; empty if it can.
    """

    approval: PlanApproval
    facts: PlanFacts | None = None
    sections: tuple[SheetSection, ...] = ()
    problem: str = ""


def plan_sheets(
    settings: HospitalSettings,
    shown: Sequence[PlanApproval],
    known: Sequence[PlanApproval],
    language: str = ENGLISH,
) -> list[PlanSheet]:
    """Return the sheets of these plans, in their order.

    `known` are all plans that the hospital was asked about. A plan that cannot be read or shown takes no other plan
    down: it can be refused, for which only its run and its digest are needed.

    Raises:
        CaucusError: The roster, the records or the ledger cannot be read.
    """
    problems = [_problem(entry) for entry in shown]
    alone = problems.count("") == 1
    private = settings.read_records(may_be_empty=True) if "" in problems else []
    sheets: list[PlanSheet] = []
    for entry, problem in zip(shown, problems, strict=True):
        if problem:
            sheets.append(PlanSheet(approval=entry, problem=problem))
            continue
        try:
            facts = PlanFacts.gather(entry, settings, private, known=known, alone=alone)
            sheets.append(PlanSheet(approval=entry, facts=facts, sections=sheet_sections(facts, language)))
        except (CaucusError, OSError):
            raise  # of the hospital's own files, without which no plan can be shown
        except Exception as error:  # noqa: BLE001 whatever is wrong with one plan, a person must be able to refuse it
            sheets.append(PlanSheet(approval=entry, problem=type(error).__name__))
    return sheets


def _problem(entry: PlanApproval) -> str:
    """Return why a plan cannot be read; empty if it can."""
    try:
        entry.check_plan()
    except (PlanError, ConfigError) as error:
        return escaped_line(str(error))
    return ""


def sheet_sections(facts: PlanFacts, language: str = ENGLISH) -> tuple[SheetSection, ...]:
    """Return the facts about a plan in sentences, in the reader's language."""
    say = catalogue(__package__, language)
    risks = not_covered(facts.guarantee, lambda epsilon: spelt(round_up(epsilon), language), language)
    sections = {
        "": _plan(facts, say, language),
        say.titles.purpose: _purpose(facts, say),
        say.titles.hospitals: [SheetFact(say.names.hospitals, details=(_hospitals(facts, say),))],
        say.titles.sight: _sight(facts, say, language),
        say.titles.cost: _cost(facts, say, language),
        say.titles.not_covered: [SheetFact(say.names.not_covered, details=tuple(f"- {risk}" for risk in risks))],
        say.here.title: _here(facts, say, language),
    }
    return tuple(SheetSection(title, tuple(listed)) for title, listed in sections.items())


def coordinator_sight(facts: PlanFacts, language: str = ENGLISH) -> tuple[str, ...]:
    """Return what the coordinator can see of the answers, and whom the hospital must trust for that."""
    promised, say = facts.guarantee, catalogue(__package__, language).trust
    if not _sums_are_masked(facts.plan):
        return (say.none,)
    questions, single = facts.plan.questions, sum(query.times for query in facts.plan.queries if not query.summed)
    seen = (say.single if single else say.never).format(promised.assumed_survivors, single, questions)
    sight = (say.malicious if promised.malicious else say.protocol).format(seen)
    if promised.lifting is None:
        return (sight,)
    others = promised.parties - 1
    return sight, say.other if others == 1 else say.others.format(promised.lifting, others)


def _sums_are_masked(plan: Plan) -> bool:
    """Return whether masks hide this hospital's own answers; a plan without questions has none to hide."""
    return plan.secure and (not plan.queries or any(query.summed for query in plan.queries))


def _plan(facts: PlanFacts, say: SimpleNamespace, language: str) -> Iterator[SheetFact]:
    approval, before = facts.approval, facts.before
    seen = say.plan.seen.format(approval.plan_digest[:16], utc(approval.first_seen))
    yield SheetFact(say.names.plan, details=(seen,))
    yield SheetFact(say.names.digest, details=(group_by_four(approval.plan_digest), say.plan.compare))
    if over := tuple(end_of_run(approval, language, beyond=facts.fit.beyond)):
        yield SheetFact(say.names.over, warning=over)
    asked = say.plan.texts if facts.own_texts else say.plan.bare if facts.without_noise else say.plan.numbers
    yield SheetFact(say.names.queries, short=(asked.format(facts.plan.questions, facts.own_texts),))
    if before is None:
        yield SheetFact(say.names.changes, details=(say.plan.first,))
        return
    since = say.plan.since.format(escaped_line(before.run), utc(before.decided)) if before.decided else ""
    yield SheetFact(say.names.changes, details=(since or say.plan.since_earlier.format(escaped_line(before.run)),))
    if facts.changes:
        changes = tuple(f"- {escaped_line(change)}" for change in facts.changes)
        yield SheetFact("", details=changes, english=True)
    if before.plan_digest == approval.plan_digest:
        yield SheetFact("", details=(say.plan.same,))


def _purpose(facts: PlanFacts, say: SimpleNamespace) -> Iterator[SheetFact]:
    yield SheetFact(say.names.statements, short=(say.purpose.word_alone,))
    for name, statement in facts.stated.items():
        known = escaped_line(statement) if statement != NOT_STATED else say.purpose.unknown
        yield SheetFact(getattr(say.names, name), short=(known,))
    yield SheetFact(say.names.method, details=(escaped_line(facts.plan.method),))
    yield SheetFact(say.names.not_stated, details=(say.purpose.ask.format(", ".join(say.purpose.not_stated)),))


def _hospitals(facts: PlanFacts, say: SimpleNamespace) -> str:
    this_one = say.hospitals.this
    names = [
        this_one.format(quote_name(name)) if name == facts.hospital else quote_name(name) for name in facts.hospitals
    ]
    if facts.unknown:
        names.append(say.hospitals.unknown.format(facts.unknown))
    return str(say.hospitals.all.format(facts.plan.parties, ", ".join(names), facts.plan.survivors))


def _sight(facts: PlanFacts, say: SimpleNamespace, language: str) -> Iterator[SheetFact]:
    plan, sight = facts.plan, say.sight
    lifting = sight.lifting.format(plan.threshold, plan.degree + 1)
    masked = _sums_are_masked(plan)
    yield SheetFact(say.names.coordinator, short=coordinator_sight(facts, language))
    yield SheetFact(say.names.threshold, details=(lifting if masked else sight.no_masks,))
    if masked:
        yield SheetFact(say.names.differences, details=(differences(plan.max_dropouts, language),))
    few = sight.one_helper if facts.colluders == 1 else sight.helpers.format(facts.colluders)
    yield SheetFact(say.names.colluders, details=(few if facts.colluders else sight.no_helper,))


def _cost(facts: PlanFacts, say: SimpleNamespace, language: str) -> Iterator[SheetFact]:
    plan, cost = facts.plan, say.cost
    yield SheetFact(say.names.protects, short=(_unit(plan, say),))
    yield _protection(facts, say, language)
    yield SheetFact(say.names.delta, short=(spelt(shorten_exponent(f"{plan.delta:g}"), language),))
    yield _guess(facts, say, language)
    yield from _epsilons(facts, say, language)
    often = cost.once if plan.max_attempts == 1 else cost.attempts.format(plan.max_attempts)
    yield SheetFact(say.names.answers, details=(often,))
    if is_one_population(plan.labels):
        yield SheetFact(say.names.labels, details=(cost.no_labels,))
    if plan.labels_per_record > 1:
        yield SheetFact(say.names.labels, details=(cost.several.format(plan.labels_per_record),))
    if plan.by_section:
        yield SheetFact(say.names.sections, details=(cost.sections,))
    for query in plan.queries:
        yield SheetFact(say.names.query, details=tuple(_query(query, plan, say, language)))


def _protection(facts: PlanFacts, say: SimpleNamespace, language: str) -> SheetFact:
    words, user = catalogue("common.plan", language).guess, facts.of_user
    strengths = [say.cost.strength.format(getattr(words.protection, facts.guarantee.readers_guesses.strength))]
    if user:
        strengths.append(say.cost.strength_user.format(getattr(words.protection, user.released.strength), user.records))
    short = (*strengths, words.bounds.rstrip("."))
    return SheetFact(say.names.protection, short=short, details=(scale(language).rstrip("."),))


def _epsilons(facts: PlanFacts, say: SimpleNamespace, language: str) -> Iterator[SheetFact]:
    plan, cost, promised = facts.plan, say.cost, facts.guarantee
    whom = cost.coordinator
    if facts.colluders:
        whom = cost.one_colluder if facts.colluders == 1 else cost.colluders.format(facts.colluders)
    few = promised.readers_condition(language)

    def epsilon(value: float, guesses: Guesses, sentence: str, *shown: object) -> str:
        right = spelt(f"{guesses.right:g}", language)
        return str(cost.guessed.format(spelt(round_up(value), language), sentence.format(*shown), right))

    of_texts = epsilon(promised.released_epsilon, promised.readers_guesses, cost.of_texts, few)
    of_answers = epsilon(promised.party_epsilon, promised.insiders_guesses, cost.of_answers, whom)
    of_alone = [epsilon(facts.epsilon_alone, facts.alone, cost.of_alone)] * _sums_are_masked(plan)
    details = [epsilon(plan.epsilon, facts.planned, cost.of_all)]
    everybody = promised.if_all_add_noise_epsilon
    if everybody is not None and round_up(everybody) != round_up(promised.released_epsilon):
        details.append(cost.if_all.format(spelt(round_up(everybody), language)))
    yield SheetFact(say.names.epsilon, short=(of_texts, of_answers, *of_alone), details=tuple(details))
    if user := facts.of_user:
        texts = epsilon(user.epsilon_released, user.released, cost.user_texts, user.records)
        answers = epsilon(user.epsilon_against, user.against, cost.user_answers, whom, user.records)
        yield SheetFact(say.names.of_user, short=(texts, answers))


def _guess(facts: PlanFacts, say: SimpleNamespace, language: str) -> SheetFact:
    cost, released = say.cost, facts.guarantee.readers_guesses
    whose = protected_unit(facts.guarantee, language)
    details = [cost.belief.format(belief.words(whose, language)) for belief in released.beliefs]
    if released.right < released.worst:
        figures = (
            spelt(figure, language) for figure in (round_up(facts.guarantee.released_epsilon), f"{released.worst:g}")
        )
        details.append(cost.worst.format(*figures))
    return SheetFact(say.names.guess, short=(cost.guess.format(whose),), details=tuple(details))


def _unit(plan: Plan, say: SimpleNamespace) -> str:
    if plan.unit == "sample":
        return str(say.cost.each_record)
    records = sorted({query.spec.max_records for query in plan.queries})
    return str(say.cost.each_user.format(f" {say.cost.or_word} ".join(map(str, records)) or say.cost.no_word))


def _query(query: PlannedQuery, plan: Plan, say: SimpleNamespace, language: str) -> Iterator[str]:
    said = say.query
    noise = spelt(round_down(query.scale / query.spec.noise_grid), language) if query.scale else ""
    parts = [said.noise.format(query.mechanism, noise) if query.scale else said.no_noise]
    parts += [said.no_masks] if plan.secure and not query.summed else []
    parts += [said.no_proof] if query.unproven else []
    kind = f" ({query.spec.kind})" if query.name != query.spec.kind else ""
    often = said.once if query.times == 1 else said.often.format(query.times)
    yield said.asked.format(f"{escaped_line(query.name)}{kind}", often, ", ".join(parts))
    yield said.asks.format(question_in_words(query.spec, language))
    if query.rate < 1:
        by_user, steps = plan.unit != "sample", query.mechanism == "dp-sgd"
        # A small probability hides who takes part, and a delta of its size leaves almost no noise for those who do.
        yield subsampling_clause(query.rate, by_user=by_user, redrawn=query.redraw, steps=steps, language=language)


def _here(facts: PlanFacts, say: SimpleNamespace, language: str) -> Iterator[SheetFact]:
    here = say.here
    if facts.answered or facts.approval.over:
        given = tuple(given_answers(facts.approval, facts.answered, language))
        yield SheetFact(here.answered, short=given)
    finished = facts.approval.finished
    if not finished:
        yield _budget(facts.budget, here, language)
    yield _records(facts, here, finished=finished)
    if facts.fit.beyond and not finished:
        yield SheetFact(here.limits, warning=tuple(_beyond(facts, here, language)), urgent=True)
    elif not finished:
        yield SheetFact(here.limits, details=(here.within,))
    yield SheetFact(here.decision, details=(here.learns,))


def _beyond(facts: PlanFacts, here: SimpleNamespace, language: str) -> Iterator[str]:
    fit = facts.fit
    yield limits_refuse(facts.approval, fit.beyond, language)
    if fit.epsilon:
        yield here.fits.format(spelt(round_down(fit.epsilon), language))
    elif not fit.advised:
        yield here.fits_unknown if fit.epsilon is None else here.fits_none


def _budget(budget: LifetimeBudget, here: SimpleNamespace, language: str) -> SheetFact:
    def shown(sentence: str, *figures: str) -> str:
        return sentence.format(*(spelt(figure, language) for figure in figures))

    # The limit has a delta of its own, so that shares of it are shown first: two deltas on one sheet would be compared.
    if budget.limit is None:
        short = [shown(here.no_limit, round_up(budget.before), round_up(budget.after))]
    else:
        used = (round_up(100 * spent / budget.limit, 1) for spent in (budget.before, budget.after))
        amounts = round_down(max(0.0, budget.limit - budget.before)), round_up(budget.after - budget.before)
        left = shown(here.left, round_down(100 * (1 - budget.after / budget.limit), 1))
        enough = here.not_enough if budget.after > budget.limit else left
        short = [shown(here.used, *used), enough, shown(here.amounts, f"{budget.limit:g}", *amounts)]
    if budget.apart:
        short.append(here.apart)
    if budget.problem:
        short.append(here.unsure.format(budget.problem))
    details = (shown(here.guessed, f"{budget.guesses.right:g}"),)
    return SheetFact(here.budget, short=tuple(short), details=details)


def _records(facts: PlanFacts, here: SimpleNamespace, *, finished: bool) -> SheetFact:
    records = facts.records
    few = (here.few.format(records.taking_part, records.total),) if facts.few_records and not finished else ()
    details = tuple(_labels(records, here)) if not is_one_population(facts.plan.labels) else ()
    return SheetFact(here.records, warning=few, short=tuple(_taking_part(records, facts.plan, here)), details=details)


def _taking_part(records: OwnRecords, plan: Plan, here: SimpleNamespace) -> Iterator[str]:
    each = here.each_section if plan.by_section else here.each_label
    counted = each if plan.labels_per_record > 1 else here.labels
    if is_one_population(plan.labels):
        yield here.one_population.format(records.total)
    else:
        yield counted.format(records.eligible, records.total)
    if plan.by_section and not records.eligible:
        yield here.no_heading
    if records.most is not None:
        sentence = here.limited_unnamed if records.users is None else here.limited
        yield sentence.format(records.taking_part, records.most)
    if records.users is not None:
        yield here.users.format(records.users, records.most_of_user)


def _labels(records: OwnRecords, here: SimpleNamespace) -> Iterator[str]:
    for label, count in records.of_label.items():
        yield f"{escaped_line(label)}: {count}"
    if records.without:
        yield here.without.format(", ".join(map(escaped_line, records.without)))
    if records.unasked:
        unasked = (f"{label} ({count})" for label, count in shown_labels(records.unasked).items())
        yield here.unasked.format(", ".join(unasked))

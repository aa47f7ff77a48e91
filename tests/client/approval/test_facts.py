"""The facts from which a person decides, and that the sheet has a sentence for each of them."""

import math
from dataclasses import replace

import pytest

from client.approval import fit
from client.approval.amounts import count_own_records
from client.approval.facts import round_down, round_up
from client.approval.sheet import sheet_sections
from client.deploy.settings import HospitalSettings
from client.records import embed_records
from common.domain import UNLABELLED, Record
from common.errors import ConfigError, LedgerError
from common.models.encoder import Encoder
from common.page.words import catalogue
from common.plan.facts import differences, not_covered
from common.plan.guarantee import epsilon_against, epsilon_alone, plan_guarantee
from common.plan.plan import STATED
from common.plan.planned import PlannedQuery
from common.privacy.accountant import ReleasedAnswers, epsilon, trade_off
from common.queries.class_sums import ClassSumsSpec
from common.queries.histograms import LabelHistogramSpec
from common.queries.section_order import SectionOrderSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec
from common.queries.votes import VotesSpec
from common.secagg.identity import Roster
from common.system.enrolment import RosterFile
from tests.support.federations import plan
from tests.support.hospital import TRUSTING, change, opened, spend
from tests.support.sheets import SAY, says, sentence_of, sentences_of, sheet_of
from tests.support.spellings import WORDS, spellings

RARE = {"rate": 9e-5, "scale": 3000.0, "times": 2}
SUMS = ClassSumsSpec(labels=2, directions=9, count=512)
TRAINED = PlannedQuery(name="texts", spec=FineTunedSpec(texts=3, steps=5), mechanism="dp-sgd", **RARE, redraw=True)
WHEN = "2026-01-01T00:00:00+00:00"


def facts_of(folder, agreed=None, run=None):
    """Open a plan, if there is one, and return the facts about it."""
    if agreed is not None:
        opened(folder, agreed, run or "pilot-1a2b3c4d")
    return sheet_of(folder, run).facts


def write_records(folder, text):
    HospitalSettings.load(folder).records.write_text(text)


def test_purpose_of_a_plan_is_shown_as_the_coordinators_word_alone(trusting):
    said = {name: f"a {name} that the coordinator states" for name in STATED}
    assert facts_of(trusting, plan(2, **said)).stated == said
    shown = sentences_of(sheet_of(trusting))
    assert {name: shown[getattr(SAY.names, name)][0] for name in STATED} == said
    assert shown[SAY.names.statements] == [SAY.purpose.word_alone]
    assert shown["not stated"] == [SAY.purpose.ask.format(*SAY.purpose.not_stated)]


def test_figures_of_a_plan_are_those_of_its_guarantee(trusting):
    agreed = plan(2, max_attempts=2)
    facts = facts_of(trusting, agreed)
    assert facts.hospitals == ("St. Luke", "St. Mary #1")
    assert (facts.hospital, facts.unknown, facts.colluders, facts.own_texts) == ("St. Mary #1", 0, 0, 0)
    promised = facts.guarantee
    assert promised == plan_guarantee(agreed)
    assert promised.epsilon == 4
    assert promised.released_epsilon == pytest.approx(4)
    assert facts.epsilon_alone == epsilon_alone(agreed) > 4
    assert (facts.planned.right, facts.planned.worst, facts.planned.strength) == (67.82, 98.21, "moderate")
    shown = sentences_of(sheet_of(trusting))
    figures = (promised.released_epsilon, promised.party_epsilon, facts.epsilon_alone, promised.epsilon)
    assert [sentence.split()[0] for sentence in shown["epsilon"]] == [round_up(figure) for figure in figures]
    assert shown["answers"] == [SAY.cost.attempts.format(2)]
    assert shown["queries"] == [SAY.plan.numbers.format(2)]
    assert shown["threshold"] == [SAY.sight.lifting.format(2, 2)]


@pytest.mark.parametrize(
    ("changes", "trust", "lifting"),
    [
        ({}, SAY.trust.protocol, None),
        ({"roster": "own"}, SAY.trust.malicious, 1),
        ({"secure": False, "threshold": 1}, SAY.trust.none, None),
    ],
    ids=["semi-honest", "malicious", "no masks"],
)
def test_sheet_says_whether_the_coordinator_must_be_trusted(changes, trust, lifting, trusting):
    if "roster" in changes:
        roster = Roster.of_hospitals(RosterFile.load(trusting / "roster.json"))
        changes = changes | {"roster": roster.digest.hex(), "max_records_per_party": roster.max_records}
    promised = facts_of(trusting, plan(2, **changes)).guarantee
    assert (promised.masked, promised.malicious) == (trust != SAY.trust.none, trust == SAY.trust.malicious)
    assert promised.lifting == lifting
    sentence, *others = sentences_of(sheet_of(trusting))["coordinator"]
    assert says(sentence, trust)
    assert others == [SAY.trust.other] * bool(lifting)


def test_hospitals_own_assumption_of_colluders_is_in_the_figure(trusting):
    agreed = plan(2)
    assert facts_of(trusting, agreed).guarantee.party_epsilon == pytest.approx(4)
    change(trusting, limits=TRUSTING | {"corrupt": 0.3})
    facts = facts_of(trusting)
    assert facts.colluders == 1
    assert facts.guarantee.party_epsilon == epsilon_against(agreed, 1) > 4
    shown = sentences_of(sheet_of(trusting))
    assert shown["colluders"] == [SAY.sight.one_helper]
    assert SAY.cost.one_colluder in shown["epsilon"][1]


@pytest.mark.parametrize(("parties", "dropouts"), [(2, 0), (3, 1)])
def test_sheet_says_which_sums_can_be_subtracted(parties, dropouts, trusting):
    opened(trusting, plan(parties, max_dropouts=dropouts))
    assert sentences_of(sheet_of(trusting))["differences"] == [differences(dropouts)]


@pytest.mark.parametrize(
    ("agreed", "beyond", "largest"),
    [
        (plan(3), "parties; expected 2, all of this party's roster; got 3", 0),
        (plan(2, roster="ab" * 32), "roster; expected this party's own, ", 0),
        (plan(2, epsilon=9.0), "plan's epsilon; expected at most 8.0; got 9.0", 7.95),
    ],
    ids=["parties", "roster", "epsilon"],
)
def test_plan_beyond_the_limits_says_why_and_what_would_fit(agreed, beyond, largest, trusting, monkeypatch):
    monkeypatch.setattr(fit, "SECONDS", math.inf)  # a busy machine takes longer
    facts = facts_of(trusting, agreed)
    assert facts.fit.beyond.startswith(beyond)
    assert largest <= facts.fit.epsilon <= (8 if largest else 0)
    why, fits = sentences_of(sheet_of(trusting))["limits"]
    assert why.startswith(SAY.here.beyond.format(beyond))
    assert says(fits, SAY.here.fits if largest else SAY.here.fits_none)
    assert facts.unknown == max(0, agreed.parties - 2)
    (hospitals,) = sentences_of(sheet_of(trusting))["hospitals"]
    assert (SAY.hospitals.unknown.format(1) in hospitals) == (agreed.parties == 3)


@pytest.mark.parametrize(
    "changes", [{"decision": "approved", "ended": WHEN}, {"closed": WHEN}], ids=["ended", "closed"]
)
def test_run_that_needs_no_decision_has_no_budget_and_no_warning_but_its_end(changes, trusting):
    facts = facts_of(trusting, plan(2, epsilon=20.0))
    assert facts.fit.beyond
    finished = replace(facts, approval=replace(facts.approval, **changes))
    shown = [fact for section in sheet_sections(finished) for fact in section.facts]
    assert [fact.name for fact in shown if fact.warning] == [SAY.names.over]
    assert not {SAY.here.budget, SAY.here.limits} & {fact.name for fact in shown}


def test_error_in_the_largest_epsilon_keeps_nobody_from_the_plan(trusting, monkeypatch):
    monkeypatch.setattr(fit, "_epsilon", lambda *_: 1 / 0)
    found = facts_of(trusting, plan(2, epsilon=9.0)).fit
    assert (found.beyond != "", found.epsilon) == (True, None)
    assert SAY.here.fits_unknown in sentences_of(sheet_of(trusting))["limits"]


def test_delta_is_limited_by_the_declared_records_whatever_the_limit_says(trusting):
    change(trusting, limits=TRUSTING | {"max_delta": 0.01})
    found = facts_of(trusting, plan(2, delta=1e-3)).fit
    assert "below 1/1000" in found.beyond
    assert (found.advised, found.epsilon) == (True, 0)
    assert len(sentences_of(sheet_of(trusting))["limits"]) == 1  # what to ask for is said already
    change(trusting, limits=TRUSTING | {"unit": "user"})
    assert "privacy.unit=user privacy.max_records=N" in facts_of(trusting).fit.beyond


def test_lifetime_budget_is_that_of_all_other_runs_and_this_one(trusting):
    agreed = plan(2)
    budget = facts_of(trusting, agreed).budget
    assert (budget.limit, budget.before, budget.guesses.right, budget.problem) == (10, 0, 67.82, "")
    assert budget.after == pytest.approx(3.49, abs=0.01)  # at the limit's own delta
    assert budget.left == 10 - budget.after
    charged = {"plan_digest": agreed.digest(), "release": agreed.answer_release(0)}
    spend(trusting, "pilot-1a2b3c4d", **charged)  # this run's own charge is in its plan
    assert facts_of(trusting).budget == budget
    for other in range(30):
        spend(trusting, f"other {other}", **charged)
    facts = facts_of(trusting)
    assert facts.budget.after > facts.budget.before > 10
    assert facts.budget.left == 0
    assert facts.budget.guesses.right > 90
    assert "epsilon of all runs; expected at most 10.0" in facts.fit.beyond
    assert SAY.here.not_enough in sentences_of(sheet_of(trusting))["lifetime budget"]
    change(trusting, limits=TRUSTING | {"separate_data_sets": True})
    facts = facts_of(trusting)
    assert (facts.budget.apart, facts.fit.beyond) == (True, "")
    assert SAY.here.apart in sentences_of(sheet_of(trusting))["lifetime budget"]
    change(trusting, limits=TRUSTING | {"lifetime_epsilon": None})
    budget = facts_of(trusting).budget
    assert (budget.limit, budget.left, budget.delta) == (None, None, agreed.delta)  # the only delta on the sheet
    assert sentence_of(trusting, "lifetime budget", SAY.here.no_limit)
    (trusting / "private" / "ledger.db").unlink()
    budget = facts_of(trusting).budget
    assert budget.before == 0  # what the file says, which is gone
    assert budget.problem.startswith("the ledger is missing")
    assert sentence_of(trusting, "lifetime budget", SAY.here.unsure)
    (trusting / "private" / "ledger.db").write_bytes(b"damaged")
    with pytest.raises(LedgerError):
        sheet_of(trusting)


def test_own_records_are_counted_by_the_plans_labels(trusting):
    write_records(trusting, "text,label\none,a\ntwo,b\nthree,b\nfour,c\n")
    records = facts_of(trusting, plan(2, labels=("a", "b", "flu"))).records
    assert (records.total, records.eligible, records.taking_part) == (4, 3, 3)
    assert (records.of_label, records.without, records.unasked) == ({"a": 1, "b": 2}, ("flu",), {"c": 1})
    shown = sentences_of(sheet_of(trusting))["records"]
    assert [says(*pair) for pair in zip(shown, (SAY.here.labels, "a: 1", "b: 2", SAY.here.without), strict=False)]
    assert says(shown[-1], SAY.here.unasked)


def test_figures_for_all_records_of_a_user_stand_beside_those_of_a_record(trusting):
    write_records(trusting, "text,label,user\n" + "x,a,ann\n" * 3 + "x,other,ann\n" + "y,b,bob\nz,c,eve\n")
    facts = facts_of(trusting, plan(2))
    assert (facts.records.users, facts.records.most_of_user, facts.of_user.records) == (2, 3, 3)
    assert 3 * facts.guarantee.released_epsilon <= facts.of_user.epsilon_released <= facts.of_user.epsilon_against
    assert facts.guarantee.readers_guesses.right < facts.of_user.released.right <= facts.of_user.against.right
    shown = sentences_of(sheet_of(trusting))[SAY.names.of_user]
    figures = (facts.of_user.epsilon_released, facts.of_user.epsilon_against)
    assert [sentence.split()[0] for sentence in shown] == [round_up(figure) for figure in figures]
    for records in ("text,label,user\nx,a,ann\n", "text,label\nx,a\n"):  # one record of each user, and no users
        write_records(trusting, records)
        assert facts_of(trusting).of_user is None
        assert SAY.names.of_user not in sentences_of(sheet_of(trusting))


def test_a_users_records_take_part_up_to_the_plans_number(trusting):
    write_records(trusting, "text,label,user\n" + "x,a,ann\n" * 5 + "y,b,bob\nz,c,eve\n")
    facts = facts_of(trusting, plan(2, unit="user", spec=VotesSpec(top=4, max_records=3)))
    assert facts.guarantee.by_user
    assert facts.of_user is None
    assert (facts.records.eligible, facts.records.taking_part, facts.records.users) == (6, 4, 2)
    assert sentences_of(sheet_of(trusting))["protects"] == [SAY.cost.each_user.format(3)]
    shown = sentences_of(sheet_of(trusting))["records"]
    assert shown[1:3] == [SAY.here.limited.format(4, 3), SAY.here.users.format(2, 5)]
    write_records(trusting, "text,label\n" + "x,a\n" * 40)
    records = facts_of(trusting).records
    assert (records.taking_part, records.users) == (3, None)  # nobody is named: all records are of one user
    assert sentence_of(trusting, "records", SAY.here.limited_unnamed)
    private = embed_records(
        HospitalSettings.load(trusting).read_records(), Encoder.hashed_ngrams(dimensions=32, bits=10)
    )
    assert len(private.for_plan(("a", "b"), unit="user").limited(3).texts) == 3


def test_queries_without_masks_noise_or_proof_are_named(trusting):
    queries = (
        PlannedQuery(name="choices", spec=SeedChoiceSpec(choices=4), mechanism="permute and flip", scale=1.0),
        PlannedQuery(name="seeds", spec=AbstractedSeedsSpec(choices=4), mechanism="gaussian max", scale=2.0**20),
        PlannedQuery(name="sizes", spec=LabelHistogramSpec(labels=2), mechanism="laplace", scale=2.0),
        PlannedQuery(name="bare", spec=LabelHistogramSpec(labels=2)),
    )
    agreed = plan(2, queries=queries, epsilon=math.inf)
    facts = facts_of(trusting, agreed, "texts")
    assert facts.guarantee.epsilon == facts.epsilon_alone == math.inf
    assert (facts.guarantee.unproven, facts.own_texts, facts.without_noise) == (("seeds",), 4, True)
    shown = sentences_of(sheet_of(trusting, "texts"))
    warnings = (SAY.query.no_masks, SAY.query.no_proof, SAY.query.no_noise)
    named = [tuple(warning in sentence for warning in warnings) for sentence in shown["query"][::2]]
    assert named == [(True, False, False), (True, True, False), (False, False, False), (False, False, True)]
    assert shown["queries"] == [SAY.plan.texts.format(agreed.questions, 4)]
    assert SAY.trust.single.format(2, 2, 4) in shown["coordinator"][0]
    opened(trusting, plan(2, queries=queries[:2], epsilon=math.inf), "all single")
    assert sentences_of(sheet_of(trusting, "all single"))["coordinator"] == [SAY.trust.none]
    opened(trusting, plan(2, queries=queries[2:], epsilon=math.inf), "no texts")
    assert SAY.trust.never.format(2) in sentences_of(sheet_of(trusting, "no texts"))["coordinator"][0]
    assert sentences_of(sheet_of(trusting, "no texts"))["queries"] == [SAY.plan.bare.format(2)]


@pytest.mark.parametrize(
    ("query", "unit", "drawn"),
    [
        (PlannedQuery(name="class sums", spec=SUMS, **RARE), "sample", ("record", "once")),
        (PlannedQuery(name="class sums", spec=SUMS, **RARE, redraw=True), "user", ("user", "answer")),
        (TRAINED, "sample", ("record", "step")),
        (PlannedQuery(name="class sums", spec=SUMS), "sample", None),
    ],
)
def test_probability_of_taking_part_is_on_the_sheet(query, unit, drawn, trusting):
    opened(trusting, plan(2, queries=(query,), unit=unit))
    say = catalogue("common.plan").subsampled
    expected = [getattr(say, drawn[0]).format("9e-05", getattr(say, drawn[1]))] if drawn else []
    assert sentences_of(sheet_of(trusting))["query"][2:] == expected


def test_no_figure_relies_on_noise_that_may_be_missing_under_its_condition(trusting):
    roster = Roster.of_hospitals(RosterFile.load(trusting / "roster.json"))
    parties = {"colluders": 1, "corrupt": 1, "threshold": 3}
    agreed = plan(3, roster=roster.digest.hex(), max_records_per_party=roster.max_records, **parties)
    facts = facts_of(trusting, agreed)
    promised, (query,) = facts.guarantee, agreed.queries
    # Each figure with the number of the three hospitals that may leave their noise out under its condition.
    for figure, guesses, corrupt in (
        (promised.epsilon, facts.planned, 1),
        (promised.released_epsilon, promised.readers_guesses, 1),
        (promised.party_epsilon, promised.insiders_guesses, 1),
        (facts.epsilon_alone, facts.alone, 2),
    ):
        scale = math.sqrt((3 - corrupt) * agreed.share_sigma(query) ** 2)
        faced = [
            ReleasedAnswers(mechanism="gaussian", sensitivity=query.spec.sensitivity, scale=scale, times=query.times)
        ]
        assert epsilon(faced, agreed.delta) <= figure * (1 + 1e-9)
        bound = trade_off(faced, agreed.delta)
        assert 100 * bound.even_guess <= guesses.right <= guesses.worst
        assert [belief.one_in for belief in guesses.beliefs] == [100, 1000]
        for belief in guesses.beliefs:
            prior = 1 / belief.one_in
            assert 100 * bound.average_belief(prior) <= belief.average
            assert 100 * bound.highest_belief(prior, 1e-3) <= belief.highest


def test_sheet_has_one_delta_and_what_is_not_covered(trusting):
    agreed = plan(2)
    opened(trusting, agreed)
    sheet = sheet_of(trusting)
    shown = sentences_of(sheet)
    text = "\n".join(sentence for sentences in shown.values() for sentence in sentences)
    assert shown["delta"] == ["1e-5"]
    assert "0.0001" not in text
    assert shown["not covered"] == [f"- {item}" for item in not_covered(plan_guarantee(agreed), round_up)]
    assert shown["decision"] == [SAY.here.learns]
    assert [*map(round_up, (4.0, 1.0001, 1.9999, 0.0, math.inf))] == ["4.000", "1.001", "2.000", "0.000", "inf"]
    assert [*map(round_down, (4.0, 1.0009, 1.9999, 0.0004))] == ["4.000", "1.000", "1.999", "0.000"]


def test_plan_without_labels_counts_all_records_as_one_population(trusting):
    write_records(trusting, "text,label\nwet cough,flu\nrash,measles\n")
    sums = PlannedQuery(name="class sums", spec=ClassSumsSpec(labels=1, directions=2, count=256), scale=5000.0)
    records = facts_of(trusting, plan(2, labels=(UNLABELLED,), queries=[sums])).records
    assert (records.total, records.of_label, records.unasked) == (2, {UNLABELLED: 2}, {})
    shown = sentences_of(sheet_of(trusting))
    assert shown["records"] == [SAY.here.one_population.format(2)]
    assert shown["labels"] == [SAY.cost.no_labels]


def test_plan_for_several_labels_says_under_how_many_a_record_counts(trusting):
    write_records(trusting, "text,labels\nwet cough,flu;asthma;flu\nrash,measles\n")
    spec = VotesSpec(top=2, fine=64, labels_per_record=2)
    agreed = plan(2, labels=("flu", "asthma"), queries=[PlannedQuery(name="votes", spec=spec, scale=5000.0)])
    records = facts_of(trusting, agreed).records
    assert (records.eligible, records.total, records.of_label) == (1, 2, {"flu": 1, "asthma": 1})
    shown = sentences_of(sheet_of(trusting))
    assert shown["labels"] == [SAY.cost.several.format(2)]
    assert shown["records"][0] == SAY.here.each_label.format(1, 2)


def test_records_without_labels_have_no_part_in_a_plan_with_labels(trusting):
    change(trusting, labelled=False)
    write_records(trusting, "text\nwet cough\nrash\n")
    facts = facts_of(trusting, plan(2))
    assert (facts.records.eligible, facts.records.unasked, facts.few_records) == (0, {UNLABELLED: 2}, True)
    assert "labels" not in sentences_of(sheet_of(trusting))


def test_plan_by_sections_counts_the_records_with_its_headings(trusting):
    write_records(trusting, 'text,label\n"History: a cough\nplan: rest",x\nrash,measles\n')
    spec = SectionOrderSpec(labels=2, labels_per_record=2)
    queries = [PlannedQuery(name="order", spec=spec, scale=5000.0)]
    assert facts_of(trusting, plan(2, labels=("History", "Plan"), queries=queries)).records.eligible == 0
    shown = sentences_of(sheet_of(trusting))
    assert shown["sections"] == [SAY.cost.sections]
    assert shown["records"][:3] == [SAY.here.few.format(0, 2), SAY.here.each_section.format(0, 2), SAY.here.no_heading]
    file = trusting / "client.yaml"
    file.write_text(file.read_text().replace("headings: []", "headings: [HISTORY, Plan, Allergies]"))
    assert facts_of(trusting).records.of_label == {"History": 1, "Plan": 1}
    file.write_text(file.read_text().replace("Allergies]", "plan]"))
    with pytest.raises(ConfigError):
        HospitalSettings.load(trusting)


@pytest.mark.parametrize("word", [*WORDS, "A7", "\u0410 7"])
def test_most_records_of_a_user_count_each_spelling_of_the_user(word):
    for other in spellings(word):
        users = [word, other, "zoe", other]
        counted = count_own_records(plan(2), [Record(f"{nth}", "a", user) for nth, user in enumerate(users)], ())
        assert (counted.most_of_user, counted.users, counted.taking_part) == (3, 3, 4)


def test_most_records_of_a_user_count_letters_of_other_scripts():
    users = ["A7", "a 7", "\u0410" + "7", "\u0391" + "7", "B7"]
    counted = count_own_records(plan(2), [Record(f"{nth}", "a", user) for nth, user in enumerate(users)], ())
    assert (counted.most_of_user, counted.users) == (4, 5)

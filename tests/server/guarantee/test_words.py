"""The words about a guarantee state each fact of `privacy.json`, round bounds up, and name what is left open."""

import itertools
import math
import re
from dataclasses import replace

import pytest

from server.guarantee.case import Kind, effective_epsilon, guarantee_kind, lacks_guarantee
from server.guarantee.words import (
    guarantee_card,
    numbers_guarantee,
    privacy_cost,
    run_not_covered,
    statement,
    warning,
    with_statement,
)
from tests.support.documents import privacy

PAPER = {"calibration": "paper", "planned_epsilon": 1.2869}
NOTHING = {"epsilon": "inf", "planned_epsilon": "inf"}
UNASKED = {"queries": [], "planned_epsilon": 0.0}
EARLIER = {"earlier": {"run": "first-1234", "plan_digest": "ab", "encoder": "cd"}}
USERS = {"adjacency": {"relation": "add or remove", "unit": "user", "max_records": 8}}
OWN = {"queries": [{"name": "texts", "summed": False}]}
MIXED = {"queries": [{"name": "votes"}, {"name": "lengths", "summed": False}]}
SIGNED = {"aggregation": "secure, malicious coordinator", "corrupt": 1}
DRAWN = {"queries": [{"subsampling": {"rate": 0.8, "redrawn": False}}]}
TRAINED = {"queries": [{"noise_multiplier": 1.2345, "steps": 70, "subsampling": None}]}
SEED_CHOICE = {"claimed_epsilon": 4.0, "epsilon_among_public_candidates": 1.9549}
SEEDS = {"name": "seeds", "summed": False, "candidates": 5, "choice": SEED_CHOICE}
UNPROVEN = {"queries": [SEEDS, {"name": "votes"}], "epsilon": "inf", "unproven": ["seeds"], "proven_epsilon": 2.0}
BEGUN = {"spent": {"epsilon": 2.71, "queries_asked": 2, "queries_planned": 4}}


def guesses(right, strength):
    belief = {"one_in": 100, "average": 1.5, "highest": 9.0}
    return {"right": right, "worst": 90.0, "beliefs": [belief], "strength": strength}


OF_BOTH_SIDES = {
    "released_epsilon": 1.0,
    "released_guesses": guesses(65.0, "moderate"),
    "party_epsilon": 4.5,
    "party_guesses": guesses(80.0, "weak"),
    "if_all_add_noise_epsilon": 0.8,
}


def headings(fields):
    return {item.partition(": ")[0] for item in run_not_covered(fields)}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 19.9, 50.0, 2000.0])
def test_chance_of_a_right_guess_is_never_understated(epsilon):
    text = statement(privacy(epsilon=epsilon, planned_epsilon=epsilon, released_epsilon=epsilon))
    percent = float(re.search(r"guesses rightly in at most ([\d.]+)%", text)[1])
    assert 100 / (1 + math.exp(-epsilon)) <= percent <= 100


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"epsilon": 3.0, "planned_epsilon": 3.0}, "ε = 3 and δ = 1e-5"),
        ({"epsilon": 3.0, "planned_epsilon": 3.0}, "more than 20.1 times"),  # e^3 = 20.0855
        ({"delta": 2e-6}, "1 in 500,000"),
        (USERS, "all records of any one user (of which at most 8 count)"),
        (USERS, "whether a user's records took part"),
        ({"queries": [{"labels_per_record": 3}]}, "up to 3 of its labels"),
        ({"assumed_colluders": 1}, "even if 1 hospital told the coordinator"),
        ({"assumed_colluders": 1}, "with at most 1 of 3 hospitals corrupt"),
        ({"assumed_survivors": 2}, "at least 2 of 3"),
        ({"noise_parties": 2}, "1/2 of the noise variance"),
        (SIGNED, "The coordinator is not trusted"),
        ({"aggregation": "none"}, "whole noise to its own answers"),
        (OWN, "whole noise to its own answers"),
        (MIXED, "Not summed: lengths."),
        (OF_BOTH_SIDES, "in at most 65% of cases"),
        (OF_BOTH_SIDES, "up to 90% of right guesses"),
        (OF_BOTH_SIDES, "keeps it secret, the texts have ε = 0.8. No figure here relies"),
        (OF_BOTH_SIDES, "in at most 80% of cases (ε = 4.5, weak protection)"),
        ({"pure_epsilon": 3.5}, "holds with ε = 3.5 and no δ"),
        (PAPER, "actual cost is ε = 1.287"),
        (DRAWN, "each record takes part with probability 0.8, drawn once for all answers; only its hospital"),
        (
            DRAWN | USERS,
            "each user takes part with probability 0.8, drawn once for all answers; only the user's hospital",
        ),
        (DRAWN | {"aggregation": "none"}, "each record takes part with probability 0.8"),
        (TRAINED, "70 steps. The standard deviation of the noise is 1.23 times"),
        (BEGUN, "Of 4 planned queries, 2 had been asked when this was written; they cost ε = 2.71."),
        ({"max_attempts": 2}, "pays for 2 attempts at each of 4 queries. The queries asked cost ε = 4."),
        ({"labels_from_records": True}, "Not covered: which labels occur"),
        ({"simulation": True}, "This was a simulation: whoever ran it had all records"),
        (EARLIER, "using these again costs nothing more: what follows is the guarantee under which run first-1234"),
        (UNASKED, "the released texts do not depend on them"),
        (NOTHING, "The coordinator saw only the hospitals' sums, by secure aggregation, but those are exact."),
        (NOTHING | MIXED, "those are exact, and of lengths each hospital's own exact answer."),
        (NOTHING | OWN, "The coordinator saw the exact answers of each hospital."),
        (NOTHING | {"aggregation": "none"}, "The coordinator saw the exact answers of each hospital."),
        (NOTHING | {"queries": []}, "all records were in one place"),
        (NOTHING | EARLIER, "run first-1234 released without a guarantee"),
        (UNPROVEN, "seeds: the method's paper claims ε = 4 and δ = 1e-5 for its choice"),
        (UNPROVEN, "if the 5 candidates were the same"),
        (UNPROVEN, "would cost ε = 1.955, and no δ"),
        (UNPROVEN, "The coordinator receives seeds, written from each hospital's records"),
        (UNPROVEN, "What is still guaranteed: votes, and everything computed from their answers alone"),
        (UNPROVEN, "with ε = 2 and δ = 1e-5."),
    ],
)
def test_a_statement_has_a_fact_where_it_holds_and_not_elsewhere(changes, fact):
    assert fact in statement(privacy(**changes))
    assert fact not in statement(privacy())


@pytest.mark.parametrize("changes", [NOTHING, UNPROVEN, UNPROVEN | {"queries": [SEEDS]}, NOTHING | {"queries": []}])
def test_a_statement_without_a_guarantee_promises_none(changes):
    text = statement(privacy(**changes))
    assert "protected by" not in text
    assert ("still guaranteed" in text) == (changes is UNPROVEN)
    assert "∞" not in text  # an infinite claim is none


def test_a_statement_of_an_unnoised_choice_claims_nothing():
    bare = SEEDS | {"choice": dict.fromkeys(SEED_CHOICE, math.inf)}
    text = statement(privacy(**UNPROVEN | {"queries": [bare, {"name": "votes"}], "proven_epsilon": math.inf}))
    assert "paper claims" not in text
    assert "still guaranteed" not in text


def test_the_figure_of_a_guess_is_given_for_an_even_belief():
    assert "yes and no are equally likely" in statement(privacy())
    assert "yes and no are equally likely" in guarantee_card(privacy()).reader


def test_a_pure_guarantee_has_no_additional_probability():
    assert "additional probability" in statement(privacy())
    assert "additional probability" not in statement(privacy(delta=0.0))


@pytest.mark.parametrize("aggregation", ["secure, semi-honest coordinator", "secure, malicious coordinator"])
def test_a_file_of_an_earlier_version_is_read_without_the_noise_of_the_corrupt(aggregation):
    """It stated for readers what they face if all hospitals add their noise."""
    rows = [{"colluders": number, "epsilon": 3.0 + number} for number in range(3)]
    of_all = {"released_epsilon": 3.0, "corrupt": 2, "assumed_colluders": 1, "planned_epsilon": 4.0}
    before = privacy(aggregation=aggregation, against_colluders=rows, **of_all)
    assert before.readers_epsilon == (5.0 if before.malicious else 4.0)
    assert before.readers_guesses.right == before.readers_guesses.worst > 98
    assert replace(before, released_guesses=before.readers_guesses).readers_epsilon == 3.0


WITHOUT = {
    "earlier": EARLIER,
    "unproven": {"unproven": ["votes"]},
    "no queries": {"queries": []},
    "labels": {"labels_from_records": True},
    "simulation": {"simulation": True},
}


@pytest.mark.parametrize("names", [c for n in range(6) for c in itertools.combinations(WITHOUT, n)], ids=" ".join)
def test_without_a_guarantee_the_warning_and_the_first_paragraph_say_so_whatever_else_is_so(names):
    changes = {name: value for one in names for name, value in WITHOUT[one].items()}
    fields = with_statement(privacy(**{"epsilon": "inf", "planned_epsilon": "inf", "proven_epsilon": "inf"} | changes))
    assert guarantee_kind(fields) is Kind.NONE
    assert fields.statement.split("\n\n")[0] == warning(fields)
    assert re.match(r"(No privacy|The released texts have no end-to-end guarantee .*): ", warning(fields))
    for promise in ("costs nothing more", "do not depend", "protected by"):
        assert promise not in fields.statement
    old = replace(fields, statement=f"No question was put to any hospital.\n\n{fields.statement}")
    if fields.queries:  # as an earlier version wrote it
        assert warning(old) == warning(fields)


def test_only_texts_without_a_guarantee_that_need_one_are_warned_of():
    assert warning(privacy()) is warning(privacy(**UNASKED)) is None
    assert warning(None).startswith("No guarantee")


def test_a_run_that_reuses_an_answer_states_the_guarantee_under_which_that_was_released():
    spent = {"epsilon": 0.0, "queries_asked": 0, "queries_planned": 0}
    for changes in ({}, {"max_attempts": 2}, NOTHING):
        before, again = privacy(**changes), privacy(**changes | EARLIER | {"spent": spent})
        reused, others = [], []
        for part in statement(again).split("\n\n"):
            (reused if part.startswith("No question was put to any hospital in this run.") else others).append(part)
        assert len(reused) == 1
        assert "run first-1234 released" in reused[0]
        whole = [part for part in statement(before).split("\n\n") if "attempts" not in part]
        assert [part.partition(" The coordinator alone guesses")[0] for part in others] == [
            part.partition(" The coordinator alone guesses")[0] for part in whole
        ]
        assert run_not_covered(again) == run_not_covered(before)


@pytest.mark.parametrize(
    ("changes", "kind", "epsilon", "title"),
    [
        ({}, Kind.BOUNDED, 4.0, "ε = 4, δ = 1e-5 for one record"),
        (
            {"calibration": "paper", "planned_epsilon": 1.2869},
            Kind.BOUNDED,
            1.2869,
            "ε = 1.287, δ = 1e-5 for one record",
        ),
        (USERS, Kind.BOUNDED, 4.0, "ε = 4, δ = 1e-5 for all records of one user, at most 8"),
        (NOTHING, Kind.NONE, math.inf, "No guarantee: ε = ∞"),
        (NOTHING | {"queries": []}, Kind.NONE, math.inf, "No guarantee: ε = ∞"),
        ({"unproven": ["seeds"]}, Kind.NONE, math.inf, "No guarantee: ε = ∞"),
        (UNASKED, Kind.NOT_ASKED, 0.0, "ε = 0: no query about private records"),
    ],
)
def test_the_four_cases_are_told_apart_once(changes, kind, epsilon, title):
    fields = privacy(**changes)
    card = guarantee_card(fields)
    assert (card.kind, card.epsilon, card.title) == (kind, epsilon, title)
    assert effective_epsilon(fields) == epsilon
    assert lacks_guarantee(fields) == (kind is Kind.NONE) == card.title.startswith("No guarantee")
    assert ("in at most" in card.reader) == (kind is Kind.BOUNDED)
    assert card.right_guesses == {Kind.BOUNDED: fields.readers_guesses.right, Kind.NOT_ASKED: 50}.get(kind, 100)


def test_without_a_document_nothing_is_promised():
    card = guarantee_card(None)
    assert (card.kind, card.epsilon, card.title) == (Kind.UNKNOWN, math.inf, "No guarantee is known")
    assert privacy_cost(None).startswith("not known")


@pytest.mark.parametrize(
    ("changes", "field", "fact"),
    [
        (OF_BOTH_SIDES, "worth", "Moderate protection (ε = 1)"),
        ({"released_guesses": guesses(100.0, "none"), "released_epsilon": "inf"}, "worth", "No protection (ε = ∞)"),
        (OF_BOTH_SIDES, "safe", "in at most 65% of cases whether a record took part, with no hospital corrupt;"),
        (OF_BOTH_SIDES, "safe", "in at most 80% of cases (ε = 4.5, weak protection)"),
        (USERS, "safe", "whether a user's records took part, with no hospital corrupt;"),
        ({"labels_from_records": True}, "safe", "Which labels occur is not covered."),
        (UNASKED | {"labels_from_records": True}, "safe", "but which labels occur."),
        (OF_BOTH_SIDES, "reader", "ε = 1 says that no conclusion is more than 2.8 times"),  # e = 2.71828
        ({"delta": 2e-6}, "reader", "1 in 500,000"),
        (UNASKED, "reader", "learns nothing about any record from them: no hospital"),
        (UNASKED | {"labels_from_records": True}, "reader", "but which labels occur: no hospital"),
        ({"assumed_colluders": 1}, "insiders", "The coordinator, told all that 1 hospital knows, guesses rightly"),
        ({"largest_coalition": 0}, "insiders", "with that of 1 or more, it may see the single answers"),
        ({"assumed_survivors": 2}, "insiders", "over at least 2 of 3 hospitals"),
        (MIXED, "insiders", "and of lengths each hospital's own answer with the whole noise in it"),
        ({"aggregation": "none"}, "insiders", "may see each hospital's answers, with the whole noise already in them"),
        (OWN, "insiders", "may see each hospital's answers, with the whole noise already in them"),
        (EARLIER, "insiders", "made of what run first-1234 released"),
        (NOTHING, "insiders", "but those are exact"),
        ({"unproven": ["seeds"]}, "insiders", "receives seeds, written from each hospital's records"),
        (OWN, "assumes", "the cipher that makes the noise"),
        (SIGNED, "assumes", "at most 1 hospital is corrupt"),
        (SIGNED | {"corrupt": 2}, "assumes", "at most 2 hospitals are corrupt"),
        ({"labels_from_records": True}, "assumes", "Not covered: which labels occur"),
        ({"simulation": True}, "assumes", "This was a simulation: whoever ran it had all records"),
    ],
)
def test_a_card_has_a_fact_where_it_holds_and_not_elsewhere(changes, field, fact):
    assert fact in getattr(guarantee_card(privacy(**changes)), field)
    assert fact not in getattr(guarantee_card(privacy()), field)


def test_a_card_without_masks_speaks_of_no_condition_on_other_hospitals():
    card = guarantee_card(privacy(**OWN))
    assert "corrupt" not in card.safe + card.reader + card.assumes
    assert "follows the protocol" in guarantee_card(privacy()).assumes


def test_a_card_of_single_records_says_that_persons_are_protected_less():
    assert "several records" in guarantee_card(privacy()).reader
    assert "several records" not in guarantee_card(privacy(**USERS)).reader


@pytest.mark.parametrize(("parties", "planned"), [(2, 1), (3, 1), (3, 2), (9, 8)])
def test_more_hospitals_than_there_are_help_nobody(parties, planned):
    said = guarantee_card(privacy(parties=parties, assumed_survivors=parties, largest_coalition=planned)).insiders
    assert "With the help of more hospitals" in said
    assert (f"with that of {planned + 1} or more" in said) == ("single answers" in said) == (planned + 1 < parties)
    all_help = privacy(parties=parties, assumed_colluders=parties - 1, largest_coalition=parties - 1)
    assert "more hospitals" not in guarantee_card(all_help).insiders


def test_other_beliefs_and_the_worst_noise_are_one_click_further():
    belief, alone, everybody, scale = guarantee_card(privacy(**OF_BOTH_SIDES)).further
    assert "a belief of 1 in 100 that a record took part becomes, if it is true, 1.5% on average" in belief
    assert "ε = 1 and δ = 1e-5 alone would allow up to 90%" in alone
    assert "ε = 0.8" in everybody
    assert "60%" in scale
    assert guarantee_card(privacy()).further[-2] == "These figures follow from ε = 4 and δ = 1e-5 alone."


@pytest.mark.parametrize(
    ("changes", "cost"),
    [
        ({}, "ε = 4 planned and 4 spent, δ = 1e-5 planned and spent"),
        (BEGUN, "ε = 4 planned and 2.71 spent, δ = 1e-5 planned and spent"),
        (EARLIER, "ε = 4, δ = 1e-5 of run first-1234, which asked; nothing more was asked"),
        (UNASKED | EARLIER, "ε = 0, δ = 1e-5 of run first-1234, which asked; nothing more was asked"),
        (UNASKED, "no hospital was asked (ε = 0)"),
        (NOTHING, "no guarantee (ε = ∞)"),
    ],
)
def test_the_cost_is_what_was_planned_and_spent(changes, cost):
    assert privacy_cost(privacy(**changes)) == cost


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({}, "with ε = 4 and δ = 1e-5 for each record"),
        (USERS, "for each user"),
        ({"labels_from_records": True}, "Which labels occur was taken from records without noise."),
        (NOTHING, "without noise: these numbers, and all that is made of them, have no guarantee"),
        ({"unproven": ["seeds"]}, "without a proof: these numbers"),
    ],
)
def test_released_numbers_have_the_guarantee_of_their_run(changes, fact):
    assert fact in numbers_guarantee(privacy(**changes), "first-1234")
    assert "Released by run first-1234" in numbers_guarantee(privacy(**changes), "first-1234")


ALWAYS = {"What was public before", "Other uses of the same records", "Faults in software or machines"}
OF_SIMULATION = {"Figures computed in the simulation", "Records as dealt", "Refusal"}


def test_a_run_has_the_limits_of_its_plan_and_its_own():
    spent = {"epsilon": 0.0, "queries_asked": 0, "queries_planned": 0}
    assert headings(privacy(epsilon=0.0, queries=[], spent=spent)) == ALWAYS | {"Figures of test texts"}
    trial = headings(privacy(simulation=True))
    assert trial - headings(privacy()) == OF_SIMULATION
    assert headings(privacy()) - trial == {"Figures of test texts"}
    assert headings(privacy(labels_from_records=True)) - headings(privacy()) == {"Labels"}
    assert any("ε is 5.124" in item for item in run_not_covered(privacy()))
    assert any("At most 8 records of one user count" in item for item in run_not_covered(privacy(**USERS)))
    bare = run_not_covered(privacy(epsilon="inf", aggregation="none", against_colluders=[]))
    assert bare[0] == "The private records: without noise, nothing about them is protected."
    assert not any("secure aggregation" in item.lower() or "share of the noise" in item for item in bare)

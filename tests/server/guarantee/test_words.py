"""The words about a guarantee state each fact of `privacy.json`, round bounds up, and name what is left open."""

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

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
from tests.support.screens import assert_accepted, under_headings

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


CHANGES = {
    "as planned": {},
    "epsilon 3": {"epsilon": 3.0, "planned_epsilon": 3.0, "released_epsilon": 3.0},
    "delta 2e-6": {"delta": 2e-6},
    "no delta": {"delta": 0.0},
    "users": USERS,
    "several labels": {"queries": [{"labels_per_record": 3}]},
    "colluders": {"assumed_colluders": 1},
    "dropouts": {"assumed_survivors": 2},
    "part of the noise": {"noise_parties": 2},
    "signed": SIGNED,
    "two corrupt": SIGNED | {"corrupt": 2},
    "no masks": {"aggregation": "none"},
    "own answers": OWN,
    "mixed answers": MIXED,
    "both sides": OF_BOTH_SIDES,
    "unbounded for readers": {"released_guesses": guesses(100.0, "none"), "released_epsilon": "inf"},
    "masks lifted by one": {"largest_coalition": 0},
    "pure": {"pure_epsilon": 4.0},
    "paper": PAPER,
    "subsample": DRAWN,
    "subsample of users, redrawn": USERS | {"queries": [{"subsampling": {"rate": 0.8, "redrawn": True}}]},
    "trained": TRAINED,
    "begun": BEGUN,
    "attempts": {"max_attempts": 2},
    "labels of records": {"labels_from_records": True},
    "simulation": {"simulation": True},
    "earlier": EARLIER,
    "not asked": UNASKED,
    "not asked, labels of records": UNASKED | {"labels_from_records": True},
    "not asked again": UNASKED | EARLIER,
    "no noise": NOTHING,
    "no noise, mixed answers": NOTHING | MIXED,
    "no noise, own answers": NOTHING | OWN,
    "no noise, no masks": NOTHING | {"aggregation": "none"},
    "no noise, no queries": NOTHING | {"queries": []},
    "no noise, earlier": NOTHING | EARLIER,
    "unproven": UNPROVEN,
}
"""Fields of `privacy.json` on which sentences depend."""


def said_of(changes):
    """Everything that is said of a run, each sentence of it a line."""
    fields = privacy(**changes)
    card = guarantee_card(fields)
    yield f"cost: {privacy_cost(fields)}"
    yield f"numbers: {numbers_guarantee(fields, 'first-1234')}"
    for name in ("title", "worth", "safe", "reader", "insiders", "assumes"):
        yield from (f"{name}: {sentence}" for sentence in re.split(r"(?<=\.) ", getattr(card, name)) if sentence)
    yield from (f"further: {sentence}" for sentence in card.further)
    for paragraph in statement(fields).split("\n\n"):
        yield from (f"statement: {sentence}" for sentence in re.split(r"(?<=\.) ", paragraph))


def test_sentences_that_a_field_adds_are_those_accepted():
    plain = set(said_of({}))
    screens = {
        name: [line for line in said_of(changes) if not changes or line not in plain]
        for name, changes in CHANGES.items()
    }
    assert_accepted(under_headings(screens), Path(__file__).parent / "screens" / "words.txt")


def headings(fields):
    return {item.partition(": ")[0] for item in run_not_covered(fields)}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 19.9, 50.0, 2000.0])
def test_chance_of_a_right_guess_is_never_understated(epsilon):
    text = statement(privacy(epsilon=epsilon, planned_epsilon=epsilon, released_epsilon=epsilon))
    percent = float(re.search(r"guesses rightly in at most ([\d.]+)%", text)[1])
    assert 100 / (1 + math.exp(-epsilon)) <= percent <= 100


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
            (reused if part.startswith("No query was sent to any hospital in this run.") else others).append(part)
        assert len(reused) == 1
        assert "run first-1234 released" in reused[0]
        whole = [part for part in statement(before).split("\n\n") if "attempts" not in part]
        assert [part.partition(" The coordinator by itself guesses")[0] for part in others] == [
            part.partition(" The coordinator by itself guesses")[0] for part in whole
        ]
        assert run_not_covered(again) == run_not_covered(before)


@pytest.mark.parametrize(
    ("changes", "kind", "epsilon"),
    [
        ({}, Kind.BOUNDED, 4.0),
        (PAPER, Kind.BOUNDED, 1.2869),
        (NOTHING, Kind.NONE, math.inf),
        (NOTHING | {"queries": []}, Kind.NONE, math.inf),
        ({"unproven": ["seeds"]}, Kind.NONE, math.inf),
        (UNASKED, Kind.NOT_ASKED, 0.0),
    ],
)
def test_card_of_each_case_has_its_epsilon_and_guesses(changes, kind, epsilon):
    fields = privacy(**changes)
    card = guarantee_card(fields)
    assert (card.kind, card.epsilon) == (kind, epsilon)
    assert effective_epsilon(fields) == epsilon
    assert lacks_guarantee(fields) == (kind is Kind.NONE) == card.title.startswith("No guarantee")
    assert ("in at most" in card.reader) == (kind is Kind.BOUNDED)
    assert card.right_guesses == {Kind.BOUNDED: fields.readers_guesses.right, Kind.NOT_ASKED: 50}.get(kind, 100)


def test_without_a_document_nothing_is_promised():
    card = guarantee_card(None)
    assert (card.kind, card.epsilon, card.title) == (Kind.UNKNOWN, math.inf, "No guarantee is known")
    assert privacy_cost(None).startswith("not known")


def test_card_says_nothing_of_conditions_and_persons_that_do_not_matter():
    card = guarantee_card(privacy(**OWN))
    assert "corrupt" not in card.safe + card.reader + card.assumes
    assert "follows the protocol" in guarantee_card(privacy()).assumes
    assert "several records" in guarantee_card(privacy()).reader
    assert "several records" not in guarantee_card(privacy(**USERS)).reader


@pytest.mark.parametrize(("parties", "planned"), [(2, 1), (3, 1), (3, 2), (9, 8)])
def test_more_hospitals_than_there_are_help_nobody(parties, planned):
    said = guarantee_card(privacy(parties=parties, assumed_survivors=parties, largest_coalition=planned)).insiders
    assert "With the help of more hospitals" in said
    assert (f"With that of {planned + 1} or more" in said) == ("single answers" in said) == (planned + 1 < parties)
    all_help = privacy(parties=parties, assumed_colluders=parties - 1, largest_coalition=parties - 1)
    assert "more hospitals" not in guarantee_card(all_help).insiders


ALWAYS = {"Things that were public before", "Other uses of the same records", "Faults in software or machines"}
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

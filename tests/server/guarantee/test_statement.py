"""The privacy statement says what the figures say, and names what it leaves open."""

import itertools
import math
import re
from dataclasses import replace

import pytest

from common.plan.words import subsampled
from server.guarantee.case import Kind, guarantee_kind
from server.guarantee.rounding import show_delta, show_epsilon
from server.guarantee.statement import run_not_covered, stated, statement, warning
from tests.support.documents import privacy


def headings(fields):
    return {item.partition(": ")[0] for item in run_not_covered(fields)}


def test_figures_are_bounds():
    text = statement(privacy())
    assert "ε = 4 and δ = 1e-5" in text
    assert "54.6 times" in text  # e^4 = 54.598
    assert "98.21%" in text  # (e^4 + 1e-5) / (1 + e^4) = 0.982014
    assert "1 in 100,000" in text


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 19.9, 50.0, 2000.0])
def test_chance_of_a_right_guess_is_never_understated(epsilon):
    text = statement(privacy(epsilon=epsilon, planned_epsilon=epsilon, released_epsilon=epsilon))
    percent = float(text.partition("is right in at most ")[2].partition("%")[0])
    assert percent >= 100 / (1 + math.exp(-epsilon))
    assert percent <= 100


@pytest.mark.parametrize(
    ("value", "text"),
    [(4.0, "4"), (3.999999, "4"), (1.0000008, "1"), (5.12341, "5.124"), (0.2831, "0.284"), ("inf", "∞")],
)
def test_epsilon_is_rounded_up(value, text):
    assert show_epsilon(value) == text


@pytest.mark.parametrize(("value", "text"), [(1e-5, "1e-5"), (1.234e-6, "1.23e-6"), (0.01, "0.01"), (0.0, "0")])
def test_delta_is_short(value, text):
    assert show_delta(value) == text


def test_pure_privacy_has_no_extra_probability():
    assert "additional probability" not in statement(privacy(delta=0.0))


def test_user_level_speaks_of_users():
    fields = privacy(adjacency={"relation": "add or remove", "unit": "user", "max_records": 8})
    assert "all records of any one user (of which at most 8 count)" in statement(fields)
    assert any("At most 8 records of one user count" in item for item in run_not_covered(fields))
    assert "People with several records" not in headings(fields)


def test_collusion_is_quoted_from_the_table():
    assert any("ε is 5.124" in item for item in run_not_covered(privacy()))
    assert "A curious hospital" in headings(privacy())
    assert "A curious hospital" not in headings(privacy(assumed_colluders=1))
    assert "even if 1 hospital told" in statement(privacy(assumed_colluders=1))


def test_infinite_epsilon_promises_nothing():
    fields = privacy(epsilon="inf", against_colluders=[])
    text = statement(fields)
    assert text.startswith("No privacy")
    assert "protected by differential privacy" not in text
    assert run_not_covered(fields)[0].startswith("The private records: without noise, nothing about them is protected")
    assert not any("share of the noise" in item for item in run_not_covered(fields))
    alone = privacy(epsilon="inf", aggregation="none", against_colluders=[])
    assert "exact answers of each hospital" in statement(alone)
    assert "secure aggregation" not in " ".join(run_not_covered(alone)).lower()


def test_without_aggregation_no_mask_is_spoken_of():
    fields = privacy(aggregation="none", against_colluders=[])
    assert "whole noise to its own answers" in statement(fields)
    assert not {"A malicious coordinator", "Broken cryptography", "A curious hospital"} & headings(fields)
    assert not any("mask" in item for item in run_not_covered(fields))


def test_two_figures_are_told_where_they_differ():
    sentences = statement(privacy(if_all_add_noise_epsilon=3.0123, party_epsilon=4.0, assumed_colluders=1))
    assert "adds its noise and keeps it secret, the released texts have ε = 3.013; nothing here relies" in sentences
    assert "the coordinator and 1 colluding hospital, a hospital's answers have ε = 4." in sentences
    assert "If every hospital" not in statement(privacy(if_all_add_noise_epsilon=4.0))


def test_the_tight_guess_is_told_before_that_of_epsilon_alone_and_with_its_condition():
    guesses = {"right": 67.82, "worst": 98.21, "strength": "moderate", "beliefs": []}
    text = statement(privacy(released_guesses=guesses, assumed_colluders=1))
    assert "right in at most 67.82% of cases; a coin toss is right in 50%. ε and δ alone would allow 98.21%" in text
    assert "This holds with at most 1 of 3 hospitals corrupt. This is a limit for any attack on what is" in text
    assert "alone would allow" not in statement(privacy())


@pytest.mark.parametrize("aggregation", ["secure, semi-honest coordinator", "secure, malicious coordinator"])
def test_a_file_of_an_earlier_version_is_read_without_the_noise_of_the_corrupt(aggregation):
    """It stated for readers what they face if all hospitals add their noise."""
    rows = [{"colluders": number, "epsilon": 3.0 + number} for number in range(3)]
    of_all = {"released_epsilon": 3.0, "corrupt": 2, "assumed_colluders": 1, "planned_epsilon": 4.0}
    before = privacy(aggregation=aggregation, against_colluders=rows, **of_all)
    assert before.readers_epsilon == (5.0 if before.malicious else 4.0)
    assert before.readers_guesses.right == before.readers_guesses.worst > 98
    assert replace(before, released_guesses=before.readers_guesses).readers_epsilon == 3.0


def test_the_papers_noise_is_said_to_cost_what_it_does():
    sentences = statement(privacy(calibration="paper", planned_epsilon=1.2869, released_epsilon=1.2869))
    assert "Its actual cost is ε = 1.287." in sentences
    assert "actual cost" not in statement(privacy())


def test_answers_of_a_partys_own_are_named():
    queries = [{"name": "votes", "summed": True}, {"name": "the range of lengths", "summed": False}]
    assert "Not summed: the range of lengths. For these, each hospital adds the whole noise itself" in statement(
        privacy(queries=queries)
    )
    assert "Not summed" not in statement(privacy())


def test_where_no_answer_is_summed_no_sum_is_spoken_of():
    text = statement(privacy(queries=[{"name": "choices", "summed": False}]))
    assert "Each hospital adds the whole noise to its own answers" in text
    assert "only the sum" not in text


def test_without_noise_answers_of_a_partys_own_are_named_too():
    lengths, votes = {"name": "lengths", "summed": False}, {"name": "votes", "summed": True}
    without = {"epsilon": math.inf, "planned_epsilon": math.inf}
    assert "exact; and of lengths each hospital's own exact answer." in statement(
        privacy(**without, queries=[votes, lengths])
    )
    assert "The coordinator saw the exact answers of each hospital." in statement(privacy(**without, queries=[lengths]))


def test_texts_without_proof_are_no_guarantee():
    choice = {"claimed_epsilon": 4.0, "epsilon_among_public_candidates": 1.9549}
    seeds = {"name": "seeds", "summed": False, "candidates": 5, "choice": choice}
    fields = privacy(queries=[seeds], epsilon="inf", unproven=["seeds"], proven_epsilon=0.0)
    sentences = statement(fields)
    assert sentences.startswith(
        "The released texts have no end-to-end guarantee (ε is infinite): seeds takes texts from"
    )
    assert "claims ε = 4 and δ = 1e-5 for its choice" in sentences
    assert "would cost ε = 1.955, and no δ" in sentences
    assert "protected by differential privacy" not in sentences
    assert "What is still guaranteed" not in sentences
    assert "The private records" in headings(fields)
    assert "texts from seeds are written from them" in run_not_covered(fields)[0]
    votes = {"name": "votes", "summed": True}
    mixed = privacy(queries=[seeds, votes], epsilon="inf", unproven=["seeds"], proven_epsilon=2.0)
    assert "What is still guaranteed: votes, and everything computed from their answers alone" in statement(mixed)
    assert "with ε = 2 and δ = 1e-5." in statement(mixed)
    bare = {"name": "seeds", "summed": False, "choice": dict.fromkeys(choice, math.inf)}
    unnoised = privacy(queries=[bare, votes], epsilon="inf", unproven=["seeds"], proven_epsilon=math.inf)
    assert len(statement(unnoised).split("\n\n")) == 1


def test_a_method_that_asks_nothing():
    fields = privacy(epsilon=0.0, queries=[], spent={"epsilon": 0.0, "queries_asked": 0, "queries_planned": 0})
    assert "do not depend on them" in statement(fields)
    assert headings(fields) == {
        "Figures of test texts",
        "What was public before",
        "Other uses of the same records",
        "Faults in software or machines",
    }


def test_simulation_and_unfinished_plans_are_named():
    spent = {"epsilon": 2.71, "queries_asked": 2, "queries_planned": 4}
    fields = privacy(simulation=True, spent=spent)
    assert "This was a simulation" in statement(fields)
    assert "Of 4 planned queries, 2 had been asked" in statement(fields)
    assert "ε = 2.71" in statement(fields)
    assert "Figures computed in the simulation" in headings(fields)
    assert "simulation" not in statement(privacy())
    assert "Figures computed in the simulation" not in headings(privacy())
    assert ("Figures of test texts" in headings(privacy())) != ("Figures of test texts" in headings(fields))


def test_each_threat_of_the_default_plan_is_named():
    assert headings(privacy()) >= {
        "A malicious coordinator",
        "A malicious hospital",
        "More colluding hospitals than planned",
        "More dropouts than planned",
        "Broken cryptography",
        "Traffic",
        "Side channels at a hospital",
        "Facts about groups",
        "People with several records",
        "What was public before",
        "Other uses of the same records",
    }


def test_a_secret_subsample_is_said_to_be_what_the_figure_rests_on():
    drawn = {"subsampling": {"rate": 0.8, "redrawn": False}}
    for aggregation in ("none", "secure, semi-honest coordinator"):
        text = statement(privacy(queries=[drawn], aggregation=aggregation))
        assert "each record takes part with probability 0.8, drawn once for all answers; only its hospital" in text


@pytest.mark.parametrize("unit", ["sample", "user"])
@pytest.mark.parametrize("mechanism", ["gaussian", "dp-sgd"])
@pytest.mark.parametrize("redrawn", [True, False])
def test_who_takes_part_is_said_as_on_a_hospitals_sheet(unit, mechanism, redrawn):
    drawn = {"subsampling": {"rate": 0.1, "redrawn": redrawn}, "mechanism": mechanism}
    by_user, steps = unit == "user", mechanism == "dp-sgd"
    fields = privacy(queries=[drawn], adjacency={"relation": "add or remove", "unit": unit, "max_records": 8})
    clause = subsampled(0.1, by_user=by_user, redrawn=redrawn, steps=steps)
    assert f" votes: {clause}; only" in statement(fields)
    assert clause.startswith("each user" if by_user else "each record")
    assert ("each training step" in clause) == (redrawn and steps)


SEVERAL = {
    "earlier": {"earlier": {"run": "first-1234", "plan_digest": "ab", "encoder": "cd"}},
    "unproven": {"unproven": ["votes"]},
    "no queries": {"queries": []},
    "labels": {"labels_from_records": True},
    "simulation": {"simulation": True},
}


@pytest.mark.parametrize("names", [c for n in range(6) for c in itertools.combinations(SEVERAL, n)], ids=" ".join)
def test_without_a_guarantee_the_warning_and_the_first_paragraph_say_so_whatever_else_is_so(names):
    changes = {name: value for one in names for name, value in SEVERAL[one].items()}
    fields = stated(privacy(**{"epsilon": "inf", "planned_epsilon": "inf", "proven_epsilon": "inf"} | changes))
    assert guarantee_kind(fields) is Kind.NONE
    assert fields.statement.split("\n\n")[0] == warning(fields)
    assert re.match(r"(No privacy|The released texts have no end-to-end guarantee .*): ", warning(fields))
    for promise in ("costs nothing more", "do not depend", "protected by"):
        assert promise not in fields.statement
    old = replace(fields, statement=f"No question was put to any hospital.\n\n{fields.statement}")
    if fields.queries:  # as an earlier version wrote it
        assert warning(old) == warning(fields)


def test_only_texts_without_a_guarantee_that_need_one_are_warned_of():
    assert warning(privacy()) is warning(privacy(queries=[], planned_epsilon=0.0)) is None
    assert warning(None).startswith("No guarantee")


def test_labels_taken_from_private_records_are_named():
    taken = privacy(labels_from_records=True)
    assert "Not covered: the labels." in statement(taken)
    assert "Labels" in headings(taken)
    assert "Labels" not in headings(privacy())


def test_attempts_that_were_paid_for_are_told_from_those_that_were_made():
    spent = {"epsilon": 2.695, "queries_asked": 4, "queries_planned": 4}
    assert "pays for 2 attempts at each of 4 queries" in statement(privacy(max_attempts=2, spent=spent))


def test_a_run_that_reuses_an_answer_states_the_guarantee_under_which_that_was_released():
    spent = {"epsilon": 0.0, "queries_asked": 0, "queries_planned": 0}
    earlier = {"run": "first-1234", "plan_digest": "ab", "encoder": "cd"}
    for changes in ({}, {"max_attempts": 2}, {"epsilon": "inf", "planned_epsilon": "inf"}):
        before, again = privacy(**changes), privacy(**changes | {"earlier": earlier, "spent": spent})
        reused, others = [], []
        for part in statement(again).split("\n\n"):
            (reused if part.startswith("No question was put to any hospital in this run.") else others).append(part)
        assert len(reused) == 1
        assert "run first-1234 released" in reused[0]
        assert ("what follows is the guarantee" in reused[0]) == again.noisy
        assert others == [part for part in statement(before).split("\n\n") if "attempts" not in part]
        assert run_not_covered(again) == run_not_covered(before)

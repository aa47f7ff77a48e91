"""The limits on the page: every one with its sentence, and with what the last plans asked against it."""

import math
from dataclasses import fields, replace

from client.deploy.settings import HospitalSettings
from client.guard import Limits
from client.page.app import PAGES
from client.page.limits import LAST, limits_in_force, requested_values
from common.plan.guarantee import epsilon_against
from common.plan.planned import PlannedQuery
from common.queries.histograms import LabelHistogramSpec
from common.queries.texts import AbstractedSeedsSpec
from tests.support.browsing import Browser
from tests.support.federations import DECLARED, plan
from tests.support.hospital import change, charge, opened, operated


def compared(folder):
    """What the last plans ask against each limit."""
    return {
        limit.name: tuple(asked.value for asked in limit.asked)
        for limit in limits_in_force(HospitalSettings.load(folder)).limits
    }


def text_of(folder, language="en"):
    return Browser.entered(folder).get("limits", headers={"accept-language": language}).text


def test_each_limit_has_a_sentence_and_a_comparison():
    names = {field.name for field in fields(Limits)}
    assert names == set(requested_values(plan(2), Limits(), (), declared=DECLARED))
    assert names == set(vars(PAGES.say.limits.sentences))


def test_without_a_plan_the_limits_stand_alone_and_say_where_they_are_edited(made):
    text = text_of(made)
    assert "No plan has come yet" in text
    assert str(made / "client.yaml") in text
    assert "approval: manual" in text
    assert all(field.name in text for field in fields(Limits))
    assert set(compared(made).values()) == {()}
    change(made, approval="auto")
    assert "approval: auto" in text_of(made)


def test_the_last_plans_are_compared_with_each_limit(made):
    change(made, limits={"malicious_coordinator": False, "corrupt": 0.0, "lifetime_epsilon": None})
    agreed = plan(2)
    opened(made, agreed)
    asked = compared(made)
    assert asked["max_epsilon"] == ("4.000",)
    assert float(asked["max_epsilon"][0]) >= epsilon_against(agreed, 0)
    assert (asked["queries"], asked["max_top"], asked["min_survivors"]) == (("votes",), ("4",), ("2",))
    assert (asked["malicious_coordinator"], asked["corrupt"], asked["security_bits"]) == (("no",), ("1 / 2",), ("∞",))
    assert (asked["unit"], asked["min_unit_records"], asked["unsafe_no_noise"]) == (("sample",), ("1",), ("no",))
    assert asked["lifetime_delta"] == asked["separate_data_sets"] == ("",)
    shown = {limit.name: limit.value for limit in limits_in_force(HospitalSettings.load(made)).limits}
    assert (shown["lifetime_epsilon"], shown["max_epsilon"], shown["separate_data_sets"]) == ("none", "8", "no")
    assert shown["queries"].startswith("votes, ")
    assert "Asked by pilot-1a2b3c4d" in text_of(made)
    german = text_of(made, "de")
    assert (">4,000</td>" in german, ">nein</td>" in german, ">no</td>" in german) == (True, True, False)
    opened(made, plan(2, epsilon=9.0), "too-much")
    assert "Asked by too-much" in text_of(made)
    assert "9.000" in compared(made)["max_epsilon"]
    for number in range(LAST):
        opened(made, agreed, f"later-{number}")
    assert {len(plans) for plans in compared(made).values()} == {LAST}


def test_a_sparse_graph_no_masks_no_noise_and_no_proof_are_told(made):
    queries = (
        PlannedQuery(name="seeds", spec=AbstractedSeedsSpec(choices=4), mechanism="gaussian max", scale=2.0**20),
        PlannedQuery(name="sizes", spec=LabelHistogramSpec(labels=2), mechanism="laplace"),
    )
    opened(made, plan(2, secure=False, threshold=1, queries=queries, epsilon=math.inf))
    asked = compared(made)
    assert asked["corrupt"] == asked["security_bits"] == asked["max_top"] == ("",)
    assert asked["min_survivors"] == ("1",)
    assert (asked["unsafe_no_noise"], asked["unsafe_unproven"], asked["max_epsilon"]) == (("yes",), ("yes",), ("inf",))
    opened(made, plan(60, degree=30, threshold=20, max_dropouts=2, colluders=2, corrupt=2), "sparse")
    assert 0 < float(compared(made)["security_bits"][0]) < math.inf


def test_what_other_runs_spent_counts_against_the_lifetime_limit(tmp_path):
    folder = operated(tmp_path)
    records = tmp_path / "notes.csv"
    records.write_text("text,label\n")
    opened(folder, plan(2))
    before = float(compared(folder)["lifetime_epsilon"][0])
    charge(folder, 1)
    assert float(compared(folder)["lifetime_epsilon"][0]) > before
    (folder / "private" / "ledger.db").unlink()
    assert "does not start with this ledger: the ledger is missing" in text_of(folder)


def test_a_value_beyond_a_limit_has_a_word_and_a_share_is_counted_in_hospitals(made):
    change(made, limits={"malicious_coordinator": True, "corrupt": 0.3, "max_epsilon": 3.5, "max_top": 3})
    opened(made, plan(3))
    beyond = {
        limit.name
        for limit in limits_in_force(HospitalSettings.load(made)).limits
        if any(asked.beyond for asked in limit.asked)
    }
    assert beyond == {"malicious_coordinator", "max_epsilon", "max_top"}
    text = text_of(made)
    assert text.count(f'class="tag">{PAGES.say.limits.beyond}') == 3
    assert '1 / 3 <span class="soft">(at least 1 here)' in text


def test_a_delta_of_one_over_the_declared_number_of_records_is_beyond_the_limit_on_delta():
    for declared, beyond in ((99_999, False), (100_000, True)):
        found = requested_values(plan(3), Limits(max_delta=0.5), (), declared=declared)
        assert found["max_delta"].beyond == beyond


def test_too_little_noise_for_the_epsilon_of_a_plan_is_beyond_a_limit():
    agreed, limits = plan(3), Limits(max_epsilon=100.0, lifetime_epsilon=None)
    (query,) = agreed.queries
    for scale, beyond in ((1.0, set()), (0.9, {"max_epsilon"})):
        asked = replace(agreed, queries=(replace(query, scale=query.scale * scale),))
        found = requested_values(asked, limits, (), declared=DECLARED)
        assert {name for name, value in found.items() if value.beyond} - {"malicious_coordinator"} == beyond

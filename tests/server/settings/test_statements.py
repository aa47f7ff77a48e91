"""The coordinator's statements in a plan are right without typing, and give no path and no key away."""

import pytest

from common.domain import NOT_STATED
from server.prepare.build import build, draft_plan
from server.prepare.compose import compose_settings

KEY = "KEY-7F3A"
OWN = "llm.models.own"
HERE = "on the coordinator's machine; place: not stated"


def planned(*overrides, config="simulation"):
    settings = compose_settings(["method=class_sums", *overrides], config)
    return draft_plan(settings, build(settings.task).task())[0]


@pytest.mark.parametrize(
    ("overrides", "models"),
    [
        ([], f"broad, narrow, noisy {HERE}"),
        (["llm.use=[noisy]"], f"noisy {HERE}"),
        (["llm=smollm2"], f"smollm2 {HERE}"),
        (["llm=local", f"llm.models.local.model=/home/{KEY}/tiny"], f"tiny {HERE}"),
        (["llm=server", f"{OWN}.model=m"], f"m {HERE}"),
        (
            ["llm=server", f"{OWN}.model=m", f"{OWN}.base_url=https://u:{KEY}@llm.uni.example/{KEY}"],
            "m on llm.uni.example",
        ),
        (["llm=openai"], "gpt-4.1-mini on OpenAI; place: not stated"),
        (
            ["llm=mixed", "models_place='by us, in France'"],
            "gpt-4.1-mini on OpenAI; broad on the coordinator's machine; place: by us, in France",
        ),
    ],
)
def test_a_plan_names_the_models_and_who_runs_them(overrides, models):
    said = planned(*overrides).models
    assert models in said
    assert KEY not in said


def test_what_the_coordinator_states_is_in_the_plan():
    said = {name: f"the {name}" for name in ("purpose", "recipient", "contact", "retention")}
    plan = planned(*(f"{name}='{text}'" for name, text in said.items()))
    assert {name: getattr(plan, name) for name in said} == said
    assert planned().contact == planned().retention == NOT_STATED


def test_the_plan_has_the_coordinators_own_forecast():
    guesses = [("method=wasp", "federation.parties=10", f"federation.expected_records={n}") for n in (30, 100_000)]
    few, many = (planned(*guess, config="server").forecast for guess in guesses)
    assert (few, many) != (NOT_STATED, NOT_STATED)
    assert ("noise" in few, "30 records" in few) == (True, True)
    assert "be noise" not in many
    # A simulation counts the private records, of which nothing may be in a plan.
    assert len({planned(*guess).forecast for guess in guesses}) == 1
    assert "no number" in planned().forecast

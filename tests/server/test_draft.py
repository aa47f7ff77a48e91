"""Numbers in place of `auto`, chosen before anything is asked and kept in the run's configuration."""

from dataclasses import replace

import pytest

from common.errors import ConfigError
from server.configuration import asked, load
from server.draft import build, drafted, without_auto
from server.planning.signal import signals, weakest
from simulations import run as simulation
from tests.support.runs import settings

SMALL = ["task.public_notes=60", "federation.parties=3", "privacy.epsilon=0.5"]
TASK = build(asked(SMALL).task).task()


def chosen(name, *overrides):
    return without_auto(asked([*SMALL, f"method.{name}=auto", *overrides]), TASK).method[name]


def ratio(*overrides):
    config = asked([*SMALL, *overrides])
    return weakest(signals(*drafted(config, TASK), config.federation.expected_records)).ratio


def test_a_configuration_without_auto_stays_as_it_is():
    config = asked(SMALL)
    assert without_auto(config) is config


def test_of_one_whose_numbers_are_chosen_nothing_else_changes_and_the_given_one_stays():
    config = asked([*SMALL, "method.rounds=auto", "federation.records=100"])
    settled = without_auto(config)
    assert config.method.rounds == "auto"
    assert settled == asked([*SMALL, "method.rounds=2", "federation.records=100", f"run={config.run}"])


def test_votes_are_asked_as_often_as_they_have_a_signal():
    many = ["federation.expected_records=8000", "method.samples=2000"]
    rounds = chosen("rounds", *many)
    assert rounds == 4
    assert ratio(*many, "method.rounds=4") >= 0.5 > ratio(*many, "method.rounds=5")
    assert chosen("rounds", "federation.expected_records=30") == 2
    assert chosen("rounds", "federation.expected_records=1000000") == 5
    # Five rounds would take a text more for each label.
    few = ["federation.expected_records=1000000", f"method.samples={4 * len(TASK.labels)}"]
    assert chosen("rounds", *few) == 4
    one_label = replace(TASK, labels={"flu": "influenza"})
    config = asked([*SMALL, "method.rounds=auto", "method.samples=3", "federation.expected_records=1000000"])
    assert without_auto(config, one_label).method.rounds == 3


def test_a_query_that_is_asked_once_does_not_decide_on_rounds_and_directions():
    some = ["federation.expected_records=8000", "evaluation.federated=2.5e-4"]
    assert chosen("rounds", "method.samples=2000", *some) == 4
    assert ratio("method.samples=2000", *some, "method.rounds=2") < 0.5  # that of the evaluation
    assert chosen("directions", "method=census", *some) == 128


def test_a_guess_of_records_is_a_simulation_s_own_number_of_records_unless_it_is_given():
    assert asked(["federation.records=70"]).federation.expected_records == 70
    assert asked(["federation.records=70", "federation.expected_records=50"]).federation.expected_records == 50
    assert asked([]).federation.expected_records is None


def test_without_a_guess_rounds_that_cost_something_are_no_matter_of_choice():
    with pytest.raises(ConfigError, match=r"method\.rounds; expected a number, or auto beside .*Add federation\.expec"):
        chosen("rounds")
    assert chosen("rounds", "method=census") == chosen("rounds", "method=fusegen") == 5
    with pytest.raises(ConfigError, match="one text for each of"):
        chosen("rounds", "method.samples=8", "federation.expected_records=30")


@pytest.mark.parametrize(
    ("records", "epsilon", "number"),
    [(100, 1, 16), (100, 4, 32), (300, 1, 32), (300, 4, 128), (1000, 1, 128), ("null", 4, 32)],
)
def test_directions_of_a_census_follow_from_labels_records_and_epsilon(records, epsilon, number):
    labels = "task.labels={" + ",".join(f"l{i}: x" for i in range(10)) + "}"
    files = ["task=csv", labels, "task.public_text=absent.txt"]
    settings = [*files, "method=census", f"privacy.epsilon={epsilon}", f"federation.expected_records={records}"]
    config = asked(["federation.parties=3", "method.directions=auto", "method.count=0.1", *settings])
    task = type(TASK)(name="t", kind="note", labels={f"l{i}": "x" for i in range(10)})
    assert without_auto(config, task).method.directions == number
    config.method.rounds = "auto"
    assert without_auto(config, task).method.rounds == 5


def test_a_simulation_keeps_the_numbers_that_were_chosen(tmp_path, monkeypatch):
    for step in ("_in_process", "_compare"):
        monkeypatch.setattr(simulation, step, lambda *_: None)
    simulation.simulate(settings("method.rounds=auto", "federation.records=12", "privacy.epsilon=0.5"), tmp_path)
    assert load(tmp_path).method.rounds == 2

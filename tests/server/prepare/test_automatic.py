"""Numbers in place of `auto`, chosen before anything is asked and kept in the run's configuration."""

import logging
from dataclasses import replace

import pytest

from common.errors import ConfigError
from server.planning.signal import signals, weakest
from server.prepare.automatic import expected_records, resolve_auto
from server.prepare.build import build, draft_plan
from server.prepare.compose import compose_settings, load_settings
from server.settings.methods import METHODS
from server.settings.reading import defaults
from simulations import run as simulation
from tests.support.runs import labelled, settings

OPEN = ["method.texts_per_request=5", "method.words=null"]
SMALL = ["task.public_notes=60", "federation.parties=3", "privacy.epsilon=0.5", *OPEN]
TASK = build(compose_settings(SMALL).task).task()


@pytest.fixture
def simulated(tmp_path, monkeypatch):
    """A function that keeps a simulation's settings in its folder, without the simulation, and reads them there."""
    for step in ("_in_process", "_compare"):
        monkeypatch.setattr(simulation, step, lambda *_: None)

    def kept(config, name="run"):
        simulation.simulate(config, tmp_path / name)
        return load_settings(tmp_path / name)

    return kept


def chosen(name, *overrides):
    return getattr(resolve_auto(compose_settings([*SMALL, f"method.{name}=auto", *overrides]), TASK).method, name)


def ratio(*overrides):
    config = compose_settings([*SMALL, *overrides])
    return weakest(signals(*draft_plan(config, TASK), expected_records(config))).ratio


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
    config = compose_settings([*SMALL, "method.rounds=auto", "method.samples=3", "federation.expected_records=1000000"])
    assert resolve_auto(config, one_label).method.rounds == 3


def test_a_query_that_is_asked_once_does_not_decide_on_rounds_and_directions():
    overrides = ["federation.expected_records=8000", "evaluation.federated=2.5e-4"]
    assert chosen("rounds", "method.samples=2000", *overrides) == 4
    assert ratio("method.samples=2000", *overrides, "method.rounds=2") < 0.5  # that of the evaluation
    assert chosen("directions", "method=class_sums", *overrides) == 128


def test_a_guess_of_records_is_a_simulation_s_own_number_of_records_unless_it_is_given():
    assert expected_records(compose_settings(["federation.records=70"])) == 70
    assert expected_records(compose_settings(["federation.records=70", "federation.expected_records=50"])) == 50
    assert expected_records(compose_settings(["task.records_per_party=20", "federation.parties=4"])) == 80
    assert expected_records(compose_settings(["task=csv"])) is None
    assert expected_records(compose_settings([], "server")) is None


def test_without_a_guess_rounds_that_cost_something_are_no_matter_of_choice():
    with pytest.raises(ConfigError, match=r"^method\.rounds=auto .*federation\.expected_records"):
        resolve_auto(compose_settings(["task=csv", "method.rounds=auto", "federation.parties=3"]), TASK)
    assert chosen("rounds") == 2  # of the demo a simulation knows the number
    assert chosen("rounds", "method=class_sums") == chosen("rounds", "method=fusegen") == 5
    with pytest.raises(ConfigError, match="one text"):
        chosen("rounds", "method.samples=8", "federation.expected_records=30")


@pytest.mark.parametrize(
    ("records", "epsilon", "number"),
    [(100, 1, 16), (100, 4, 32), (300, 1, 32), (300, 4, 128), (1000, 1, 128), ("null", 4, 32)],
)
def test_directions_of_class_sums_follow_from_labels_records_and_epsilon(records, epsilon, number):
    labels = "task.labels={" + ",".join(f"l{i}: x" for i in range(10)) + "}"
    files = ["task=csv", labels, "task.public_text=absent.txt"]
    settings = [*files, "method=class_sums", f"privacy.epsilon={epsilon}", f"federation.expected_records={records}"]
    config = compose_settings(["federation.parties=3", "method.directions=auto", "method.count=0.1", *settings])
    task = type(TASK)(name="t", kind="note", labels={f"l{i}": "x" for i in range(10)})
    assert resolve_auto(config, task).method.directions == number
    both = compose_settings(["federation.parties=3", "method.directions=auto", "method.rounds=auto", *settings])
    assert resolve_auto(both, task).method.rounds == 5


def test_a_simulation_keeps_the_numbers_that_were_chosen(simulated):
    few = settings("method.rounds=auto", "federation.records=12", "privacy.epsilon=0.5")
    assert simulated(few, "rounds").method.rounds == 2
    chat = compose_settings(["llm=qwen", "task=demo_messages", "federation.records=40"])
    assert simulated(chat, "length").method.words == 17


def test_plan_and_run_of_the_demo_choose_the_same_number_and_rows_of_a_file_count(tmp_path, simulated):
    ours = ["method=class_sums", "task.public_notes=60"]
    assert (
        simulated(compose_settings(ours)).method.directions
        == resolve_auto(compose_settings(ours)).method.directions
        == 128
    )
    run = simulated(compose_settings([*labelled(tmp_path / "data"), "method=class_sums"]), "files")
    said = resolve_auto(
        compose_settings([*labelled(tmp_path / "data"), "method=class_sums", "federation.expected_records=40"])
    )
    assert (run.method.directions, expected_records(run)) == (said.method.directions, 40)


def test_a_method_that_lacks_the_setting_says_so_and_a_baseline_leaves_it_out():
    with pytest.raises(ConfigError, match=r"^method\.directions;"):
        compose_settings(["method=wasp", "++method.directions=auto"])
    assert compose_settings(["method=only_private", "++method.directions=auto"]).automatic == ()


@pytest.mark.parametrize(("words", "texts"), [(12, 10), (20, 10), (21, 1), (900, 1)])
@pytest.mark.parametrize("public", [True, False])
def test_a_request_asks_for_fewer_texts_if_they_are_longer(words, texts, public, tmp_path):
    (tmp_path / "public.txt").write_text(f"{'word ' * words}\n" * 3)
    length = [f"task.public_text={tmp_path}/public.txt"] if public else [f"method.words={words}"]
    task = ["llm=openai", "task=csv", "task.labels=[a,b]"]
    assert resolve_auto(compose_settings([*task, *length])).method.texts_per_request == texts


@pytest.mark.parametrize(("llm", "texts"), [("qwen", 1), ("builtin", 5), ("smollm2", 5), ("mixed", 1)])
def test_a_request_to_a_model_on_this_machine_has_its_own_number_of_texts(llm, texts):
    run = resolve_auto(compose_settings([f"llm={llm}", "method.words=30", "task=csv", "task.labels=[a,b]"]))
    assert run.method.texts_per_request == texts


VOTED = ["task=csv", "federation.parties=3", "llm=builtin", "task.public_text=absent.txt"]
LABELS = "task.labels=[" + ",".join(f"l{i}" for i in range(10)) + "]"


@pytest.mark.parametrize(
    ("samples", "rounds", "top", "shots"),
    [(20, 2, 1, 2), (80, 2, 2, 2), (160, 2, 4, 4), (319, 2, 7, 7), (320, 2, 8, 8), (200, 5, 8, 8), (6000, 5, 8, 8)],
)
def test_votes_and_exemplars_are_at_most_half_of_a_label_s_candidates(samples, rounds, top, shots):
    config = compose_settings([*VOTED, LABELS, "method=wasp", f"method.samples={samples}", f"method.rounds={rounds}"])
    run = resolve_auto(config)
    assert (run.method.top, run.method.shots, run.automatic) == (top, shots, ())
    plan, _ = draft_plan(run, build(run.task).task())
    assert plan.queries[0].spec.top == top
    given = compose_settings([*VOTED, LABELS, "method=wasp", "method.samples=80", "method.top=8", "method.shots=6"])
    assert (resolve_auto(given).method.top, resolve_auto(given).method.shots) == (8, 6)


def test_a_method_that_compares_nothing_has_the_usual_number_of_exemplars():
    assert resolve_auto(compose_settings([*VOTED, LABELS, "method=fusegen", "method.shots=auto"])).method.shots == 8


@pytest.mark.parametrize(("samples", "pool"), [(9, 18), (499, 998), (500, 1000), (2000, 1000)])
def test_a_pool_of_abstracts_follows_the_number_of_texts(samples, pool):
    run = resolve_auto(compose_settings([*VOTED, "task.labels=[a,b]", "method=rpsg", f"method.samples={samples}"]))
    assert run.method.pool == pool


@pytest.mark.parametrize(
    ("overrides", "words"),
    [((), 4), (("method.words=9",), 9), (("method.words=90",), 40), (("task.public_text=absent.txt",), 40)],
)
def test_an_abstract_is_no_longer_than_a_text(overrides, words, tmp_path):
    assert resolve_auto(with_public(tmp_path, "rpsg", "llm=builtin", *overrides)).method.abstract_words == words


WITH_WORDS = {defaults(method)["name"]: method for method in METHODS if "words" in defaults(method)}
"""Methods that request a length, keyed by name. Those without the setting, such as DPGA-TextSyn, ask the hospitals."""


def with_public(tmp_path, method, *overrides, texts=("a b", "a b c d e f g", "a b c d")):
    """Settings of a method whose public texts have a median of 4 words."""
    path = tmp_path / "public.txt"
    path.write_text("\n".join(texts))
    terms = ["method.vocabulary=absent.txt"] if "vocabulary" in defaults(WITH_WORDS[method]) else []
    task = ["task=csv", "task.labels=[a,b]", f"task.public_text={path}", "federation.parties=3"]
    return compose_settings([*task, f"method={method}", *terms, *overrides])


@pytest.mark.parametrize("method", WITH_WORDS)
@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("llm=qwen",), 4),
        (("llm=openai",), 4),
        (("llm=mixed", "llm.use=[smollm2,broad,haiku]"), 4),
        (("llm=mixed", "llm.use=[smollm2,broad]"), None),
        (("llm=smollm2",), None),
        (("llm=builtin",), None),
        (("llm=qwen", "method.words=null"), None),
        (("llm=qwen", "method.words=9"), 9),
    ],
)
def test_a_chat_model_is_asked_for_the_length_of_public_texts(method, overrides, words, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    run = resolve_auto(with_public(tmp_path, method, *overrides))
    assert (run.method.words, "words" in run.automatic) == (words, False)
    assert any(message.startswith("method.words=auto: 4,") for message in caplog.messages) == (words == 4)
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


@pytest.mark.parametrize("method", WITH_WORDS)
def test_without_a_public_length_a_chat_model_s_texts_stay_open_which_is_said_once(method, tmp_path, caplog):
    unknown = ("llm=qwen", "task.public_text=null")
    run = resolve_auto(with_public(tmp_path, method, *unknown))
    (said,) = caplog.messages
    assert run.method.words is None
    assert "Set method.words=NUMBER" in said
    assert "task.public_text=FILE" in said
    caplog.clear()
    assert resolve_auto(run) is run
    assert resolve_auto(with_public(tmp_path, method, *unknown, "method.words=null")).method.words is None
    assert caplog.messages == []


def test_lengths_that_the_hospitals_tell_and_those_of_sections_are_no_lengths_of_texts(tmp_path, caplog):
    assert (
        resolve_auto(with_public(tmp_path, "class_sums", "llm=qwen", "method.questionnaire=terms")).method.words is None
    )
    assert caplog.messages == []
    sections = ["task=demo_letters", "task.public_notes=20", "method=class_sums", "federation.parties=3"]
    assert resolve_auto(compose_settings(["llm=qwen", *sections])).method.words is None
    assert "Set method.words=NUMBER" in caplog.text

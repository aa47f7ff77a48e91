"""One question after the first round steers the others; each use of its answer can be switched off."""

import json
import shutil

import numpy as np
import pytest

from common.errors import CheckpointError, ConfigError
from common.ledger.ledger import Ledger
from common.queries import closed_set
from common.queries.questions import QUESTIONS
from common.queries.terms import decode_terms
from server.command import main
from server.documents.run import TRANSFER
from server.federation.checkpoint import Checkpoint
from server.llm.builtin.model import BuiltinModel
from server.methods.class_sums import ClassSumsMethod
from server.operators import class_sums_file
from server.operators.class_sums_round import CLASS_SUMS
from server.prepare.build import build
from server.prepare.compose import load_settings, store
from server.run_folder import read_candidates
from server.settings.sections import with_values
from simulations.api.result import Result
from simulations.run import simulate
from tests.support.lanes import slow
from tests.support.method_contract import TASK, World, embed, plan_of, run, steps
from tests.support.runs import die, forked, labelled, lines, read, resume, settings, tiny

SMALL = {"samples": 48, "rounds": 3, "directions": 4, "shots": 3}
OFF = {"model_weighting": False, "steering": False, "need": False, "labels": "requested", "share_weights": False}
COUNT = 40


def answered(shares=(0.5, 0.5), offset=0.0):
    """Answers of 40 records with these shares, all so many radii off their centres along the first direction."""

    def answer(name, nth, query):
        rows = np.zeros((2, query.spec.directions + 1))
        rows[:, -1] = COUNT * np.array(shares)
        rows[:, 0] = offset * rows[:, -1]
        rows[:, -1] *= query.spec.count / query.spec.grid
        return rows.ravel()

    return answer


def method(**changes):
    return ClassSumsMethod(**SMALL | changes)


def test_all_of_epsilon_buys_one_query_after_the_first_round():
    (planned,) = plan_of(method(count=0.5), 3)
    assert (planned.name, planned.times, planned.share, planned.mechanism) == (CLASS_SUMS, 1, 1.0, "gaussian")
    spec = planned.spec
    assert (spec.labels, spec.directions, spec.count, spec.grid, spec.max_records) == (2, 4, 512, 1024, 3)
    world = World(ours := method())
    assert [len(world.asked) for _ in steps(ours, world)] == [1, 1, 1]


def test_later_prompts_show_texts_of_the_pool_and_the_first_ones_none():
    world = World(ours := method(evidence=False), answers=answered(), deviation=0.0)  # else all stay zero-shot
    before = ours.start(world)
    for state in steps(ours, world):
        prompts = [request for request in world.requests if request.good]
        pools = {label: {before.candidates[i].text for i in pool} for label, pool in before.memory.pool.items()}
        assert bool(prompts) == bool(pools)
        assert all(len(request.good) == 3 and set(request.good) <= pools[request.label] for request in prompts)
        for model in world.providers.values():
            model.requests.clear()
        before = state
    assert {len(pool) for pool in before.memory.pool.values()} == {6}


def apart(world, stray):
    """Embeddings in which each text lies on the axis of its label; texts that `stray` names lie on the other axis."""
    axes = {"a": 0, "b": 1}

    def placed(written):
        rows = embed(written).astype(np.float64) * 0.1
        for row, text in zip(rows, written, strict=True):
            for request in world.requests:
                if f" wrote {request.seed} " in text:
                    row[axes[request.label] ^ stray(text)] += 1
            if text.startswith("about "):
                row[axes[text[-1]]] += 1
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    return placed


def straying(text):
    return text.endswith("number 3")


@pytest.mark.parametrize("labels", ["class_sums", "nearest", "requested"])
def test_texts_of_another_label_get_it_or_are_left_out(labels):
    ours = method(labels=labels, texts_per_request=4, samples=48, rounds=2)
    world = World(ours, answers=answered(), deviation=0.0)
    world.embed = apart(world, straying)
    first, last = steps(ours, world)
    requested = {request.seed: request.label for request in world.requests}
    changed = [text for text in last.candidates if requested[int(text.text.split()[2])] != text.label]
    strays = [text for text in last.candidates if straying(text.text)]
    assert len(first.candidates) == 24
    assert not any(straying(first.candidates[i].text) for i in first.memory.pool["a"][:4])
    assert len(last.candidates) == (34 if labels == "nearest" else 48)
    assert len(strays) == (0 if labels == "nearest" else 8)
    assert changed == (strays if labels == "class_sums" else [])
    assert sum(last.rounds[-1].figures["relabelled"].values()) == (0 if labels == "nearest" else 8)


def test_each_use_of_the_answer_can_be_switched_off():
    answers = answered(shares=(0.7, 0.3), offset=0.5)
    plain = run(method(**OFF), world := World(method(**OFF), answers=answers, deviation=0.0))
    assert {candidate.weight for candidate in plain.candidates} == {1.0}
    assert not any(request.good for request in world.requests)
    assert set(plain.memory.weights.values()) == {0.5}
    assert len(plain.candidates) == 48
    for name, value in {
        "model_weighting": True,
        "steering": True,
        "need": True,
        "labels": "nearest",
        "share_weights": True,
    }.items():
        changed = run(ours := method(**OFF | {name: value}), World(ours, answers=answers, deviation=0.0))
        assert changed.to_dict() != plain.to_dict(), name
    noisy = [
        run(ours := method(shrinkage=on), World(ours, deviation=30.0)).rounds[-1].figures["shrinkage"]["a"]
        for on in (True, False)
    ]
    assert noisy[0] < 0.5
    assert noisy[1] == 1


FORMAL = {"words": 3, "sentences": 2, "person": 3, "numbers": 0, "abbreviations": 0, "ending": 4}
"""Answers of records that are all alike."""


def alike(name, nth, query):
    """Records of equal form, at their centres, and the first term in all of them."""
    spec, sums = query.spec, answered()(name, nth, query)
    of_questions = [np.eye(len(question.answers))[FORMAL[question.name]] for question in spec.questions]
    of_terms = np.eye(1, query.listed).ravel() * spec.term / spec.grid
    return np.concatenate(
        [sums, *(COUNT * spec.weight(QUESTIONS[0]) / spec.grid * row for row in of_questions), COUNT * of_terms]
    )


@pytest.mark.parametrize("asked", ["questions", "terms"])
def test_a_questionnaire_is_part_of_the_one_answer_and_later_texts_follow_it(asked):
    ours = method(questionnaire=asked, rounds=2, best_of=3, texts_per_request=5)
    world = World(ours, answers=alike, deviation=1.0)
    (planned,) = plan_of(ours)
    assert (planned.name, planned.times, planned.spec.kind) == (CLASS_SUMS, 1, "questionnaire")
    assert planned.spec.sensitivity.l2_squared == 1024**2 + 7 * 256**2 + 16 * 128**2 * (asked == "terms")
    assert ours.max_texts(TASK, world.models) == 24 + 3 * 24
    first, last = steps(ours, world)
    ((_, _, query),) = world.asked
    terms = decode_terms(query.terms)
    assert (len(first.candidates), len(last.candidates)) == (24, 48)
    assert all(term in " ".join(text.text for text in first.candidates) for term in terms)
    assert sum(last.rounds[-1].requested.values()) == 72
    numbers = last.released["census.json"]["questionnaire"]
    assert numbers["answers"]["words"]["15 to 19"] == COUNT
    assert (numbers["noise"], numbers["first"], list(numbers["listed"])) == (4.0, 16 * (asked == "terms"), list(terms))
    # The first round's requests leave the length open.
    assert {request.words for request in world.requests[:4]} == {None}
    later = [request.words for request in world.requests if request.words]
    assert later
    assert all(15 <= words <= 19 for words in later)


def test_a_length_that_is_set_and_zero_shot_runs_stay_as_they_are():
    world = World(ours := method(questionnaire="questions", words=12), answers=alike, deviation=1.0)
    run(ours, world)
    assert {request.words for request in world.requests} == {12}


def off_the_texts(name, nth, query):
    """An answer of one population whose records all lie two thirds of a radius along the first direction."""
    answer = np.zeros(query.spec.directions + 1)
    answer[0], answer[-1] = COUNT / 1.5, COUNT * query.spec.count / query.spec.grid
    return answer


def test_without_labels_the_exemplars_are_the_texts_most_like_the_records():
    world = World(ours := method(), answers=off_the_texts, deviation=0.0, task=TASK.without_labels())
    first, _, last = steps(ours, world)
    ((_, _, query),) = world.asked
    vectors = embed([candidate.text for candidate in first.candidates])
    assert np.allclose(query.centres, vectors.mean(axis=0), atol=1e-6)  # and no description
    (pool,) = first.memory.pool.values()
    assert pool[0] == np.argmax(vectors @ query.basis[0])
    assert not first.memory.reliable  # none stays zero-shot
    assert sum(first.memory.weights.values()) == pytest.approx(1)
    assert {text.weight for text in last.candidates} == {1.0}
    assert not any(text.probabilities for text in last.candidates)


ROUNDS, SAMPLES = 2, 24
RUN = (
    "method=class_sums",
    f"method.rounds={ROUNDS}",
    f"method.samples={SAMPLES}",
    "method.directions=6",
    "method.shots=2",
)


def small(folder, *overrides):
    """A run from files of two labels, beside its folder."""
    return tiny(folder, *RUN, *labelled(folder.parent / "files"), *overrides)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return small(tmp_path_factory.mktemp("class_sums") / "run")


@pytest.fixture(scope="module")
def reusing(finished, tmp_path_factory):
    """A run from the class sums of the finished one."""
    folder = tmp_path_factory.mktemp("reusing") / "run"
    return small(folder, f"method.census={finished / 'census.json'}", "llm.use=[noisy]")


def test_a_run_leaves_its_class_sums_with_where_they_come_from(finished):
    privacy, content = read(finished, "privacy.json"), read(finished, "census.json")
    assert (privacy["epsilon"], privacy["spent"]["queries_asked"]) == (4.0, 1)
    assert content["privacy"] | {"format": 1} == privacy
    assert content["run"] == read(finished, "run.json")["run"]
    assert content["plan_digest"] == privacy["plan_digest"]
    assert "ε = 4 and δ = 1e-5" in content["statement"]
    released, earlier = class_sums_file.read_noisy_sums(finished / "census.json")
    assert released.sums.shape == (2, 6)
    scale = privacy["queries"][0]["scale"]
    assert released.noise == pytest.approx(scale)
    assert released.count_noise == pytest.approx(4 * scale)
    assert abs(released.counts.sum() - 40) < 10 * released.count_noise
    assert earlier.epsilon == 4
    assert not list(finished.glob("*.part"))


def test_texts_have_the_probability_of_each_label(finished):
    texts, labels = read_candidates(finished), read(finished, "census.json")["labels"]
    for text in texts:
        assert list(text.probabilities) == labels
        assert sum(text.probabilities.values()) == pytest.approx(1, abs=1e-5)
    most_probable = [max(text.probabilities, key=text.probabilities.get) for text in texts]
    # A label without a text gets one.
    assert sum(text.label == label for text, label in zip(texts, most_probable, strict=True)) > len(texts) - len(labels)


def test_public_texts_have_them_in_a_file_of_their_own(finished):
    transfer = read_candidates(finished, TRANSFER)
    assert {text.model for text in transfer} == {"public"}
    assert all(sum(text.probabilities.values()) == pytest.approx(1, abs=1e-5) for text in transfer)
    assert "public" not in {text.model for text in read_candidates(finished)}


def test_the_released_numbers_are_a_classifier_without_any_text(finished):
    classifier, metrics = Result.load(finished).classifier, read(finished, "metrics.json")
    records = build(load_settings(finished).task).held_out()
    texts, labels = [record.text for record in records], [record.label for record in records]
    assert classifier.score(texts, labels) == metrics["released_classifier"]["accuracy"]["value"]
    assert classifier.predict_proba(texts[:3]).sum(axis=1) == pytest.approx(1)
    assert set(classifier.predict(texts)) <= set(classifier.classes_)


def test_a_run_with_a_questionnaire_says_what_the_records_are_like_and_another_run_can_use_it(finished, tmp_path):
    first = small(tmp_path / "run", "method.questionnaire=terms", "privacy.epsilon=8")
    released = read(first, "census.json")
    assert len(released["questionnaire"]["answers"]) == len(QUESTIONS)
    likeness = read(first, "report.json")["likeness"]
    assert sum(row["texts"] for row in likeness["answers"]) == pytest.approx(len(QUESTIONS))
    assert sum(row["records"] for row in likeness["answers"]) == pytest.approx(len(QUESTIONS))
    assert len(likeness["terms"]) == 12
    assert read(finished, "report.json")["likeness"] is None
    again = small(tmp_path / "again", "method.questionnaire=terms", f"method.census={first / 'census.json'}")
    assert read(again, "census.json")["questionnaire"] == released["questionnaire"]
    assert len(read_candidates(again)) == SAMPLES
    with pytest.raises(ConfigError, match=r"^method\.questionnaire; expected none,"):
        small(tmp_path / "none", "method.questionnaire=terms", f"method.census={finished / 'census.json'}")
    del released["questionnaire"]["listed"], released["questionnaire"]["term_noise"], released["questionnaire"]["first"]
    without = tmp_path / "census.json"
    without.write_text(json.dumps(released))
    with pytest.raises(ConfigError, match=r"^method\.questionnaire; expected questions or"):
        small(tmp_path / "terms", "method.questionnaire=terms", f"method.census={without}")


def test_exact_answers_are_on_no_page_and_without_transfer_no_public_text_is_kept(tmp_path):
    exact = small(tmp_path / "run", "method.questionnaire=questions", "privacy.epsilon=.inf", "method.transfer=0")
    assert read(exact, "report.json")["likeness"] is None
    assert read_candidates(exact, TRANSFER) == []


@pytest.mark.parametrize(("override", "shares"), [("federation.max_dropouts=1", 3 / 2), slow("secagg=none", 3)])
def test_the_noise_is_that_of_the_parties_that_answered(override, shares, tmp_path):
    three = small(tmp_path / "run", override)
    scale = read(three, "privacy.json")["queries"][0]["scale"]
    assert read(three, "census.json")["noise"] == pytest.approx(scale * np.sqrt(shares))


def test_a_run_from_class_sums_asks_nobody_and_has_the_guarantee_of_the_one_that_asked(finished, reusing):
    before, after = (read(folder, "privacy.json") for folder in (finished, reusing))
    assert after["spent"] == {"epsilon": 0.0, "queries_asked": 0, "queries_planned": 0}
    for name in ("epsilon", "delta", "adjacency", "queries", "aggregation", "against_colluders", "not_covered"):
        assert after[name] == before[name], name
    origin = read(finished, "run.json")["run"]
    assert after["earlier"]["run"] == origin
    first, *others = after["statement"].split("\n\n")
    assert f"run {origin}" in first
    assert others == before["statement"].split("\n\n")
    assert not Ledger(reusing / "state" / "ledger.db").entries(read(reusing, "run.json")["run"])
    for party in range(3):
        assert not Ledger(reusing / "parties" / f"{party:04}.db").entries(read(reusing, "run.json")["run"])
    assert {line["epsilon"] for line in lines(reusing, "rounds.jsonl")} == {4.0}
    assert all(not line["queries"] for line in lines(reusing, "rounds.jsonl"))
    page = (reusing / "report.html").read_text("utf-8")
    assert f"run {origin};" in page
    assert "ε = 4, δ = 1e-5" in page
    numbers = {name for name in read(reusing, "census.json") if name not in {"privacy", "statement"}}
    assert {name: read(reusing, "census.json")[name] for name in numbers} == {
        name: read(finished, "census.json")[name] for name in numbers
    }


@pytest.mark.slow
def test_class_sums_without_noise_promise_nothing_to_those_who_use_them(tmp_path):
    small(tmp_path / "exact", "privacy.epsilon=.inf")
    again = small(tmp_path / "again", f"method.census={tmp_path / 'exact' / 'census.json'}")
    privacy = read(again, "privacy.json")
    assert privacy["epsilon"] == "inf"
    assert "No privacy" in privacy["statement"]
    assert "No guarantee:" in (again / "report.html").read_text("utf-8")
    assert "no guarantee" in read(again, "census.json")["statement"]


@pytest.mark.parametrize(
    ("override", "word"),
    [
        ("embedding.dimensions=128", "^embedding;"),
        ("evaluation.federated=0.1", "^evaluation.federated;"),
    ],
)
def test_class_sums_of_another_encoder_or_beside_a_question_are_refused(finished, tmp_path, override, word):
    with pytest.raises(ConfigError, match=word):
        small(tmp_path / "run", f"method.census={finished / 'census.json'}", override)


@pytest.mark.parametrize("change", [{"delta": "x"}, {"adjacency": {}}, {"against_colluders": None}])
def test_a_guarantee_that_cannot_be_stated_is_refused_before_texts_are_paid_for(finished, tmp_path, change):
    released = json.loads((finished / "census.json").read_text("utf-8"))
    (tmp_path / "census.json").write_text(json.dumps(released | {"privacy": released["privacy"] | change}))
    with pytest.raises(ConfigError, match=rf"method\.census; expected privacy\.{next(iter(change))}"):
        small(tmp_path / "run", f"method.census={tmp_path / 'census.json'}")
    assert not (tmp_path / "run" / "state" / "replies.db").exists()


def test_a_run_from_class_sums_can_be_planned_and_the_plan_has_its_epsilon(finished, tmp_path, capsys):
    task = labelled(tmp_path)
    overrides = [*RUN, f"method.census={finished / 'census.json'}", *task, "privacy.epsilon=1"]
    assert main(["plan", "--json", *overrides]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["epsilon"] == 4.0
    assert planned["forecast"]["texts"] == SAMPLES
    assert main(["plan", *overrides]) == 0
    asked_nothing, cost, *_ = capsys.readouterr().out.splitlines()
    assert "asked nothing" in asked_nothing
    assert cost.startswith("ε = 4, ")
    assert main(["check", *overrides]) == 0
    assert "ε = 4" in capsys.readouterr().out.splitlines()[-1]


def test_a_plan_of_many_directions_can_be_rehearsed(tmp_path, capsys):
    many = [*RUN[:3], *labelled(tmp_path), "method.directions=90", "embedding.dimensions=96"]
    assert main(["plan", "--json", *many]) == 0
    assert json.loads(capsys.readouterr().out)["forecast"]["texts"] == SAMPLES


def test_more_directions_than_the_encoder_has_are_refused_before_texts_are_paid_for(tmp_path):
    with pytest.raises(ConfigError, match=r"method\.directions; expected at most 32"):
        tiny(tmp_path / "run", *RUN[:3], "method.directions=33", "embedding.dimensions=32")
    assert not (tmp_path / "run" / "state" / "replies.db").exists()


def test_class_sums_of_other_labels_are_refused(finished, tmp_path):
    with pytest.raises(ConfigError, match="pneumonia, "):
        tiny(tmp_path / "run", *RUN, f"method.census={finished / 'census.json'}")


@pytest.mark.parametrize("change", ["run", "epsilon"])
def test_a_run_is_not_resumed_with_other_class_sums_or_another_guarantee(finished, reusing, tmp_path, change):
    folder = shutil.copytree(reusing, tmp_path / "run")
    other = json.loads((finished / "census.json").read_text("utf-8"))
    other |= {"run": "another"} if change == "run" else {"privacy": other["privacy"] | {"epsilon": 0.5}}
    (tmp_path / "other.json").write_text(json.dumps(other))
    store(with_values(load_settings(folder), {"method.census": str(tmp_path / "other.json")}), folder)
    with pytest.raises(CheckpointError, match="earlier run"):
        resume(folder)


def test_a_run_that_is_killed_between_rounds_goes_on_and_asks_nothing_again(finished, tmp_path, monkeypatch):
    config = settings(*RUN, *labelled(tmp_path / "files"), "run=same")
    saved = Checkpoint.save

    def save(self, state):
        saved(self, state)
        if state["state"]["round"] == 1:
            die()

    def work():
        monkeypatch.setattr(Checkpoint, "save", save)
        simulate(config, tmp_path / "killed")

    assert forked(work) == -9
    answers = list((tmp_path / "killed" / "state").glob("answer-*"))
    resume(tmp_path / "killed")
    assert list((tmp_path / "killed" / "state").glob("answer-*")) == answers
    assert len(answers) == 1
    assert read(tmp_path / "killed", "privacy.json")["spent"] == read(finished, "privacy.json")["spent"]


def test_two_private_data_sets_have_one_plan_and_are_asked_the_same_bytes(tmp_path, monkeypatch):
    """Directions, centres and radius come from what is public alone: nothing private is spent on them."""
    seen, questions, reserve = [], {}, Checkpoint.reserve
    monkeypatch.setattr(Checkpoint, "reserve", lambda *given: seen.append(reserve(*given)) or seen[-1])
    requests, generate = [], BuiltinModel.generate
    monkeypatch.setattr(
        BuiltinModel, "generate", lambda self, batch, **more: requests.append(batch) or generate(self, batch, **more)
    )
    private = {
        "one": [(f"The zq{i} of a xk{i % 7} and jw{i % 3}.", "ab"[i % 2]) for i in range(40)],
        "other": [(f"Vast hq{i % 9} without qx{i}, {i} times.", "ab"[i % 5 == 0]) for i in range(90)],
    }
    for name, train in private.items():
        folder = tiny(tmp_path / name, *RUN, *labelled(tmp_path / f"{name}-files", train=train), "run=same")
        (query,) = seen
        first_round = [list(batch) for batch in requests[:3]]  # of three models; a reliable one stays zero-shot
        questions[name] = {
            "plan": read(folder, "privacy.json")["plan_digest"],
            "query": closed_set.digest(query),
            "arrays": {key: array.tobytes() for key, array in closed_set.inputs(query).items()},
            "requests": first_round,
            "softness": read(folder, "census.json")["softness"],
        }
        assert not any(request.good for batch in first_round for request in batch)
        seen.clear()
        requests.clear()
    assert questions["one"] == questions["other"]
    assert {"basis", "centres", "radius"} == set(questions["one"]["arrays"])
    assert read(tmp_path / "one", "census.json")["sums"] != read(tmp_path / "other", "census.json")["sums"]

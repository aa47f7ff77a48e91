"""`census.json` comes back as it was written, and anything else is refused with the entry's name."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest

from common.errors import ConfigError
from common.queries.questions import QUESTIONS
from server.documents.class_sums import QuestionnaireNumbers
from server.operators import class_sums_file
from server.operators.class_sums import NoisySums, subspace
from tests.support.documents import privacy_json


@pytest.fixture
def noisy():
    draws = np.random.default_rng(0)
    vectors = draws.normal(size=(20, 6))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    labels = np.arange(20) % 2
    return NoisySums(
        labels=("a", "b"),
        subspace=subspace(vectors, labels, vectors[:2], directions=3, description=0.5, quantile=0.9),
        softness=0.05,
        sums=draws.normal(size=(2, 3)),
        counts=draws.normal(size=2),
        noise=1.25,
        count_noise=2.5,
    )


def written(noisy, **changes):
    source = {"run": "r1", "plan_digest": "ab" * 32, "encoder": "cd" * 32, "privacy": privacy_json()}
    return source | class_sums_file.numbers_of(noisy).to_json() | changes


def saved(folder, content):
    path = folder / "census.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_what_was_written_is_read_bit_for_bit(noisy, tmp_path):
    again, earlier = class_sums_file.read_noisy_sums(saved(tmp_path, written(noisy)))
    for name in ("sums", "counts"):
        assert np.array_equal(getattr(again, name), getattr(noisy, name))
    assert again.subspace.basis.tobytes() == noisy.subspace.basis.tobytes()
    assert again.subspace.centres.tobytes() == noisy.subspace.centres.tobytes()
    assert again.subspace.radius == noisy.subspace.radius
    assert (again.labels, again.noise, again.count_noise, again.softness) == (("a", "b"), 1.25, 2.5, 0.05)
    assert (earlier.run, earlier.encoder, earlier.epsilon) == ("r1", "cd" * 32, 4.0)
    assert class_sums_file.numbers_of(again).to_json() == class_sums_file.numbers_of(noisy).to_json()


ANSWERS = {question.name: dict.fromkeys(question.answers, 1.5) for question in QUESTIONS}
ASKED = QuestionnaireNumbers(answers=ANSWERS, noise=2.0, listed={"the": 3.5, "a": -1.0}, term_noise=4.0, first=16)


def test_answers_to_a_questionnaire_are_read_and_their_absence_leaves_no_entry(noisy, tmp_path):
    assert "questionnaire" not in written(noisy)
    assert class_sums_file.read_noisy_sums(saved(tmp_path, written(noisy)))[0].questionnaire is None
    asked = replace(noisy, questionnaire=ASKED)
    again, _ = class_sums_file.read_noisy_sums(saved(tmp_path, written(asked)))
    assert again.questionnaire == ASKED
    # In any order.
    again, _ = class_sums_file.read_noisy_sums(saved(tmp_path, json.dumps(written(asked), sort_keys=True)))
    assert again.questionnaire == ASKED


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"answers": {}}, "questionnaire.answers"),
        ({"answers": ANSWERS | {"words": {"few": 1.0}}}, "questionnaire.answers"),
        ({"answers": ANSWERS | {"ending": ANSWERS["ending"] | {"?": "inf"}}}, "questionnaire: finite numbers"),
        ({"answers": 3}, "questionnaire.answers"),
        ({"noise": -1.0}, "questionnaire: finite numbers"),
        ({"listed": {"the": None}}, "questionnaire"),
        ({"listed": {}}, "questionnaire.first"),
    ],
)
def test_answers_to_other_questions_are_refused(noisy, tmp_path, change, named):
    content = written(replace(noisy, questionnaire=ASKED))
    content["questionnaire"] |= change
    with pytest.raises(ConfigError, match=named):
        class_sums_file.read_noisy_sums(saved(tmp_path, content))


@pytest.mark.parametrize(
    "key", ["labels", "sums", "counts", "noise", "count_noise", "softness", "radius", "basis", "centres"]
)
@pytest.mark.parametrize("wrong", ["missing", None, "x", [1.0], {"a": 1}])
def test_an_entry_that_is_missing_or_of_another_kind_is_refused(noisy, tmp_path, key, wrong):
    content = written(noisy, **{key: wrong})
    if wrong == "missing":
        del content[key]
    with pytest.raises(ConfigError, match=r"method\.census") as caught:
        class_sums_file.read_noisy_sums(saved(tmp_path, content))
    assert "census.json" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def bits(array):
    return base64.b64encode(np.asarray(array, "<f4").tobytes()).decode()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"sums": [[1.0, 2, 3]]}, "sums of shape (2, 3)"),
        ({"counts": [1.0]}, "counts of shape (2,)"),
        ({"sums": [[1.0, 2, 3], [1.0, float("nan"), 3]]}, "sums: finite numbers"),
        ({"counts": [1.0, float("inf")]}, "counts: finite numbers"),
        ({"noise": -1.0}, "noise: finite numbers >= 0"),
        ({"radius": 0.0}, "radius"),
        ({"softness": 0.0}, "softness"),
        ({"basis": bits(np.ones((3, 6)))}, "basis"),
        ({"basis": bits(np.eye(3, 5))}, "centres"),
        ({"centres": bits(np.full((2, 6), 9))}, "centres"),
        ({"basis": "%%%"}, "base64"),
        ({"labels": []}, "labels"),
        ({"format": 2}, "one of a later version"),
        ({"format": "1"}, "format: a whole number"),
        ({"run": 3}, "run: text"),
        ({"privacy": "strong"}, "privacy: an object"),
        ({"privacy": {}}, "privacy.epsilon"),
        ({"privacy": privacy_json(epsilon="much")}, "privacy.epsilon"),
        ({"privacy": privacy_json(epsilon=0)}, "privacy.epsilon"),
    ],
)
def test_numbers_that_do_not_fit_together_are_refused(noisy, tmp_path, changes, word):
    with pytest.raises(ConfigError) as caught:
        class_sums_file.read_noisy_sums(saved(tmp_path, written(noisy, **changes)))
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("content", "word"), [("{", "JSON"), ("[" * 100_000, "JSON"), ("[]", "a JSON object"), ("\xff", "JSON")]
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, word):
    path = tmp_path / "census.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=word):
        class_sums_file.read_noisy_sums(path)


def test_no_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no file"):
        class_sums_file.read_noisy_sums(tmp_path / "census.json")


def test_other_labels_or_the_same_in_another_order_are_refused(noisy, tmp_path):
    class_sums_file.check_labels(noisy, ("a", "b"), tmp_path)
    for labels in (("b", "a"), ("a",), ("a", "b", "c")):
        with pytest.raises(ConfigError, match="a, b"):
            class_sums_file.check_labels(noisy, labels, tmp_path)

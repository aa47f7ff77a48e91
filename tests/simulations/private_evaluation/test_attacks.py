import numpy as np
import pytest

from common.errors import DataError
from server.metrics.personal_information import personal_information
from server.settings.evaluation import Training
from server.tasks.demo_notes import private_notes
from simulations.private_evaluation.attacks import attacks, exposure, nearest, scored

FAST = Training(width=32, layers=1, length=32, vocabulary=400, epochs=16, learning_rate=1e-2)


class Known:
    """A model whose likelihoods are given."""

    def __init__(self, **nll):
        self._nll = nll

    def nll(self, texts):
        return np.array([self._nll[text] for text in texts])


def notes(hospital, count):
    return [" ".join(record.text.split()[:30]) for record in private_notes(hospital, count, 0)]


def test_scores_by_hand():
    target = Known(a=1.0, b=2.0, x=2.0, y=3.0)
    reference = Known(a=1.0, b=2.0, x=4.0, y=9.0)
    shadows = [Known(a=2.0, b=2.0, x=2.0, y=4.0), Known(a=4.0, b=2.0, x=2.0, y=2.0)]
    scores = scored(target, reference, shadows, ["a", "b"], ["x", "y"])
    assert scores["PPL"].auc == (1 + 1 + 0.5 + 1) / 4  # a before both, b ties with x
    assert scores["REFER"].auc == 0  # 1, 1 against 2, 3
    assert scores["LIRA"].auc == 0.75  # 2, 0 against 0, 0: a before both, b ties twice
    assert all(attack.interval[0] <= attack.auc <= attack.interval[1] for attack in scores.values())


def test_a_model_of_the_members_themselves_gives_them_away_and_one_of_others_does_not():
    pool = notes(0, 240)
    members, others, reference, apart = pool[:60], pool[60:120], pool[120:180], pool[180:]
    guilty = attacks(members, members, others, reference, shadows=1, training=FAST)
    assert guilty["PPL"].auc > 0.65
    assert guilty["LIRA"].auc > 0.65
    assert min(guilty[name].interval[0] for name in ("PPL", "LIRA")) > 0.55
    innocent = attacks(apart, members, others, reference, shadows=1, training=FAST)
    for attack in innocent.values():
        assert attack.interval[0] < 0.55
        assert attack.interval[1] > 0.45
        assert abs(attack.auc - 0.5) < 0.15


def test_a_membership_attack_needs_texts_of_each_kind():
    with pytest.raises(DataError, match="at least two"):
        attacks(["a"], ["a", "b"], ["c", "d"], ["e"])


def test_exposure_is_the_rank_in_bits():
    nll = {"canary": 2.0, **{str(i): float(i) for i in range(7)}}
    model = Known(**nll)
    assert exposure(model, "canary", [str(i) for i in range(7)]) == 1  # rank 4 of 8, behind 0, 1 and the equal 2
    assert exposure(Known(canary=-1.0, x=0.0), "canary", ["x"]) == 1
    with pytest.raises(DataError, match="alternative"):
        exposure(model, "canary", [])


def test_a_canary_that_was_learned_stands_out():
    from server.metrics.language_model import LanguageModel

    form = "the code of ward nine is {:04}".format
    texts = notes(0, 40)
    learned = LanguageModel.train([*texts, *[form(4711)] * 5], FAST)
    others = [form(number) for number in range(1000, 1255)]
    assert exposure(learned, form(4711), others) == 8
    assert exposure(learned, form(1255), others) < 8


def test_distances_by_hand():
    angle = lambda degrees: np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)
    distances = nearest(angle([0, 90]), angle([0, 60, 10]), angle([20, 40, 45, 30]))
    assert distances.members == pytest.approx(1 - np.cos(np.radians(10)))
    assert distances.others == pytest.approx((2 - np.cos(np.radians(30)) - np.cos(np.radians(40))) / 2)
    assert distances.ratio == pytest.approx(distances.members / distances.others)
    assert distances.closer == pytest.approx(2 / 3)  # 0 and 10 degrees are nearer than 20
    assert distances.rows == (3, 4)


def test_copies_are_at_distance_nothing():
    vectors = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    copied = nearest(vectors[:20], vectors[:20], vectors[20:])
    assert (copied.members, copied.ratio, copied.closer) == (0, 0, 1)
    assert np.isnan(nearest(vectors, vectors, vectors).ratio)
    assert nearest(vectors[:20], vectors[20:], vectors[:20]).ratio == np.inf
    with pytest.raises(DataError, match="at least 1 rows"):
        nearest(vectors, vectors[:0], vectors)


def test_personal_information_is_counted_by_text():
    flags, kinds = personal_information(["mail a@b.org or c@d.org", "nothing here", "mail x@y.org from 212-555-0123"])
    assert flags.tolist() == [True, False, True]
    assert kinds["EMAIL"] == 2
    with pytest.raises(DataError, match="at least one"):
        personal_information([])

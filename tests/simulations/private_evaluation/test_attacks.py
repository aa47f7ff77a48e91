import numpy as np
import pytest

from common.errors import DataError
from server.settings.evaluation import Training
from server.tasks.demo_notes import private_notes
from simulations.private_evaluation.attacks import attacks, exposure, run_attacks

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
    scores = run_attacks(target, reference, shadows, ["a", "b"], ["x", "y"])
    assert scores["PPL"].value == (1 + 1 + 0.5 + 1) / 4  # a before both, b ties with x
    assert scores["REFER"].value == 0  # 1, 1 against 2, 3
    assert scores["LIRA"].value == 0.75  # 2, 0 against 0, 0: a before both, b ties twice
    assert all(attack.interval[0] <= attack.value <= attack.interval[1] for attack in scores.values())


def test_a_model_of_the_members_themselves_gives_them_away_and_one_of_others_does_not():
    pool = notes(0, 240)
    members, others, reference, apart = pool[:60], pool[60:120], pool[120:180], pool[180:]
    guilty = attacks(members, members, others, reference, shadows=1, training=FAST)
    assert guilty["PPL"].value > 0.65
    assert guilty["LIRA"].value > 0.65
    assert min(guilty[name].interval[0] for name in ("PPL", "LIRA")) > 0.55
    innocent = attacks(apart, members, others, reference, shadows=1, training=FAST)
    for attack in innocent.values():
        assert attack.interval[0] < 0.55
        assert attack.interval[1] > 0.45
        assert abs(attack.value - 0.5) < 0.15


def test_a_membership_attack_needs_texts_of_each_kind():
    with pytest.raises(DataError, match="two"):
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

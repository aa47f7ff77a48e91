"""What refinement keeps, with a surrogate that is looked at, and once with a real one."""

import numpy as np
import pytest

from server.domain import Candidate
from server.operators import refinement
from server.operators.refinement import Refinement, redact_texts
from server.settings.evaluation import Training


def candidates(*texts, label="a"):
    return [Candidate(text=text, label=label, model="m", round=1) for text in texts]


class Counting:
    """A surrogate that finds a text the more unlikely, the more letters it has."""

    trained: tuple[list[str], Training] | None = None

    @classmethod
    def train(cls, texts, training, **_):
        cls.trained = (texts, training)
        return cls()

    def nll(self, texts):
        return np.array([len(text) for text in texts], dtype=np.float64)


@pytest.fixture
def surrogate(monkeypatch):
    Counting.trained = None
    monkeypatch.setattr(refinement, "LanguageModel", Counting)
    return Counting


def kept(refine, texts, cosines, *, wanted=100, variants=()):
    """Positions that stay, for texts of those cosines to what they rephrase."""
    cosines = np.array(cosines)
    vectors = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1).astype(np.float32)
    originals = np.tile(np.array([[1, 0]], dtype=np.float32), (len(texts), 1))
    labels = dict.fromkeys((text.label for text in texts), wanted)
    return refine.select(texts, variants, vectors, originals, wanted=labels, experiment_seed=0)


def test_first_the_least_like_their_variants_then_the_least_likely(surrogate):
    texts = candidates(*("x" * length for length in (9, 1, 5, 3, 7, 8)))
    refine = Refinement(similarity=0.67, nll=0.5, epochs=2, weight_decay=0.1, learning_rate=3e-4)
    variants = candidates("one", "two")
    # The longest is most like its variant, and the cosine filter has left it out before likelihoods are asked for.
    assert kept(refine, texts, [0.9, 0.1, 0.2, 0.3, 0.4, 0.8], variants=variants) == [2, 4, 5]
    learnt, training = surrogate.trained
    assert learnt == ["one", "two"]
    assert (training.epochs, training.weight_decay, training.learning_rate) == (2, 0.1, 3e-4)


def test_a_share_of_one_switches_a_filter_off(surrogate):
    texts = candidates("x", "xx", "xxx", "xxxx")
    cosines = [0.1, 0.2, 0.3, 0.4]
    assert kept(Refinement(similarity=1.0, nll=1.0), texts, cosines) == [0, 1, 2, 3]
    assert kept(Refinement(similarity=0.5, nll=1.0), texts, cosines) == [0, 1]
    assert surrogate.trained is None
    assert kept(Refinement(similarity=1.0, nll=0.5), texts, cosines) == [2, 3]


def test_each_label_is_filtered_by_itself(surrogate):
    texts = [*candidates("x", "xx", "xxx", "xxxx"), *candidates("xxxxx", "xxxxxx", label="b")]
    assert kept(Refinement(similarity=1.0, nll=0.5), texts, [0.5] * 6) == [2, 3, 5]


@pytest.mark.parametrize("similarity", [1.0, 0.65, 0.4, 0.05])
@pytest.mark.parametrize("nll", [1.0, 0.55, 0.3])
def test_so_many_are_needed_that_as_many_as_wanted_are_left(similarity, nll, surrogate):
    refine = Refinement(similarity=similarity, nll=nll)
    for wanted in (1, 2, 7, 10):
        needed = refine.needed(wanted)
        assert needed < wanted / (similarity * nll) + 1 / similarity + 1
        texts = candidates(*("x" * (length + 1) for length in range(needed)))
        assert len(kept(refine, texts, np.linspace(0, 0.9, needed), wanted=wanted)) == wanted


def test_what_the_surrogate_has_learnt_goes_first():
    learnt = [f"the {word} ward round began before seven in the {word} wing" for word in ("east", "west", "north")]
    others = ["Zq! 93 xk; jv", "qwv zzx 71 bpl", "kjh 55 mnb vcx"]
    texts = candidates(*learnt, *others)
    refine = Refinement(similarity=1.0, nll=0.5, epochs=20)
    assert kept(refine, texts, [0.5] * 6, variants=candidates(*learnt * 3)) == [3, 4, 5]


def test_personal_information_is_masked_in_the_language_of_the_texts():
    (text,) = redact_texts(candidates("Mme Le Goff, née le 3 avril 2021"), "french")
    assert text.text == "[PERSON], née le [DATE]"
    assert (text.label, text.model, text.round) == ("a", "m", 1)

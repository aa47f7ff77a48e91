"""What classifiers of texts with several labels learn with and without the hospitals, on the same test texts."""

import numpy as np

from common.domain import Record
from server.domain import Candidate
from server.evaluation.figures import Measured
from server.evaluation.label_sets import compare_label_sets
from server.report.quality import read_quality
from tests.support.measured_texts import WORDS, as_read, measured_parts

NAMES = ("apple", "berry", "cherry")


def texts(count, seed, *, wrong=0.0):
    """Texts that name their labels among other words; a share of them has others' labels."""
    rng = np.random.default_rng(seed)

    def pair():
        return sorted(rng.choice(NAMES, size=2, replace=False).tolist())

    made = []
    for _ in range(count):
        labels = pair()
        words = " ".join([*labels, *rng.choice(WORDS, size=4).tolist()])
        labels = pair() if rng.random() < wrong else labels
        made.append(Candidate(text=words, label=labels[0], more=(labels[1],), model="m", round=0))
    return made


def gain(synthetic, zero_shot):
    test = [Record(text.text, text.label, more=text.more) for text in texts(60, 99)]
    groups = compare_label_sets(Measured(**measured_parts(candidates=synthetic, test=test)), zero_shot)
    return read_quality(as_read(groups)).gain


def test_better_texts_are_a_clear_gain_as_good_ones_none_and_few_tell_nothing():
    assert gain(texts(24, 0), texts(24, 1, wrong=1.0)).clear
    alike = gain(texts(24, 0, wrong=0.6), texts(24, 1, wrong=0.6))
    assert (alike.clear, alike.loss) == (False, False)
    assert gain(texts(24, 0), texts(19, 1)) is None

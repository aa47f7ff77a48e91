"""Hospitals that leave their noise out, through real services: the readers' epsilon holds, that of all noise does not.

Noise is the operating system's. For sound code the check fails with probability 6e-7: five standard errors.
"""

import math

import numpy as np

from client.guard import Limits
from common.plan.guarantee import epsilon_if_all_add_noise, epsilon_released
from common.privacy.accountant import ReleasedAnswers, epsilon
from tests.support.adversary import Adversary, Shown
from tests.support.federations import plan, query, records, roster, true_counts

PARTIES, CORRUPT, CANDIDATES = 6, 2, 400


def test_the_readers_epsilon_is_that_of_a_sum_in_which_the_corrupt_add_no_noise(tmp_path):
    parties = {"max_dropouts": 1, "colluders": CORRUPT, "corrupt": CORRUPT, "threshold": 5}
    agreed = plan(PARTIES, roster=roster(PARTIES).digest.hex(), times=1, **parties)
    corrupt = set(range(PARTIES - CORRUPT, PARTIES))
    adversary = Adversary(tmp_path, PARTIES, corrupt=corrupt, limits=Limits(corrupt=CORRUPT / PARTIES))
    asked = query(candidates=CANDIDATES)
    attack = adversary.attack(Shown(agreed, asked))
    noisy = sorted(attack.words)[: agreed.survivors - CORRUPT]
    noise = sum(attack.answers[party] - true_counts(asked, records(party)) for party in noisy)
    deviation = float(np.sqrt(np.mean(np.square(noise))))
    most = deviation * (1 + 5 / math.sqrt(2 * noise.size))
    (planned,) = agreed.queries
    faced = ReleasedAnswers(mechanism="gaussian", sensitivity=planned.spec.sensitivity, scale=most)
    assert epsilon_if_all_add_noise(agreed) < epsilon([faced], agreed.delta) <= epsilon_released(agreed)

import numpy as np

from common import rng


def test_streams_are_what_they_were():
    """A resumed run must draw what the killed one would have drawn, in every version."""
    assert rng.stream(7, "prompts", 3) == 7894183081934657298
    assert rng.experiment(7, "prompts", 3).integers(2**63) == 7727984922092878467


def test_each_seed_and_purpose_has_a_stream_of_its_own_whose_parts_do_not_run_together():
    purposes = [(1, "23"), (12, "3"), (1, "2", "3"), (123,), (1, "2", 4), (2, "2", 3), (1, "2")]
    assert len({rng.stream(*purpose) for purpose in purposes}) == len(purposes)


def test_the_order_of_use_does_not_matter():
    first = rng.experiment(1, "a").random(5)
    rng.experiment(1, "b").random(100)
    np.testing.assert_array_equal(rng.experiment(1, "a").random(5), first)


def test_seeds_have_64_bits():
    seeds = [rng.stream(seed) for seed in range(200)]
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert max(seeds) > 2**63  # missed by 200 fair top bits with probability 2^-200


def test_secure_bytes_cannot_be_seeded():
    state = np.random.get_state()  # noqa: NPY002
    one = rng.secure_bytes(32)
    np.random.set_state(state)  # noqa: NPY002
    assert len(one) == 32
    assert rng.secure_bytes(32) != one  # equal with probability 2^-256
    assert rng.secure_bytes(0) == b""

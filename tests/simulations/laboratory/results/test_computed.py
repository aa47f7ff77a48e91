import pytest

from simulations.laboratory.results import computed
from simulations.laboratory.results.claims import read_claims


def test_the_papers_noise_and_what_votes_need_are_as_published_and_as_measured():
    sigma = computed.wasp_sigma()
    assert [sigma[f"paper's at ε {epsilon}"] for epsilon in (1, 2, 4, 8)] == pytest.approx(
        [38.76, 19.38, 9.69, 4.845], abs=0.006
    )
    assert [sigma[f"needed at ε {epsilon}"] for epsilon in (1, 2, 4, 8)] == pytest.approx(
        [12.184, 6.512, 3.531, 1.960], abs=0.0006
    )


def test_the_papers_noise_gives_a_smaller_epsilon_than_stated():
    epsilon = computed.wasp_true_epsilon()
    assert [epsilon[f"noise for ε {stated}"] for stated in (1, 2, 4, 8)] == pytest.approx(
        [0.283, 0.602, 1.287, 2.788], abs=0.0006
    )


def test_computed_claims_compare_rows_that_their_functions_give():
    for claim in read_claims():
        if claim.computed is not None:
            assert set(claim.compare) <= set(computed.FUNCTIONS[claim.computed]()), claim.name

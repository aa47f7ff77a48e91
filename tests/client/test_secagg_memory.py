import tracemalloc

import numpy as np

from tests.support.secagg_rounds import Run, setup


def test_a_party_masks_within_four_vectors_of_memory():
    """Its own vector and the masked one are two; keys, shares and keystream must fit into the rest."""
    length = 500_000
    run = Run(setup(6)).ready()
    tracemalloc.start()
    try:
        vector = np.arange(length, dtype=np.int64)
        tracemalloc.reset_peak()
        state, masked = run.parties[0].mask(3, vector, subject=b"")
        agreed, _ = state.agree(frozenset(range(6)))
        agreed.unmask({})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert masked.nbytes == 8 * length
    assert peak < 2.2 * vector.nbytes


def test_the_coordinator_needs_one_vector_besides_the_one_that_arrives():
    length = 500_000
    run = Run(setup(6)).ready()
    vectors = {party: run.parties[party].mask(3, np.ones(length, dtype=np.int64), subject=b"") for party in range(5)}
    tracemalloc.start()
    try:
        masking = run.coordinator.open(3, length, subject=b"")
        for party, (_, masked) in vectors.items():
            masking.add(party, masked)
        agreeing, survivors = masking.close()
        agreed = {party: state.agree(survivors)[0] for party, (state, _) in vectors.items()}
        unmasking, signatures = agreeing.collect({})
        total = unmasking.combine({party: state.unmask(signatures) for party, state in agreed.items()})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.all(total == 5)
    assert peak < 1.5 * total.nbytes

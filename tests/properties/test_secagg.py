"""Any dropouts, any thresholds, either mode: the exact sum of the survivors, or a refusal. Never a wrong sum."""

import contextlib

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from common.errors import DropoutError, ProtocolError
from common.secagg import shamir
from common.secagg.messages import UnmaskShares
from tests.support.secagg_rounds import Run, setup


@st.composite
def scenarios(draw):
    """A legal full graph of 2 to 8 parties, and for each of four steps the parties that still answer."""
    parties = tuple(sorted(draw(st.sets(st.integers(0, 40), min_size=2, max_size=8))))
    aggregation = setup(
        parties=parties,
        malicious=draw(st.booleans()),
        threshold=draw(st.integers(2, len(parties))),
        minimum_survivors=draw(st.integers(2, len(parties))),
    )
    # Most parties stay, or nearly all rounds would end in a refusal.
    leaving = draw(st.lists(st.tuples(st.sampled_from(parties), st.integers(0, 4)), max_size=len(parties)))
    return aggregation, [frozenset(parties) - {party for party, step in leaving if step <= now} for now in range(5)]


def in_order(aggregation, present):
    """What must happen, from the counts alone."""
    advertised, shared, masked, agreed, answered = (len(parties) for parties in present)
    return (
        min(advertised, shared, masked) >= aggregation.quorum
        and agreed >= aggregation.signers
        and answered >= aggregation.threshold
    )


@settings(max_examples=80, deadline=None)
@given(scenarios())
def test_any_dropouts_give_the_exact_sum_or_a_refusal(scenario):
    aggregation, present = scenario
    run = Run(aggregation)
    try:
        one = run.advertise(present[0]).share(present[1]).receive().open().mask(present[2]).agree(present[3])
        total = one.unmask(present[4])
    except DropoutError:
        event("refused")
        assert not in_order(aggregation, present)
    else:
        event("summed")
        assert in_order(aggregation, present)
        assert one.survivors == present[2]
        assert total.tolist() == one.expected()


@settings(max_examples=60, deadline=None)
@given(scenarios(), st.data())
def test_no_damaged_answer_gives_a_wrong_sum(scenario, data):
    """Change one number of any one share that a survivor hands out: the sum is right (share unused) or refused."""
    aggregation, present = scenario
    one = None
    with contextlib.suppress(DropoutError):
        one = Run(aggregation).advertise(present[0]).share(present[1]).receive().open().mask(present[2]).agree()
    if one is None:
        return
    answers = {party: state.unmask(one.signatures) for party, state in one.parties.items()}
    party = data.draw(st.sampled_from(sorted(answers)))
    kinds = {"seeds": dict(answers[party].self_seeds), "keys": dict(answers[party].mask_keys)}
    kind = data.draw(st.sampled_from([kind for kind in kinds if kinds[kind]]))
    owner = data.draw(st.sampled_from(sorted(kinds[kind])))
    words = np.frombuffer(kinds[kind][owner], "<u4").copy()
    place = data.draw(st.integers(0, words.size - 1))
    words[place] = (int(words[place]) + data.draw(st.integers(1, shamir.PRIME - 1))) % shamir.PRIME
    kinds[kind][owner] = words.tobytes()
    answers[party] = UnmaskShares(self_seeds=kinds["seeds"], mask_keys=kinds["keys"])
    try:
        total = one.coordinator.combine(answers)
    except ProtocolError:
        event("refused")
    else:
        event("not used")
        assert total.tolist() == one.expected()

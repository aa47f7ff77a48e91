from common.plan.words import differences


def test_sums_that_can_be_subtracted_are_those_of_two_runs_and_where_parties_may_drop_out_of_two_questions():
    sentence = differences(0)
    assert "where a party takes part in one of two runs" in sentence
    assert "where a hospital drops out, or is left out" in differences(1, one="hospital", many="hospitals")
    assert "one set of hospitals only" in differences(1, one="hospital", many="hospitals")
    assert not sentence.endswith(".")

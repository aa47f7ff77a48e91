from common.plan.words import differences, few_corrupt


def test_sums_that_can_be_subtracted_are_those_of_two_runs_and_where_parties_may_drop_out_of_two_questions():
    assert "one of two runs" in differences(0)
    assert differences(0) != differences(1)
    assert "drops out" in differences(1)


def test_a_condition_reads_well_with_every_number():
    assert "no hospital" in few_corrupt(0, 10)
    assert ["1 of 10" in few_corrupt(1, 10), "3 of 10" in few_corrupt(3, 10)] == [True, True]

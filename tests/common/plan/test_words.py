from common.plan.words import differences, few_corrupt


def test_sums_that_can_be_subtracted_are_those_of_two_runs_and_where_parties_may_drop_out_of_two_questions():
    sentence = differences(0)
    assert "where a hospital takes part in one of two runs" in sentence
    assert "where a hospital drops out, or is left out" in differences(1)
    assert "one set of hospitals only" in sentence
    assert not sentence.endswith(".")


def test_a_condition_reads_well_with_every_number():
    assert few_corrupt(0, 10) == "with no hospital corrupt"
    assert [few_corrupt(number, 10) for number in (1, 3)] == [
        "with at most 1 of 10 hospitals corrupt",
        "with at most 3 of 10 hospitals corrupt",
    ]

from common.models.batches import batches_by_tokens


def test_batches_hold_texts_of_like_length_within_the_budget():
    lengths = [3, 50, 4, 7, 200, 1, 0]
    batches = batches_by_tokens(lengths, 100)
    assert batches == [[4], [1, 3], [2, 0, 5, 6]]
    assert batches_by_tokens([10] * 7, 30) == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches_by_tokens([], 10) == []
    assert batches_by_tokens([0, 0], 1) == [[0], [1]]

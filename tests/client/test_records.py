import logging

import numpy as np
import pytest

from client.records import Embedded, embed, read
from common.domain import Record
from common.errors import DataError
from tests.federations import ENCODER, LABELS


def test_records_are_read_and_embedded_under_the_plans_numbers(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("text,label\nhello there,b\ngood day,a\n", encoding="utf-8")
    mine = embed(read(path, LABELS), LABELS, ENCODER)
    assert mine.labels.tolist() == [1, 0]
    assert np.array_equal(mine.vectors, ENCODER.encode(["hello there", "good day"]))
    assert embed(read(path, LABELS), ("b", "a"), ENCODER).labels.tolist() == [0, 1]


def test_a_party_without_records_has_vectors_of_the_right_width():
    none = embed([], LABELS, ENCODER)
    assert (none.vectors.shape, none.labels.shape) == ((0, 32), (0,))


def test_a_label_that_the_plan_lacks_does_not_vote_and_is_not_named(caplog):
    caplog.set_level(logging.DEBUG)
    private = [Record("zqx one", "secretlabel"), Record("hello there", "b")]
    mine = embed(private, LABELS, ENCODER)
    alone = embed(private[1:], LABELS, ENCODER)
    assert np.array_equal(mine.vectors, alone.vectors)
    assert np.array_equal(mine.labels, alone.labels)
    (said,) = caplog.messages
    assert "do not vote" in said
    assert not {"secretlabel", "zqx", "1", "one "} & {word for word in ("secretlabel", "zqx", "1") if word in said}


@pytest.mark.parametrize("rows", ["text,label\nzqx,secretlabel\n", "text,label\n,b\n", "text\nzqx\n"])
def test_a_complaint_about_the_file_names_its_line_and_no_word_of_it(rows, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(rows, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(path, LABELS)
    assert "mine.csv" in str(caught.value)
    assert "zqx" not in str(caught.value)
    assert "secretlabel" not in str(caught.value)


def test_embedded_records_have_no_repr():
    mine = Embedded(vectors=np.full((1, 2), 0.123, dtype=np.float32), labels=np.array([77], dtype=np.int32))
    assert "0.123" not in repr(mine)
    assert "77" not in repr(mine)

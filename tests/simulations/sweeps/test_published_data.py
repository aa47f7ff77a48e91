import csv

import pytest

from common.errors import DataError
from common.labelled_files import read_records
from simulations.sweeps.published_data import convert, main


def published(folder, *rows):
    path = folder / "published.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


REVIEW = ("Area: Theory (eg, control theory)", 'It says "so",\nin two lines.', "Recommendation: 8: accept, good paper")


@pytest.mark.parametrize(
    ("column", "label"), [("label1", "Theory (eg, control theory)"), ("label2", "8: accept, good paper")]
)
def test_reviews_get_the_label_of_a_column_without_its_name(column, label, tmp_path):
    source = published(tmp_path, ("label1", "text", "label2"), REVIEW)
    main([str(source), str(tmp_path / "train.csv"), "--label", column])
    (record,) = read_records(tmp_path / "train.csv")
    assert (record.text, record.label) == (REVIEW[1], label)


def test_abstracts_of_any_length_get_one_label(tmp_path):
    source = published(tmp_path, ("text",), ("long " * 60_000,), ("short: one",))
    assert convert(source, tmp_path / "train.csv") == 2
    with (tmp_path / "train.csv").open(newline="") as file:
        assert [row["label"] for row in csv.DictReader(file)] == ["abstract", "abstract"]


def test_what_is_wrong_is_named_by_line_and_not_shown(tmp_path):
    with pytest.raises(DataError, match="no column"):
        convert(published(tmp_path, ("text",), ("zq",)), tmp_path / "train.csv", label="label1")
    with pytest.raises(DataError, match=r"published.csv:3$") as caught:
        convert(published(tmp_path, ("text", "label1"), ("zq", "a"), ("zq", " ")), tmp_path / "o.csv", label="label1")
    assert "zq" not in str(caught.value)

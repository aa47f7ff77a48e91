import pytest

from common.domain import UNLABELLED
from common.errors import ConfigError, DataError
from server.domain import Example
from server.tasks.sources import DemoMessages, DemoNotes, LabelledFiles


def files(**settings):
    return LabelledFiles(**({"name": "t", "kind": "text", "labels": {"a": "first", "b": None}} | settings))


@pytest.mark.parametrize("labels", [None, {}, []])
def test_without_labels_it_says_how_to_name_them(labels):
    with pytest.raises(ConfigError, match=r"^task\.labels; .*; got none\."):
        files(labels=labels, train="never-read.csv").task()


def test_public_text_is_read_from_its_file_and_missed_where_there_is_none(tmp_path):
    (tmp_path / "public.txt").write_text("one\n\ntwo\n")
    assert files(public_text=str(tmp_path / "public.txt")).public_texts() == ["one", "two"]
    with pytest.raises(ConfigError, match=r"task\.public_text=PATH"):
        files().public_texts()


def test_examples_have_a_topic_where_the_public_file_has_one(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text('text,label,topic\none,a," lost_card "\ntwo,b,fees\n')
    assert files(public_text=str(path)).public_examples() == [
        Example(text="one", topic="lost card"),
        Example(text="two", topic="fees"),
    ]
    path.write_text("text,label\none,late_card\n")
    assert files(public_text=str(path)).public_examples() == [Example(text="one", topic="late card")]
    path.write_text("text\none\n")
    assert files(public_text=str(path)).public_examples() == [Example(text="one")]


def test_private_records_are_no_public_text(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("text,label\none,a\n")
    (tmp_path / "public.csv").symlink_to(path)
    for public in (path, tmp_path / "public.csv"):
        with pytest.raises(ConfigError, match=r"^task\.public_text;.* private"):
            files(train=str(path), public_text=str(public))


def test_without_public_text_there_are_no_examples_and_a_missing_file_is_named(tmp_path):
    assert files().public_examples() == []
    with pytest.raises(DataError, match=r"cannot be read.*absent\.txt"):
        files(public_text=str(tmp_path / "absent.txt")).public_examples()


def test_held_out_texts_are_checked_against_the_labels(tmp_path):
    assert files().held_out() == []
    path = tmp_path / "test.csv"
    path.write_text("text,label\nx,a\ny,b\n")
    assert [record.label for record in files(test=str(path)).held_out()] == ["a", "b"]
    path.write_text("text,label\nx,a\ny,c\n")
    with pytest.raises(DataError, match=r"unknown label.*test\.csv:3"):
        files(test=str(path)).held_out()


def test_the_private_file_is_never_read_here(tmp_path):
    source = files(train=str(tmp_path / "absent.csv"))
    source.task()
    assert source.held_out() == []


@pytest.mark.parametrize("demo", [DemoNotes, DemoMessages])
def test_a_demo_without_labels_has_the_same_texts(demo):
    plain, alone = demo(test_records=9), demo(test_records=9, labels="unlabelled")
    assert alone.task() == plain.task().without_labels()
    for mine, theirs in ((alone.held_out(), plain.held_out()), (alone.private(1, 4), plain.private(1, 4))):
        assert [record.text for record in mine] == [record.text for record in theirs]
        assert {record.label for record in mine} == {UNLABELLED}
    assert alone.public_examples() == plain.public_examples()
    with pytest.raises(ConfigError, match="unlabelled"):
        demo(labels="none")


def test_files_without_labels_need_no_such_column(tmp_path):
    path = tmp_path / "test.csv"
    path.write_text("text\none\ntwo\n")
    source = files(labels="unlabelled", test=str(path))
    assert [record.text for record in source.held_out()] == ["one", "two"]
    assert not source.task().labelled
    with pytest.raises(DataError, match="no column label"):
        files(test=str(path)).held_out()

"""What a file seems to be, and what may be shown of its header."""

import gzip

import pytest

from common.errors import DataError
from common.labelled_files import named_by, read_records, read_texts
from tests.support.record_files import SECRET, refused

RECORD = f"{SECRET} has a cough"


@pytest.fixture
def error_about(tmp_path):
    """A function that returns the error about a file with this content, which names the file."""

    def of(name, content, **how):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        error = refused(path, **how)
        assert str(path) in str(error)
        return error

    return of


@pytest.mark.parametrize(
    ("header", "visible", "hidden"),
    [
        ("review,sentiment", "review, sentiment", "2 columns"),
        ("id,text", "id, text", "2 columns"),
        ("text,text,label", "text, text, label", "3 columns"),
        ("influenza", "influenza", "1 column"),
        (f"{RECORD},flu", "2 columns", "2 columns"),
        (f"{RECORD};flu", "2 columns", "2 columns"),
        ("x" * 31 + ",flu", "2 columns", "2 columns"),
    ],
)
def test_names_are_shown_only_where_allowed_and_if_they_look_like_names(error_about, header, visible, hidden):
    assert visible in error_about("a.csv", f"{header}\nx,y\n", show_names=True).got
    private = error_about("a.csv", f"{header}\nx,y\n")
    assert hidden in private.got
    assert "first line" in private.do
    assert not any(name in str(private) for name in ("review", "sentiment", "id,", "influenza", "flu"))


@pytest.mark.parametrize("header", ["Text,LABEL", "Text;LABEL"])
def test_a_header_in_capitals_is_told_to_be_written_in_lower_case(error_about, header):
    assert "lower case" in error_about("a.csv", f"{header}\nx,y\n").do


@pytest.mark.parametrize(
    ("name", "content", "got", "advice"),
    [
        ("a.xlsx", b"", ".xlsx", "CSV"),
        ("a.csv.gz", b"", ".gz", "Unpack"),
        ("a.tsv", b"", ".tsv", ".csv"),
        ("a.arrow", b"", ".arrow", "CSV"),
        ("a.xml", b"", ".xml", "JSON"),
        ("a.txt", b"x", ".txt", "label"),
        ("a.csv", b"PAR1", "Parquet", ".parquet"),
        ("a.csv", b"PK\x03\x04xl", "Excel", "CSV"),
        ("a.csv", gzip.compress(b"text,label", mtime=0), "gzip", "Unpack"),
        ("a.csv", "text,label".encode("utf-16"), "UTF-16", "UTF-8"),
        ("a.csv", "text,label".encode("utf-16-le"), "UTF-16", "UTF-8"),
        ("a.csv", "text,label\ncaf\u00e9,a".encode("latin-1"), "Latin-1", "UTF-8"),
    ],
)
def test_another_format_is_named_with_what_to_do(error_about, name, content, got, advice):
    error = error_about(name, content)
    assert got in error.got
    assert advice in error.do


def test_a_public_text_may_be_a_txt(error_about):
    assert ".txt" in error_about("a", "x", read=read_texts).expected


def test_the_setting_that_named_the_file_is_said_first(tmp_path):
    with pytest.raises(DataError, match=rf"^task\.test: .*; at {tmp_path}\. Give a file"), named_by("task.test"):
        read_records(tmp_path)

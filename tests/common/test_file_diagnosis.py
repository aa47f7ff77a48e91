"""What a file seems to be, and what may be shown of its header."""

import gzip

import pytest

from common.errors import DataError
from common.labelled_files import named_by, read_records, read_texts

RECORD = "Zebulon has a cough"
"""Stands for private text: it must not reach a message."""


def said(tmp_path, name, content, *, reader=read_records, **how):
    """The message about a file with this content."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        reader(path, **how)
    message = str(caught.value)
    assert str(path) in message
    assert RECORD not in message
    assert "Zebulon" not in message
    return message


@pytest.mark.parametrize(
    ("header", "seems"),
    [
        ("Text,LABEL", "lower case"),
        ("Text;LABEL", "lower case"),
        ("review,sentiment", "first line"),
        (f"{RECORD};flu", "first line"),
        (f"{RECORD},flu", "first line"),
        ("text,text,label", "first line"),
    ],
)
@pytest.mark.parametrize("show_names", [False, True])
def test_a_header_without_the_columns_says_what_to_do(tmp_path, header, seems, show_names):
    assert seems in said(tmp_path, "a.csv", f"{header}\nx,y\n", show_names=show_names)


@pytest.mark.parametrize(
    ("header", "visible", "hidden"),
    [
        ("review,sentiment", "review, sentiment,", "2 columns"),
        ("id,text", "id, text,", "2 columns"),
        ("text,text,label", "text, text, label,", "3 columns"),
        ("influenza", "influenza,", "1 column"),
        (f"{RECORD},flu", "2 columns", "2 columns"),
        ("x" * 31 + ",flu", "2 columns", "2 columns"),
    ],
)
def test_names_are_shown_only_where_allowed_and_if_they_look_like_names(tmp_path, header, visible, hidden):
    assert visible in said(tmp_path, "a.csv", f"{header}\nx,y\n", show_names=True)
    private = said(tmp_path, "a.csv", f"{header}\nx,y\n")
    assert hidden in private
    assert not any(name in private for name in ("review", "sentiment", "id,", "influenza", "flu"))


def test_json_lines_say_which_field_is_missing(tmp_path):
    content = '{"review": "x", "label": "a"}'
    assert "text and" in (message := said(tmp_path, "a.jsonl", content))
    assert "2 fields" in message
    assert "review, label" in said(tmp_path, "a.jsonl", content, show_names=True)


@pytest.mark.parametrize(
    ("name", "content", "got", "advice"),
    [
        ("a.xlsx", b"", "got .xlsx", "CSV"),
        ("a.csv.gz", b"", "got .gz", "Unpack"),
        ("a.tsv", b"", "got .tsv", ".csv"),
        ("a.arrow", b"", "got .arrow", "CSV"),
        ("a.xml", b"", "got .xml", "JSON"),
        ("a.csv", b"PAR1", "Parquet", ".parquet"),
        ("a.csv", b"PK\x03\x04xl", "Excel", "CSV"),
        ("a.csv", gzip.compress(b"text,label", mtime=0), "gzip", "Unpack"),
        ("a.csv", "text,label".encode("utf-16"), "UTF-16", "UTF-8"),
        ("a.csv", "text,label".encode("utf-16-le"), "UTF-16", "UTF-8"),
        ("a.csv", "text,label\ncaf\u00e9,a".encode("latin-1"), "Latin-1", "UTF-8"),
    ],
)
def test_another_format_is_named_with_what_to_do(tmp_path, name, content, got, advice):
    message = said(tmp_path, name, content)
    assert got in message
    assert advice in message


def test_a_public_text_may_be_a_txt_and_records_may_not(tmp_path):
    assert "got .txt" in said(tmp_path, "a.txt", "x")
    assert ".txt" in said(tmp_path, "a", "x", reader=read_texts)


def test_the_setting_that_named_the_file_is_said_first_and_the_advice_stays(tmp_path):
    with pytest.raises(DataError) as caught, named_by("task.test"):
        read_records(tmp_path)
    assert str(caught.value).startswith("task.test: ")
    assert str(caught.value).endswith(f"; at {tmp_path}")

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
        ("Text,LABEL", "Write text and label in lower case."),
        ("Text;LABEL", "Write text and label in lower case."),
        ("review,sentiment", "The first line has to name the columns, among them text and label."),
        (f"{RECORD};flu", "The first line has to name the columns"),
        (f"{RECORD},flu", "The first line has to name the columns"),
        ("text,text,label", "The first line has to name the columns"),
    ],
)
@pytest.mark.parametrize("show_names", [False, True])
def test_a_header_without_the_columns_says_what_to_do(tmp_path, header, seems, show_names):
    assert seems in said(tmp_path, "a.csv", f"{header}\nx,y\n", show_names=show_names)


@pytest.mark.parametrize(
    ("header", "visible", "hidden"),
    [
        ("review,sentiment", "got the columns review, sentiment, without text, without label;", "got 2 columns,"),
        ("id,text", "got the columns id, text, without label;", "got 2 columns, without label;"),
        ("text,text,label", "got the columns text, text, label, with text 2 times;", "got 3 columns, with text 2"),
        ("influenza", "got the column influenza, without", "got 1 column, without text, without label;"),
        (f"{RECORD},flu", "got 2 columns, without text, without label;", "got 2 columns, without"),
        ("x" * 31 + ",flu", "got 2 columns, without text, without label;", "got 2 columns, without"),
    ],
)
def test_names_are_shown_only_where_allowed_and_if_they_look_like_names(tmp_path, header, visible, hidden):
    assert visible in said(tmp_path, "a.csv", f"{header}\nx,y\n", show_names=True)
    private = said(tmp_path, "a.csv", f"{header}\nx,y\n")
    assert hidden in private
    assert not any(name in private for name in ("review", "sentiment", "id,", "influenza", "flu"))


def test_json_lines_say_which_field_is_missing(tmp_path):
    content = '{"review": "x", "label": "a"}'
    assert "expected an object with text and label" in (message := said(tmp_path, "a.jsonl", content))
    assert "got 2 fields, without text;" in message
    assert message.endswith("Each line needs these fields, among them text and label.")
    assert "the fields review, label, without text;" in said(tmp_path, "a.jsonl", content, show_names=True)


@pytest.mark.parametrize(
    ("name", "content", "got", "advice"),
    [
        ("a.xlsx", b"", "got .xlsx", "Export the sheet as CSV"),
        ("a.csv.gz", b"", "got .gz", "Unpack it first."),
        ("a.tsv", b"", "got .tsv", "Name it .csv: tabs are read too."),
        ("a.arrow", b"", "got .arrow", "Export it as CSV"),
        ("a.xml", b"", "got .xml", "FHIR is read as JSON"),
        ("a.csv", b"PAR1", "got a Parquet file", "Name it .parquet."),
        ("a.csv", b"PK\x03\x04xl", "got an Excel file or another ZIP archive", "Export the sheet as CSV"),
        ("a.csv", gzip.compress(b"text,label", mtime=0), "got a gzip archive", "Unpack it first."),
        ("a.csv", "text,label".encode("utf-16"), "got UTF-16", "Save it as UTF-8."),
        ("a.csv", "text,label".encode("utf-16-le"), "got UTF-16, or no text at all", "Save it as UTF-8."),
        (
            "a.csv",
            "text,label\ncaf\u00e9,a".encode("latin-1"),
            "such as Latin-1 or Windows-1252",
            "in Excel as CSV UTF-8",
        ),
    ],
)
def test_another_format_is_named_with_what_to_do(tmp_path, name, content, got, advice):
    message = said(tmp_path, name, content)
    assert got in message
    assert advice in message


def test_a_public_text_may_be_a_txt_and_records_may_not(tmp_path):
    assert "expected a name that ends in .csv or .jsonl or .parquet or .json or .ndjson; got .txt" in said(
        tmp_path, "a.txt", "x"
    )
    assert "ends in .txt or .csv or .jsonl or .parquet or .json or .ndjson; got no ending" in said(
        tmp_path, "a", "x", reader=read_texts
    )


def test_the_setting_that_named_the_file_is_said_first_and_the_advice_stays(tmp_path):
    with pytest.raises(DataError) as caught, named_by("task.test"):
        read_records(tmp_path)
    assert str(caught.value) == f"task.test: the file cannot be read; expected a file; got a folder; at {tmp_path}"

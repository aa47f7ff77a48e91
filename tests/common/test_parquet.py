"""Records from Parquet, with the messages of the other formats; and what to do without its library."""

import pytest

from common import tables
from common.domain import Record
from common.errors import MissingPackageError
from common.file_diagnosis import advice_on_folder
from common.labelled_files import check_ending, read_records, read_texts, read_topics
from tests.support.record_files import SECRET, refused


@pytest.fixture
def write(tmp_path):
    import pyarrow as pa
    from pyarrow.parquet import write_table

    def to(name, **columns):
        write_table(pa.table(columns), tmp_path / name)
        return tmp_path / name

    return to


def test_rows_are_read_with_their_users_and_without_further_columns(write):
    path = write("a.PARQUET", user=["u1", "u2"], id=[1, 2], label=["a", "b"], text=["caf\u00e9", "x"])
    assert read_records(path) == [Record("caf\u00e9", "a", "u1"), Record("x", "b", "u2")]
    assert read_texts(path) == ["caf\u00e9", "x"]
    assert read_topics(path) == [("caf\u00e9", "a"), ("x", "b")]


def test_categories_are_texts_and_a_file_may_be_empty_where_that_is_allowed(write):
    import pyarrow as pa

    path = write("a.parquet", label=pa.array(["a", "b", "a"]).dictionary_encode(), text=["x", "y", "z"])
    assert [record.label for record in read_records(path)] == ["a", "b", "a"]
    path = write("a.parquet", text=pa.array([], pa.string()), label=pa.array([], pa.string()))
    assert read_records(path, may_be_empty=True) == []
    refused(path, "no data")


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"text": [SECRET], "label": [3]}, "wrong label; .*got a number; at .*row 1"),
        ({"text": ["x", None], "label": ["a", "b"]}, "wrong text; .*got null; at .*row 2$"),
        ({"text": ["x", "y"], "label": ["a", None]}, "wrong label; .*got null; at .*row 2.*keep_default_na=False"),
        ({"text": [SECRET], "label": [{"a": 1}]}, "got another type"),
        ({"text": ["x", SECRET], "label": ["a", " "]}, "empty label; at .*row 2"),
        ({SECRET: ["x"], "label": ["a"]}, "no column text; got 2 columns"),
        ({"text": [b"x", SECRET.encode()], "label": ["a", "a"]}, "got another type"),
    ],
)
def test_messages_have_the_row_and_never_its_content(write, columns, what):
    refused(write("a.parquet", **columns), what)


def test_a_damaged_file_is_not_quoted(write, tmp_path):
    import pyarrow as pa

    no_unicode = pa.array([f"{SECRET} caf\u00e9".encode("latin-1")], pa.binary()).view(pa.string())
    (tmp_path / "b.parquet").write_text(SECRET)
    for path in (write("a.parquet", text=no_unicode, label=["a"]), tmp_path / "b.parquet"):
        assert refused(path, "pyarrow reads").__context__ is None
    refused(tmp_path / "none.parquet")


def test_files_that_were_joined_are_refused(write, tmp_path):
    one, other = (write(f"{name}.parquet", text=[name], label=["x"]).read_bytes() for name in "ab")
    (tmp_path / "both.parquet").write_bytes(one + other)  # of which pyarrow would read the first alone
    refused(tmp_path / "both.parquet", "several")


def test_without_pyarrow_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("common.system.extras.find_spec", lambda package: None)
    for refusing in (tables.check_parquet_installed, lambda: check_ending(tmp_path / "a.parquet")):
        with pytest.raises(MissingPackageError, match=r"EXTRAS=\[parquet\]"):
            refusing()


@pytest.mark.parametrize("name", ["dataset_info.json", "dataset_dict.json"])
def test_a_folder_of_the_library_datasets_says_how_to_save_it(name, tmp_path):
    assert advice_on_folder(tmp_path) is None
    (tmp_path / name).touch()
    refused(tmp_path, r"a folder;")

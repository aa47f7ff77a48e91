"""Files of records with spoilt names of columns, or of any bytes: they are read as they are meant, or refused."""

import json
import traceback

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.parquet import write_table

from common import labelled_files
from common.errors import DataError
from common.labelled_files import read_records, read_texts, read_topics
from tests.support.record_files import SECRET, refused
from tests.support.spellings import UNSEEN


def csv_of(columns):
    names, values = zip(*columns, strict=True)
    return "\n".join(",".join(row) for row in (names, *zip(*values, strict=True))).encode()


def json_lines_of(columns):
    rows = zip(*(values for _, values in columns), strict=True)
    pairs = [
        ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for (name, _), value in zip(columns, row, strict=True))
        for row in rows
    ]
    return "\n".join(f"{{{line}}}" for line in pairs).encode()


def parquet_of(columns):
    sink = pa.BufferOutputStream()
    write_table(pa.table([pa.array(values) for _, values in columns], names=[name for name, _ in columns]), sink)
    return sink.getvalue().to_pybytes()


TABLES = {".csv": csv_of, ".jsonl": json_lines_of, ".parquet": parquet_of}
FHIR = {".json", ".ndjson"}
"""Endings of files whose elements FHIR names; a key that occurs twice is tested in `test_fhir.py`."""
READERS = {
    "records": (read_records, [("text", "label", "user"), ("text", "labels", "user")]),
    "records without labels": (lambda path: read_records(path, labelled=False), [("text", "user")]),
    "texts": (read_texts, [("text",)]),
    "topics": (read_topics, [("text", "topic", "label")]),
}
"""Each reader, and all columns that it reads, in one form or another."""
SPOILT = {
    "upper case": lambda name: [name.upper()],
    "spaces": lambda name: [f" {name} "],
    "full width": lambda name: [name[0].translate({ord(name[0]): ord(name[0]) + 0xFEE0}) + name[1:]],
    "a mark of byte order": lambda name: ["\ufeff" + name],
    "twice": lambda name: [name, name],
    "twice, once in upper case": lambda name: [name, name.title()],
    "twice, once with spaces": lambda name: [f"{name} ", name],
}


def read_or_refused(read, path):
    """Return what is read, and None; or None, and the error that the project's own code raised."""
    try:
        return read(path), None
    except DataError as error:
        return None, error


def test_each_ending_is_tested_here():
    assert TABLES.keys() | FHIR == set(labelled_files._ENDINGS)


@pytest.mark.parametrize("spoilt", SPOILT)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("ending", TABLES)
def test_a_column_with_a_spoilt_name_is_refused_or_read_as_it_is_meant(ending, reader, spoilt, tmp_path):
    (read, columns_read), path = READERS[reader], tmp_path / f"a{ending}"
    for names in columns_read:
        sound = [(name, [f"{name} {SECRET}", f"{name} two"]) for name in names]
        path.write_bytes(TABLES[ending](sound))
        meant = read(path)
        assert len(meant) == 2
        for place, (name, values) in enumerate(sound):
            columns = [(written, values) for written in SPOILT[spoilt](name)]
            path.write_bytes(TABLES[ending]([*sound[:place], *columns, *sound[place + 1 :]]))
            rows, error = read_or_refused(read, path)
            assert (rows == meant) is (error is None)
            assert SECRET not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("column", ["text", "label", "labels", "user"])
@pytest.mark.parametrize("ending", TABLES)
def test_a_value_that_cannot_be_seen_is_empty(ending, column, tmp_path):
    names = {"text", "label", "user"} if column in {"text", "user"} else {"text", column}
    path = tmp_path / f"a{ending}"
    for unseen in UNSEEN:
        values = {name: unseen if name == column else "x" for name in sorted(names)}
        if ending == ".csv" and unseen in "\r\n":
            continue  # it ends the row
        path.write_bytes(TABLES[ending]([(name, [value]) for name, value in values.items()]))
        refused(path)


TOKENS = (
    *(
        b"text",
        b"label",
        b"labels",
        b"user",
        b"topic",
        b"text,label\n",
        b"text,label,user\r\n",
        b'{"text": "x", "label"',
    ),
    *(b",", b";", b'"', b'""', b"\r", b"\n", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xff", b"\x0c", b"{", b"}", b"[", b"]"),
    *(b":", b"\\ud800", b"\\u0000", b"null", b"NaN", b"1e999", b"9" * 5000, "\u2028".encode(), b"[" * 5000),
)
ANY_LINE = st.lists(st.sampled_from(TOKENS) | st.binary(max_size=4), max_size=3).map(b"".join)
ANY_BYTES = st.builds(bytes.join, st.sampled_from((b"", b"\r", b"\n", b"\r\n")), st.lists(ANY_LINE, max_size=6))
NAMES = ("resourceType", "entry", "resource", "link", "relation", "status", "docStatus", "type", "coding", "code")
NAMES += ("subject", "reference", "identifier", "system", "value", "content", "attachment", "contentType", "data")
NAMES += ("id", "identifier", "masterIdentifier", "relatesTo", "target", "contained", "request", "method", "fullUrl")
NAMES += ("total", "search", "mode")
WORDS = ("replaces", "POST", "include", "history", "Bundle", "DocumentReference", "current", "next", "Patient/7")
WORDS += ("text/plain", "eA==", "", " ")
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=25,
)
DOCUMENT = {
    "resourceType": "DocumentReference",
    "status": "current",
    "type": {"coding": [{"code": "flu"}]},
    "subject": {"reference": "Patient/7"},
    "content": [{"attachment": {"contentType": "text/plain", "data": "eA=="}}],
}
NEW = ("docStatus", "id", "identifier", "masterIdentifier", "relatesTo", "contained")
ANY_DOCUMENT = st.dictionaries(st.sampled_from(sorted({*DOCUMENT, *NEW})), ANY_JSON, max_size=3)


ANY_ENTRY = st.dictionaries(st.sampled_from(("resource", "request", "search", "fullUrl")), ANY_JSON, max_size=3)
ANY_BUNDLE = st.dictionaries(st.sampled_from(("type", "total", "link", "entry")), ANY_JSON, max_size=3)


def check_refused_or_read(path):
    for read, _ in READERS.values():
        rows, error = read_or_refused(read, path)
        assert bool(rows) is (error is None)
        assert not isinstance(getattr(error, "__context__", None), ValueError)


@pytest.mark.parametrize("ending", [*labelled_files._ENDINGS, ".txt"])
@settings(max_examples=150, derandomize=True)
@given(content=ANY_BYTES)
def test_any_bytes_are_read_or_refused(ending, tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / f"any{ending}"
    path.write_bytes(content)
    check_refused_or_read(path)


@settings(max_examples=150, derandomize=True)
@given(value=ANY_JSON | ANY_DOCUMENT.map(lambda changes: DOCUMENT | changes), entry=st.booleans())
def test_any_json_is_read_as_fhir_or_refused(tmp_path_factory, value, entry):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps({"resourceType": "Bundle", "entry": [{"resource": value}]} if entry else value))
    check_refused_or_read(path)


@settings(max_examples=150, derandomize=True)
@given(documents=st.lists(ANY_DOCUMENT, max_size=3), changes=ANY_ENTRY, around=ANY_BUNDLE)
def test_any_bundle_is_read_as_fhir_or_refused(tmp_path_factory, documents, changes, around):
    path = tmp_path_factory.getbasetemp() / "any.json"
    entries = [{"resource": DOCUMENT | document} | changes for document in documents]
    path.write_text(json.dumps({"resourceType": "Bundle", "entry": entries} | around))
    check_refused_or_read(path)


@settings(max_examples=150, derandomize=True)
@given(places=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=3))
def test_damaged_parquet_is_read_or_refused(tmp_path_factory, places):
    content = bytearray(parquet_of([("text", ["x", "y"]), ("label", ["a", "b"]), ("user", ["u", "v"])]))
    for place, byte in places:
        content[place % len(content)] = byte
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    path.write_bytes(content)
    check_refused_or_read(path)


WIDE = pa.py_buffer(b"\x7f" * 16)
"""The largest number of each width, or one near to it."""
FIXED = [
    *(pa.bool_(), pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float64(), pa.decimal128(38, 2)),
    *(pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("ns"), pa.timestamp("us", tz="No/Where"), pa.binary(2)),
    *(made(unit) for made in (pa.timestamp, pa.duration) for unit in ("s", "ms", "us", "ns")),
]
NESTED = {
    "list": lambda inner: pa.ListArray.from_arrays([0, 1], inner),
    "struct": lambda inner: pa.StructArray.from_arrays([inner], names=["a"]),
    "categories": lambda inner: pa.DictionaryArray.from_arrays(pa.array([0]), inner),
    "plain": lambda inner: inner,
}


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("kind", FIXED, ids=str)
def test_values_of_any_type_are_refused_in_parquet(kind, nested, tmp_path):
    extreme = pa.Array.from_buffers(kind, 1, [None, WIDE])
    for column in ("text", "label", "labels", "user"):
        table = {"text": pa.array(["x"]), "label": pa.array(["a"])} if column != "labels" else {"text": pa.array(["x"])}
        path = tmp_path / "a.parquet"
        try:
            write_table(pa.table(table | {column: NESTED[nested](extreme)}), path)
        except (pa.ArrowException, ValueError):
            pytest.skip("Parquet has no such type")
        refused(path)

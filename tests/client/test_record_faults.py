"""The faults of files of records: each fault is built here in each kind of file, and the result is compared.

read       the records are what the file means
reported   so they are, and a line of `init` or `check` has the finding
refused    nothing is read, and the message has the place and quotes nothing
-          the fault cannot occur in this kind of file
"""

import base64
import csv
import io
import json
import sqlite3
import traceback
from collections import Counter
from contextlib import closing

import pyarrow as pa
from pyarrow.parquet import write_table

from client import database
from client.deploy.check_advice import advice_on_labels, advice_on_users
from client.records import load_records
from common.errors import CaucusError
from tests.support.databases import definition

SECRET = "Zebulon"
"""A word of private text, which no message may hold."""
ONE, TWO = (
    {"text": f"{SECRET} has a cough.", "label": "flu", "user": "Patient/1"},
    {"text": "K\u00e4se.", "label": "cold", "user": "Patient/2"},
)


def csv_of(rows, separator=",", encoding="utf-8"):
    file = io.StringIO()
    names = list(rows[0]) if rows else ["text", "label", "user"]
    csv.writer(file, delimiter=separator).writerows([names, *(row.values() for row in rows)])
    return file.getvalue().encode(encoding)


def json_lines_of(rows, encoding="utf-8"):
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode(encoding) + b"\n"


def parquet_of(rows, encoding="utf-8"):
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows)
    if encoding != "utf-8":  # as a program writes it that does not look
        texts = pa.array([row["text"].encode(encoding) for row in rows], pa.binary()).view(pa.string())
        table = table.set_column(0, "text", texts)
    write_table(table, sink)
    return sink.getvalue().to_pybytes()


def document(row, number=0, encoding="utf-8", **changes):
    data = base64.b64encode(row["text"].encode(encoding)).decode()
    return {
        "resourceType": "DocumentReference",
        "id": str(number),
        "status": "current",
        "type": {"coding": [{"code": row["label"]}]},
        "subject": {"reference": row["user"]} if row["user"] else {},
        "content": [{"attachment": {"contentType": "text/plain", "data": data}}],
    } | changes


def documents(rows, encoding="utf-8"):
    return [document(row, number, encoding) for number, row in enumerate(rows)]


def bundle_of(resources):
    entries = [{"resource": resource} for resource in resources]
    return json.dumps({"resourceType": "Bundle", "type": "collection", "entry": entries}).encode()


def bulk_of(resources):
    return b"\n".join(json.dumps(resource).encode() for resource in resources) + b"\n"


def sql_of(rows, encoding="utf-8"):
    """Return the rows for `sql_file`; a text in another encoding is one that a program wrote without a look."""
    return rows, encoding


def sql_file(folder, rows, encoding, query="SELECT * FROM notes"):
    with closing(sqlite3.connect(folder / "notes.db")) as connection, connection:
        connection.execute(f"CREATE TABLE notes ({', '.join(rows[0])})".replace("user", '"user"'))
        values = [{**row, "text": row["text"].encode(encoding)} if encoding != "utf-8" else row for row in rows]
        connection.executemany(
            f"INSERT INTO notes VALUES ({', '.join('?' * len(rows[0]))})", [[*row.values()] for row in values]
        )
        connection.execute("UPDATE notes SET text = CAST(text AS TEXT)")
    return definition(folder, url="sqlite:///notes.db", query=query)


WRITERS = {
    ".csv": csv_of,
    ".jsonl": json_lines_of,
    ".parquet": parquet_of,
    ".json": lambda rows, **how: bundle_of(documents(rows, **how)),
    ".ndjson": lambda rows, **how: bulk_of(documents(rows, **how)),
    ".sql.yaml": sql_of,
}
FHIR, TABLES = (".json", ".ndjson"), (".csv", ".jsonl", ".parquet", ".sql.yaml")


def rows_with(one, two=(), *, kinds=tuple(WRITERS), **how):
    """Return, for each kind, the content with these values in the two rows, and the rows that are meant."""
    rows = [ONE | one, TWO | dict(two)]
    return {kind: (WRITERS[kind](rows, **how), rows) for kind in kinds}


def fhir_with(*resources, meant=(ONE, TWO), kinds=FHIR):
    return {kind: ({".json": bundle_of, ".ndjson": bulk_of}[kind](resources), [*meant]) for kind in kinds}


def joined():
    """Return two files of each kind, one behind the other, and the rows of both."""
    more = [TWO | {"text": "Fever."}, ONE | {"text": "Pain."}]
    both = [WRITERS[kind]([ONE, TWO]) + WRITERS[kind](more) for kind in (".csv", ".jsonl", ".parquet", ".json")]
    bulk = bulk_of([*documents([ONE, TWO]), *(document(row, number) for number, row in enumerate(more, start=2))])
    return {kind: (content, [ONE, TWO, *more]) for kind, content in zip([*WRITERS][:5], [*both, bulk], strict=True)}


def twice():
    """Return files with one row twice: in FHIR it is one document, and elsewhere two records that are equal."""
    rows = [ONE, TWO, ONE]
    return {kind: (WRITERS[kind](rows), rows) for kind in TABLES} | fhir_with(*documents([ONE, TWO]), document(ONE))


def other_columns():
    """Return tables whose column `label` is there twice, the second time in capitals."""
    rows = [row | {"LABEL": row["label"]} for row in (ONE, TWO)]
    query = 'SELECT text, label, "user", label AS LABEL FROM notes'
    repeated = json.dumps(document(ONE)).replace('"status"', '"id": "0", "status"').encode()
    return {
        **{kind: (WRITERS[kind](rows), rows) for kind in (".csv", ".jsonl", ".parquet")},
        **dict.fromkeys(FHIR, (repeated, [ONE])),
        ".sql.yaml": (([ONE, TWO], "utf-8", query), rows),
    }


FEVER = [document(ONE), document(ONE | {"text": "Fever."})]
PDF = {"content": [{"attachment": {"contentType": "application/pdf", "data": "JVBERi0="}}]}
SEVERAL = [document(ONE)["content"][0], *PDF["content"], document(TWO)["content"][0]]
BOTH = ONE | {"text": f"{ONE['text']}\n\n{TWO['text']}"}
PAGED = json.dumps(json.loads(bundle_of(documents([ONE]))) | {"total": 2}).encode()
DELETED = json.dumps({"resourceType": "Bundle", "entry": [{"request": {"method": "DELETE", "url": "D/1"}}]}).encode()
FAULTS = {
    "no fault": rows_with({}),
    "a label `1E50`, `NA` or `None`": rows_with({"label": "1E50"}, {"label": "NA"}),
    "a label that is a number": rows_with({"label": 7}, {"label": 8}, kinds=[*WRITERS][1:]),
    "a label that is missing": rows_with({"label": None}),
    "a user in some rows only": rows_with({"user": None}),
    "a text that is empty": rows_with({"text": " "}),
    "NUL in a text": rows_with({"text": f"{SECRET}\0" + "x" * 300}),
    "a line end in a label or a user": rows_with({"label": f"{SECRET}\nflu"}),
    "one label for all records": rows_with({}, {"label": "flu"}),
    "labels or users that differ in case": rows_with({"label": "Cold"}),
    "spaces at the end of a label": rows_with({"label": "flu "}),
    "one user for all records": rows_with({}, {"user": "Patient/1"}),
    "a text in RTF, HTML, XML or base64": rows_with({"text": "<b>Zebulon</b> has a cough."}),
    "escaped characters, for example `&amp;`": rows_with({"text": "Zebulon &amp; a cough."}),
    "another encoding, for example Windows-1252": rows_with({}, encoding="cp1252"),
    "semicolons or tabs": {".csv": (csv_of([ONE, TWO], separator=";"), [ONE, TWO])},
    "two files joined": joined(),
    "a column twice, or in another spelling": other_columns(),
    "one row twice": twice(),
    "two versions of one document": fhir_with(*FEVER),
    "a document that is superseded or in error": fhir_with(
        document(ONE), document(TWO, 1, status="superseded"), meant=[ONE]
    ),
    "one page of several, or fewer than `total`": {".json": (PAGED, [ONE])},
    "a history or a deletion": dict.fromkeys(FHIR, (DELETED, [])),
    "a patient in two forms, or on two servers": fhir_with(
        document(ONE), document(TWO, 1, subject={"identifier": {"value": "2"}})
    ),
    "several plain texts in a document": fhir_with(document(ONE, content=SEVERAL), document(TWO, 1), meant=[BOTH, TWO]),
    "only a PDF, or an address": fhir_with(document(ONE, **PDF)),
}
"""By fault, and kind of file in which it can occur: the content of the file, and the rows that it means."""

RESULTS = """\
no fault: read
a label `1E50`, `NA` or `None`: read
a label that is a number: refused, cannot occur in `.csv`
a label that is missing: refused
a user in some rows only: refused
a text that is empty: refused
NUL in a text: refused
a line end in a label or a user: refused
one label for all records: reported
labels or users that differ in case: reported
spaces at the end of a label: reported, read in `.sql.yaml`
one user for all records: reported
a text in RTF, HTML, XML or base64: reported, refused in `.json` and `.ndjson`
escaped characters, for example `&amp;`: reported
another encoding, for example Windows-1252: refused
semicolons or tabs: reported, only in `.csv`
two files joined: refused, read in `.jsonl` and `.ndjson`, cannot occur in `.sql.yaml`
a column twice, or in another spelling: refused
one row twice: read, reported in `.json` and `.ndjson`
two versions of one document: refused, only in `.json` and `.ndjson`
a document that is superseded or in error: reported, only in `.json` and `.ndjson`
one page of several, or fewer than `total`: refused, only in `.json`
a history or a deletion: refused, only in `.json` and `.ndjson`
a patient in two forms, or on two servers: refused, only in `.json` and `.ndjson`
several plain texts in a document: reported, only in `.json` and `.ndjson`
only a PDF, or an address: refused, only in `.json` and `.ndjson`
"""
"""The result of each fault. Reported records are read, and `init` or `check` prints the finding. If one is refused,
nothing is read."""


def outcome(fault, kind, folder):
    """Build a fault in a kind of file, and return the result."""
    if kind not in FAULTS[fault]:
        return "-"
    content, rows = FAULTS[fault][kind]
    folder.mkdir()
    remarks, refusal = [], None
    try:
        if kind == database.ENDING:
            records = database.read_database(sql_file(folder, *content), labelled=True, remarks=remarks)
        else:
            path = folder / f"notes{kind}"
            path.write_bytes(content)
            records = load_records(path, may_be_empty=True, remarks=remarks)
    except CaucusError as error:
        refusal = "".join(traceback.format_exception(error))
    if refusal:
        assert SECRET not in refusal
        return "refused"
    meant = [row | {"label": row["label"].rstrip()} for row in rows] if kind == database.ENDING else rows
    assert [{"text": one.text, "label": one.label, "user": one.user} for one in records] == meant
    told = "\n".join([*remarks, *advice_on_labels(records), *advice_on_users(records, "sample")])
    assert SECRET not in told
    return "reported" if told else "read"


def rule(outcomes):
    """Return the result in most kinds of files, and the kinds that differ."""
    possible = {kind: found for kind, found in outcomes.items() if found != "-"}
    usual = Counter(possible.values()).most_common(1)[0][0]
    others = dict.fromkeys(found for found in possible.values() if found != usual)
    differing = [f"{found} in {kinds(kind for kind in possible if possible[kind] == found)}" for found in others]
    if len(possible) <= len(FHIR):
        differing.append(f"only in {kinds(possible)}")
    elif impossible := [kind for kind in outcomes if kind not in possible]:
        differing.append(f"cannot occur in {kinds(impossible)}")
    return ", ".join([usual, *differing])


def kinds(names):
    return " and ".join(f"`{name}`" for name in names)


def test_each_fault_has_its_result_in_each_kind_of_file(tmp_path):
    lines = [
        f"{fault}: {rule({kind: outcome(fault, kind, tmp_path / f'{number}{kind}') for kind in WRITERS})}\n"
        for number, fault in enumerate(FAULTS)
    ]
    assert "".join(lines) == RESULTS

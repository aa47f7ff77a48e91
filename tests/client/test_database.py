"""Records from a database: each value is right or refused, and no message has a value, a url or a password."""

import re
import ssl
import traceback

import pytest

from client import database
from client.records import load_records as read_file
from common.domain import UNLABELLED, Record
from common.errors import CaucusError, ConfigError, MissingPackageError
from server.deploy.authority import make_authority, make_certificate
from tests.support.databases import PASSWORD, QUERY, definition, postgresql, program, sqlite_file

SECRET = "Zebulon"
"""A word of private text, which no message may hold."""
RECORDS = [Record("Wet cough: 100% of 'x' ?", "flu", "p1"), Record("K\u00e4se; :x", "1E50", "p2")]
TABLE = (
    "CREATE TABLE notes (id INTEGER, text TEXT, label CHAR(8), patient TEXT, number INTEGER, raw {bytes}, half REAL)"
)
ROWS = [
    "INSERT INTO notes VALUES (1, 'Wet cough: 100% of ''x'' ?', 'flu     ', 'p1', 7, {literal}, 0.5)",
    "INSERT INTO notes VALUES (2, 'K\u00e4se; :x', '1E50', 'p2', 8, {literal}, 0.5)",
]
SELECTED = "SELECT text, label FROM notes ORDER BY id"
QUERIES = {
    "text, label and user": (QUERY, None),
    "a like and a colon": ("SELECT text, label FROM notes WHERE text LIKE '%: 100\\%%' ESCAPE '\\'", None),
    "labels with semicolons": ("SELECT text, label || '; cold' AS labels FROM notes", None),
    "padded labels and users": ("SELECT text, label || '  ' AS label, patient || ' ' AS \"user\" FROM notes", None),
    "null as text": ("SELECT NULL AS text, label FROM notes", "wrong text; .*got null.*IS NOT NULL"),
    "null as label": ("SELECT text, NULL AS label FROM notes", "wrong label; .*got null.*row 1"),
    "some users": (
        'SELECT text, label, CASE WHEN id = 1 THEN patient END AS "user" FROM notes ORDER BY id',
        "wrong user; .*got null.*row 2",
    ),
    "a number as label": (
        "SELECT text, number AS label FROM notes",
        r"wrong label; .*got a number.*CAST\(\.\.\. AS text\)",
    ),
    "a fraction as user": ('SELECT text, label, half AS "user" FROM notes', "wrong user; .*got a number"),
    "bytes as text": ("SELECT raw AS text, label FROM notes", "wrong text; .*got bytes, or a text in another encoding"),
    "an empty label": ("SELECT text, '  ' AS label FROM notes", "empty label; at .*row 1"),
    "a line end in a label": ("SELECT text, 'a\nb' AS label FROM notes", "broken label; .*row 1"),
    "no label": ("SELECT text FROM notes", "there is no column label"),
    "a label twice": ("SELECT text, label, label FROM notes", "2 columns named label"),
    "another spelling": ('SELECT text, label, patient AS "User" FROM notes', "another spelling"),
    "no such table": (f"SELECT text, label FROM {SECRET}", "got a query that is malformed, or that names what"),
    "malformed": (f"SELEC {SECRET}", "got a query that is malformed, or that names what"),
    "a deletion": ("DELETE FROM notes", "got a query that writes"),
    "an insertion": (f"INSERT INTO notes (text) VALUES ('{SECRET}')", "got a query that writes"),
    "a new table": ("CREATE TABLE other (text TEXT)", "got a query that writes"),
}
"""Queries of both kinds of databases, and what is said of each; None if its rows are read."""


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL with the same rows, and two databases in other encodings."""
    if not program("initdb"):
        pytest.skip("no PostgreSQL")
    with postgresql() as running:
        password = PASSWORD.replace("'", "''")
        running.execute(f"CREATE ROLE reader LOGIN PASSWORD '{password}'", TABLE.format(bytes="BYTEA"))
        running.execute(*(row.format(literal="'\\xe4'") for row in ROWS), "GRANT ALL ON notes TO reader")
        for name, text in (("SQL_ASCII", "E'K\\xe4se'"), ("LATIN1", "convert_from('\\x4be47365', 'LATIN1')")):
            options = f"TEMPLATE template0 ENCODING '{name}' LC_COLLATE 'C' LC_CTYPE 'C'"
            running.execute(f"CREATE DATABASE {name.lower()} {options}")
            notes = f"CREATE TABLE notes AS SELECT {text}::text AS text, 'flu'::text AS label"
            running.execute(notes, "GRANT SELECT ON notes TO reader", database=name.lower())
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def address(request, tmp_path):
    """The url of a database with two rows, and its password."""
    if request.param == "postgresql":
        port = request.getfixturevalue("server").port
        return {"url": f"postgresql://reader@127.0.0.1:{port}/postgres", "password": PASSWORD}
    sqlite_file(tmp_path, TABLE.format(bytes="BLOB"), *(row.format(literal="x'e4'") for row in ROWS))
    return {"url": "sqlite:///notes.db"}


def load_records(path, *, labelled=True):
    return database.read_database(path, labelled=labelled, remarks=[])


def refused(path, match, **how):
    """The error about a query, after a look at whether it or its context quotes anything."""
    with pytest.raises(CaucusError, match=match) as caught:
        load_records(path, **how)
    told = "".join(traceback.format_exception(caught.value))
    for secret in (SECRET, PASSWORD, "p@ss", "reader@", "Wet cough", "K\u00e4se"):
        assert secret not in told
    assert caught.value.__context__ is None or isinstance(caught.value.__context__, CaucusError)
    return caught.value


@pytest.mark.parametrize("case", QUERIES)
def test_each_query_is_read_rightly_or_refused_and_changes_nothing(case, address, tmp_path):
    query, fault = QUERIES[case]
    path = definition(tmp_path, **address, query=query)
    if fault:
        refused(path, fault)
        assert len(load_records(definition(tmp_path, **address, query=SELECTED))) == 2
        return
    records = load_records(path)
    expected = RECORDS if "user" in query else [Record(record.text, record.label) for record in RECORDS]
    if case == "labels with semicolons":
        expected = [Record(record.text, record.label, more=("cold",)) for record in expected]
    assert records == expected[: len(records)]
    assert len(records) == (1 if "LIKE" in query else 2)


def test_the_rows_are_the_same_when_their_copy_is_read(address, tmp_path):
    everything = QUERY.replace("label,", f"'{UNLABELLED}' AS label,")  # a label like any other here
    for query, labelled in (
        (QUERY, True),
        (everything, True),
        ("SELECT text, label || ';x' AS labels FROM notes", True),
        (QUERY, False),
    ):
        records = load_records(definition(tmp_path, **address, query=query), labelled=labelled)
        assert len(records) == 2
        assert labelled or {record.label for record in records} == {UNLABELLED}
        copy = tmp_path / database.COPY
        copy.write_bytes(database.as_json_lines(records, labelled=labelled))
        assert read_file(copy, labelled=labelled) == records
    assert load_records(definition(tmp_path, **address, query="SELECT text, label FROM notes WHERE id > 2")) == []


def test_a_query_that_ends_its_transaction_still_cannot_write(address, tmp_path):
    refused(definition(tmp_path, **address, query="COMMIT; DELETE FROM notes"), "got a")
    assert len(load_records(definition(tmp_path, **address, query=SELECTED))) == 2


DEFINITIONS = {
    "a password in the url": {"url": "postgresql://reader:p@ss@localhost/notes"},
    "an empty password in the url": {"url": "postgresql://reader:@localhost/notes"},
    "a password with a slash in the url": {"url": "postgresql://reader:p/ss@localhost/notes"},
    "a password as an option of the url": {"url": "postgresql://reader@localhost/notes?password=p@ss"},
    "no user": {"url": "postgresql://localhost/notes"},
    "no host": {"url": "postgresql://reader@/notes"},
    "no database": {"url": "postgresql://reader@localhost"},
    "another driver": {"url": "postgresql+psycopg://reader@localhost/notes"},
    "another kind": {"url": "oracle://reader@localhost/notes"},
    "no url": {"url": SECRET},
    "a file of a host": {"url": "sqlite://reader@host/notes.db"},
    "a database in memory": {"url": "sqlite://"},
    "a number as url": {"url": 7},
    "a number as password": {"password": 1234},
    "a list as query": {"query": [SECRET]},
    "an empty query": {"query": ""},
    "an unknown key": {"user": "reader"},
}


@pytest.mark.parametrize("case", DEFINITIONS)
def test_a_file_that_is_not_as_it_should_be_is_refused_and_not_quoted(case, tmp_path):
    values = {"url": "sqlite:///notes.db", "query": QUERY} | DEFINITIONS[case]
    assert isinstance(refused(definition(tmp_path, **values), "expected"), ConfigError)


@pytest.mark.parametrize(
    "password", ["@ss: p@ss", "*p@ss", "!p@ss x", "'p@ss", "%p@ss", "&p@ss *p@ss", "[p@ss", "`p@ss"]
)
def test_a_password_that_yaml_cannot_read_is_not_quoted(password, tmp_path):
    path = definition(tmp_path)
    path.write_text(f"url: postgresql://reader@localhost/notes\nquery: x\npassword: {password}\n")
    error = refused(path, "malformed YAML")
    assert "single quotes" in error.do
    assert re.search(r"notes\.sql\.yaml:[34]", str(error))


SOUND = ["url: 'sqlite:///notes.db'", "query: 'x'", "password: 'x'"]
FORMS = [
    *("{}", "{}: x", "{}:", "password {}: x", "passwort: {}", "password:: {}", "password: {}: x", "- {}"),
    *("password:{}", "? {}", "? [{}]\n: x", "{{{}: x}}", "[{}]", "password: [{}", "password: {{{}: x}}"),
    *("password: [{}]", "password:\n  {}: x", "password:\n- {}", "password: !{} x", "password: !!int {}"),
    *("password: *{}", "password: &{} x\npassword: x", "password: '{}", 'password: "{}\\q"', "password: %{}", "%{}"),
    *("password: @{}", "password: `{}", "password: {}\t: x", "\t{}", "  {}", "password: |{}", "password: >\n{}: x"),
    *("<<: {}", "<<: {{{}: x}}", "url: {}", "url: postgresql://u:{}@h/d", "--- {}", "...\n{}", "#{}\n\x00", "\x07{}"),
    *("2001-99-99: {}", "password: 2001-99-99 # {}", "password: !!timestamp {}", "password: !!binary {}", "1: {}"),
    *("~: {}", "password: !!float {}", "!!set {{{}}}: x", "password: !!omap [{}]", "password: !!pairs [{}]"),
    *("!!null {}: x", "password: !!bool '{}'", "password: !!python/name:{} x"),
    *("password: 0001-01-01T00:00:00+23:59 # {}", "password: " + 2000 * "[" + "{}"),
]
"""Lines that are no good line of a `.sql.yaml` file, with a place for what nobody may see."""


@pytest.mark.parametrize("secret", ["Zebulon", "77Zebulon77", "Zebulon: Zebulon", "\u00e4Zebulon"])
@pytest.mark.parametrize("form", FORMS)
def test_no_line_that_is_wrong_is_quoted(form, secret, tmp_path):
    for place in range(len(SOUND)):
        for kept in (SOUND[:place] + SOUND[place + 1 :], SOUND):
            path = definition(tmp_path)
            path.write_text("\n".join([*kept[:place], form.format(secret), *kept[place:]]))
            refused(path, "expected")


def test_a_file_that_others_can_read_is_refused(tmp_path):
    path = definition(tmp_path, url="sqlite:///notes.db", query=QUERY)
    path.chmod(0o640)
    refused(path, "expected mode 0600; got 0640")
    path.unlink()
    refused(path, "expected an existing file")


def test_a_file_without_a_database_is_not_made_into_one(tmp_path):
    path = definition(tmp_path, url="sqlite:///notes.db", query=QUERY)
    refused(path, r"got no database in this file \(SQLITE_CANTOPEN\)")
    assert not (tmp_path / "notes.db").exists()
    (tmp_path / "notes.db").write_text(SECRET * 1000)
    refused(path, r"got no database in this file \(SQLITE_NOTADB\)")


def test_a_text_of_sqlite_in_another_encoding_is_refused(tmp_path):
    sqlite_file(
        tmp_path, "CREATE TABLE notes (text TEXT, label TEXT)", "INSERT INTO notes VALUES (CAST(x'4be4' AS TEXT), 'a')"
    )
    path = definition(tmp_path, url="sqlite:///notes.db", query="SELECT text, label FROM notes")
    refused(path, "wrong text; expected a text; got bytes, or a text in another encoding; at .*row 1")


def test_a_server_that_is_not_there_is_said_in_one_line_with_the_missing_password(tmp_path):
    refused(
        definition(tmp_path, url="postgresql://reader@127.0.0.1:1/notes", query=QUERY),
        "no connection .*line `password`",
    )
    refused(
        definition(tmp_path, url="postgresql://r@localhost:1/n", query=QUERY, password=PASSWORD), "no connection[^`]*$"
    )


def test_another_machine_is_reached_over_tls_alone(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr("sqlalchemy.create_engine", lambda url, **options: made.append((url, options)))
    here, elsewhere = ("localhost", "127.0.0.1", "[::1]"), ("db.hospital", "10.0.0.7", "[fd00::1]")
    for host in (*here, *elsewhere):
        path = definition(tmp_path, url=f"postgresql://reader@{host}/notes", query=QUERY, password=PASSWORD)
        refused(path, "an error of the database")  # as nothing was made
        url, options = made.pop()
        assert url.password == PASSWORD
        tls = options["connect_args"]["ssl_context"]
        assert (tls is False) is (host in here)
        assert host in here or (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_without_the_packages_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("common.system.extras.find_spec", lambda package: None)
    with pytest.raises(MissingPackageError, match=r"EXTRAS=\[sql\]"):
        load_records(tmp_path / "notes.sql.yaml")


def test_a_source_shows_neither_url_nor_query_nor_password(tmp_path):
    path = definition(tmp_path, url="postgresql://reader@h/n", query=SECRET, password=PASSWORD)
    assert not re.search(f"{SECRET}|p@ss|reader", repr(database.DatabaseSource.load(path)))


@pytest.mark.postgresql
def test_a_wrong_password_a_missing_database_and_other_encodings_are_said_or_read(server, tmp_path):
    url = f"postgresql://reader@127.0.0.1:{server.port}/"
    plain = "SELECT text, label FROM notes"
    for name, password, fault in (
        ("postgres", "wrong", r"a user or a password that the database refuses \(28P01\)"),
        ("postgres", None, "line `password`"),
        ("none", PASSWORD, r"no database of this name \(3D000\)"),
        ("sql_ascii", PASSWORD, r"a value that the query cannot convert \(22021\)"),
    ):
        refused(definition(tmp_path, url=url + name, query=plain, password=password), fault)
    assert load_records(definition(tmp_path, url=f"{url}latin1", query=plain, password=PASSWORD)) == [
        Record("K\u00e4se", "flu")
    ]


@pytest.mark.postgresql
def test_a_socket_lists_as_labels_and_a_server_without_tls(server, tmp_path, monkeypatch):
    url = f"postgresql://owner@/postgres?unix_sock={server.socket}"
    labels = "SELECT text, ARRAY[label, 'x '] AS labels FROM notes ORDER BY id"
    assert [record.labels for record in load_records(definition(tmp_path, url=url, query=labels))] == [
        ("flu", "x"),
        ("1E50", "x"),
    ]
    refused(definition(tmp_path, url=url, query="SELECT text, label::int AS label FROM notes"), "cannot convert .22P02")
    monkeypatch.setattr(database, "_is_here", lambda host: False)
    far = f"postgresql://reader@127.0.0.1:{server.port}/postgres"
    refused(definition(tmp_path, url=far, query=QUERY, password=PASSWORD), "a server without TLS")


@pytest.mark.postgresql
def test_the_certificate_of_another_machine_is_one_that_this_machine_trusts(server, tmp_path, monkeypatch):
    make_authority(tmp_path)
    make_certificate(tmp_path, "127.0.0.1")
    with postgresql(tmp_path) as there:
        there.execute("CREATE ROLE reader LOGIN PASSWORD 'x'")
        monkeypatch.setattr(database, "_is_here", lambda host: False)
        url = f"postgresql://reader@127.0.0.1:{there.port}/postgres"
        path = definition(
            tmp_path,
            url=url,
            query="SELECT 'a' AS text, 'b' AS label FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl",
            password="x",
        )
        refused(path, "a certificate that this machine does not trust: SSL_CERT_FILE")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
        assert load_records(path) == [Record("a", "b")]

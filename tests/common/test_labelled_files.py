import pytest

from common.domain import UNLABELLED, Record
from common.labelled_files import LONG, read_records, read_texts, read_topics
from tests.support.record_files import SECRET, refused

LABELS = ("pneumonia", "asthma")


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to


def test_csv_and_json_lines_are_read_as_they_are_meant(write):
    path = write("a.csv", 'text,label\n"cough, ""wet""",pneumonia\nwheeze,asthma\n')
    assert read_records(path, LABELS) == [Record('cough, "wet"', "pneumonia"), Record("wheeze", "asthma")]
    path = write("a.jsonl", '{"text": "cough\\nwet", "label": "pneumonia"}\n\n{"label": "asthma", "text": "é\u2028"}')
    assert read_records(path, LABELS) == [Record("cough\nwet", "pneumonia"), Record("é\u2028", "asthma")]
    text = "word " * 40_000  # longer than the fields that the module csv reads by default
    assert read_records(write("b.csv", f"text,label\n{text},asthma\n")) == [Record(text, "asthma")]


SEPARATORS = {",": None, ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_separator_of_a_csv_file_is_found_and_told(separator, mark, write):
    rows = [
        ("id", "text", "label", "user"),
        ("1", "wet; dry, or |\t", "asthma", "u1"),
        ("2", "K\u00e4se", "1E50", "NA"),
    ]
    content = "\r\n".join(
        separator.join(f'"{value}"' if value.startswith("wet") else value for value in row) for row in rows
    )
    records = read_records(write("a.csv", mark + content), remarks=(remarks := []))
    assert records == [Record("wet; dry, or |\t", "asthma", "u1"), Record("K\u00e4se", "1E50", "NA")]
    assert remarks == [f"its fields are separated by {SEPARATORS[separator]}"] * (separator != ",")
    one = read_records(write("b.csv", f"{mark}text\nwet{separator}\n".replace(separator, " ")), labelled=False)
    assert one == [Record("wet ", UNLABELLED)]


def test_a_separator_is_not_told_by_the_texts(write):
    path = write("a.csv", "text,label\na;b;c,asthma\n;;;;|||\t\t,asthma\n")
    records = read_records(path, remarks=(remarks := []))
    assert [record.text for record in records] == ["a;b;c", ";;;;|||\t\t"]
    assert remarks == []


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_mark_endings_and_further_columns_are_tolerated(write, ending):
    path = write("a.CSV", "\ufeff" + ending.join(["id,label,text", "1,asthma,wheeze", "", "2,asthma,cough", ""]))
    assert [record.text for record in read_records(path, LABELS)] == ["wheeze", "cough"]


def test_a_text_may_have_several_labels_joined_or_as_a_list(write):
    joined = write("a.csv", "labels,text\nasthma; pneumonia;asthma,wheeze\npneumonia,cough\n")
    listed = write(
        "a.jsonl", '{"text": "wheeze", "labels": ["asthma", "pneumonia"]}\n{"text": "cough", "labels": "pneumonia"}'
    )
    expected = [Record("wheeze", "asthma", more=("pneumonia",)), Record("cough", "pneumonia", more=())]
    assert read_records(joined, LABELS) == read_records(listed, LABELS) == expected
    assert [record.labels for record in expected] == [("asthma", "pneumonia"), ("pneumonia",)]
    one = write("b.csv", "text,label,labels\nwheeze,asthma,pneumonia\n")
    assert read_records(one, LABELS) == [Record("wheeze", "asthma")]


def test_repeated_rows_are_kept_and_equal(write):
    path = write("a.csv", "text,label\nx,asthma\nx,asthma\nx,pneumonia\nx,asthma\n")
    records = read_records(path)
    assert len(records) == 4
    assert len(set(records)) == 2


BAD = {
    "unknown label": ("a.csv", f"text,label\nx,asthma\ny,{SECRET}\n", 3, "unknown label"),
    "unknown label, JSON": ("a.jsonl", f'{{"text": "x", "label": "{SECRET}"}}', 1, "unknown label"),
    "label in other case": ("a.csv", "text,label\nx,Asthma\n", 2, "unknown label"),
    "label with spaces around it": ("a.csv", "text,label\nx, asthma\n", 2, "unknown label"),
    "unknown among several labels": ("a.csv", f"text,labels\nx,asthma;{SECRET}\n", 2, "unknown label"),
    "empty among several labels": ("a.csv", f"text,labels\n{SECRET},asthma;;pneumonia\n", 2, "an empty one"),
    "semicolon in a listed label": ("a.jsonl", f'{{"text": "{SECRET}", "labels": ["a;b"]}}', 1, "without semicolons"),
    "no label listed": ("a.jsonl", f'{{"text": "{SECRET}", "labels": []}}', 1, "empty labels"),
    "header alone": ("a.csv", "text,label\n", 1, "no data"),
    "empty file": ("a.csv", "", 1, "no data"),
    "empty JSON file": ("a.jsonl", "\n\n", 1, "no data"),
    "no header": ("a.csv", f"{SECRET},asthma\n", 1, "there is no column text and no column label"),
    "column twice": ("a.csv", f"text,text,label\n{SECRET},x,asthma\n", 1, "there are 2 columns named text"),
    "too many fields": ("a.csv", f"text,label\nx,asthma\n{SECRET}, wet,asthma\n", 3, "broken CSV row"),
    "too few fields": ("a.csv", f"text,label\n{SECRET}\n", 2, "broken CSV row"),
    "open quote": ("a.csv", f'text,label\nx,asthma\n"{SECRET},asthma\ny,asthma\n', 3, "broken CSV row"),
    "stray quote": ("a.csv", f'text,label\n"{SECRET}" x,asthma\n', 2, "broken CSV row"),
    "row after a text of three lines": ("a.csv", f'text,label\n"x\ny\nz",asthma\n{SECRET}\n', 5, "broken CSV row"),
    "row of three lines": ("a.csv", f'text,label\nx,asthma\n"{SECRET}\ny\nz",a,b\n', 3, "broken CSV row"),
    "empty text": ("a.csv", "text,label\nx,asthma\n  ,asthma\n", 3, "empty text"),
    "empty label": ("a.csv", f"text,label\n{SECRET},\n", 2, "empty label"),
    "empty text, JSON": ("a.jsonl", '{"text": "", "label": "asthma"}', 1, "empty text"),
    "malformed JSON": ("a.jsonl", f'{{"text": "x", "label": "asthma"}}\n{{"text": "{SECRET}\n', 2, "malformed JSON"),
    "JSON list": ("a.jsonl", f'["{SECRET}", "asthma"]', 1, "malformed JSON"),
    "deep JSON": ("a.jsonl", "[" * 100_000, 1, "malformed JSON"),
    "no label": ("a.jsonl", f'{{"text": "{SECRET}"}}', 1, "there is no column label"),
    "text is a number": ("a.jsonl", '{"text": 7, "label": "asthma"}', 1, "wrong text; .*got a number"),
    "NUL in a text": ("a.csv", f"text,label\n{'x' * 300},asthma\n{SECRET}\0,asthma\n", 3, "broken text"),
    "NUL in the first text": ("a.csv", f"text,label\n{SECRET}\0,asthma\n", 2, "broken text; expected no NUL"),
    "NUL in a label": ("a.jsonl", f'{{"text": "x", "label": "{SECRET}\\u0000"}}', 1, "broken label"),
    "line end in a label": ("a.csv", f'text,label\nx,"asthma\n{SECRET}"\n', 2, "broken label"),
    "terminal controlled by a user": ("a.csv", f"text,label,user\nx,asthma,{SECRET}\x1b[8m\n", 2, "broken user"),
    "header again": ("a.csv", "text,label\nx,asthma\ntext,label\ny,asthma\n", 3, "got the header again"),
    "header again, with its mark": ("a.csv", "\ufefftext,label\nx,asthma\n\ufefftext,label\n", 3, "header again"),
    "header again, in another order": ("a.csv", "text;label\nx;asthma\nlabel;text\nasthma;y\n", 3, "header again"),
    "lone surrogate": ("a.jsonl", f'{{"text": "{SECRET}\\ud800", "label": "asthma"}}', 1, "broken text"),
    "Latin-1": ("a.csv", f"text,label\nx,asthma\n{SECRET} caf\u00e9,asthma\n".encode("latin-1"), 3, "not UTF-8"),
    "UTF-16": ("a.csv", "text,label\nx,asthma\n".encode("utf-16"), 1, "not UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_by_line_and_without_their_content(write, case):
    name, content, line, what = BAD[case]
    path = write(name, content)
    assert f"{path}:{line}" in str(refused(path, what, LABELS))


def test_an_unknown_label_names_the_labels_that_are_allowed(write):
    refused(write("a.csv", "text,label\nx,other\n"), "pneumonia, asthma", LABELS)
    refused(write("a.csv", 'text,labels\nx,"asthma,pneumonia"\n'), "Separate the labels of a text by ;", LABELS)
    refused(write("a.csv", "text,labels\nx,asthma;pneumona\n"), "Correct the label", LABELS)


@pytest.mark.parametrize("reader", [read_records, read_texts, read_topics])
def test_files_that_cannot_be_read(tmp_path, write, reader):
    refused(tmp_path / "missing.csv", r"missing\.csv", read=reader)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "folder").mkdir()
    for folder in ("folder.csv", "folder"):
        refused(tmp_path / folder, "a folder", read=reader)
    refused(tmp_path / "missing", "No such", read=reader)
    refused(write("a.xlsx", "x"), "unknown kind", read=reader)


def test_public_texts_of_each_kind(write):
    assert read_texts(write("a.txt", "\ufeffone\r\n\n  two \u2028\n")) == ["one", "two"]
    assert read_texts(write("a.csv", "id,text\n1,one\n2,two\n")) == ["one", "two"]
    assert read_texts(write("a.jsonl", '{"text": "one"}\n')) == ["one"]


@pytest.mark.parametrize(
    ("name", "content", "topics"),
    [
        ("a.txt", "one\n\ntwo\n", [None, None]),
        ("a.csv", "text\none\ntwo\n", [None, None]),
        ("a.csv", "text,label\none,x\ntwo,y\n", ["x", "y"]),
        ("a.csv", "label,text,topic\nx,one,t\ny,two,u\n", ["t", "u"]),
        ("a.jsonl", '{"text": "one", "label": "x"}\n{"text": "two", "topic": "t"}\n', ["x", "t"]),
        ("a.jsonl", '{"text": "one"}\n{"text": "two", "topic": "t", "label": "x"}\n', [None, "t"]),
    ],
)
def test_topics_of_public_texts(write, name, content, topics):
    assert read_topics(write(name, content)) == list(zip(["one", "two"], topics, strict=True))


def test_a_topic_that_cannot_be_read_is_refused_where_topics_are_asked_for(write):
    path = write("a.csv", "text,topic\none,x\ntwo, \n")
    assert read_texts(path)
    refused(path, r"empty topic; at .*:3", read=read_topics)


def test_a_file_without_a_text_is_refused_unless_it_may_be_empty_and_has_its_header(write):
    for name, content in (("a.txt", "\n \n"), ("a.csv", "text\n"), ("a.jsonl", "")):
        refused(write(name, content), "no data", read=read_texts)
    assert read_records(write("a.csv", "text,label\n"), may_be_empty=True) == []
    for content in ("", "\n\n"):  # as a file that was cut off
        refused(write("b.csv", content), "no data", may_be_empty=True)


@pytest.mark.parametrize(
    ("name", "content", "users"),
    [
        ("a.csv", "text,label,user\nx,a,u1\ny,b,u2\n", ["u1", "u2"]),
        ("a.csv", "user,text,label\nu1,x,a\n", ["u1"]),
        ("a.csv", "text,label\nx,a\n", [None]),
        ("a.jsonl", '{"text": "x", "label": "a", "user": "u1"}\n', ["u1"]),
        ("a.jsonl", '{"text": "x", "label": "a"}\n', [None]),
    ],
)
def test_whose_a_record_is_where_the_file_says_so(write, name, content, users):
    assert [record.user for record in read_records(write(name, content))] == users


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,label,user\nx,a,u1\ny,b,\n"),
        ("a.jsonl", '{"text": "x", "label": "a", "user": "u1"}\n{"text": "y", "label": "b"}\n'),
        ("a.jsonl", '{"text": "x", "label": "a"}\n{"text": "y", "label": "b", "user": "u1"}\n'),
        ("a.jsonl", '{"text": "x", "label": "a", "user": 3}\n'),
    ],
)
def test_users_are_named_in_all_rows_or_in_none(write, name, content):
    refused(write(name, content))


@pytest.mark.parametrize("table", [("a.csv", "text,label\n", ",asthma\n", 3), ("a.txt", "", "\n", 2)])
def test_overlong_texts_are_warned_of_by_count_and_place_alone(table, write, caplog):
    name, header, end, line = table
    read_texts(write("b.txt", "x" * LONG))
    assert not caplog.messages
    long = f"{SECRET} " * (LONG // len(SECRET))
    path = write(name, header + "".join(text + end for text in ("wheeze", long, "cough", long)))
    assert len(read_texts(path)) == 4
    (message,) = caplog.messages
    assert message.startswith(f"{path}: 2 texts of more than 100000 characters, the first at {path}:{line}:")
    assert SECRET not in message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,user\nwheeze,ann\ncough,bob\n"),
        ("a.csv", "label,text,user\nasthma,wheeze,ann\n,cough,bob\n"),  # not even an empty label is looked at
        ("a.jsonl", '{"text": "wheeze", "user": "ann", "label": 3}\n{"text": "cough", "user": "bob"}\n'),
    ],
)
def test_texts_alone_are_records_without_labels(write, name, content):
    expected = [Record("wheeze", UNLABELLED, "ann"), Record("cough", UNLABELLED, "bob")]
    path = write(name, content)
    assert read_records(path, labelled=False) == read_records(path, [UNLABELLED]) == expected
    refused(path, r"column|empty|wrong")

"""Whole runs of `llm=server` against a server that fails in every way: every text that is lost is counted, and said."""

import json

import pytest

from tests.support.lanes import slow_but
from tests.support.loopback import Loopback, chat, error
from tests.support.runs import labelled, lines, rounds_that_add_up, texts, tiny

TEXTS = 12
SECTION = "llm.models.own"


@pytest.fixture
def server():
    server = Loopback()
    yield server
    server.close()


def two_replies():
    answer = chat([], written="The harbour was cold today.")
    return answer | {"choices": [*answer["choices"], answer["choices"][0] | {"index": 1}]}


AGAIN = {
    "429 with Retry-After": (429, {"retry-after": "0.01"}, error("rate_limit_error")),
    "500": (500, {"retry-after": "0.01"}, error("server_error")),
    "503": (503, {"retry-after": "0"}, error("server_error")),
}
"""Faults after which the same request is sent again."""
LOST = {
    "no answer in time": "slow",
    "a connection that is cut": "cut",
    "a body that breaks off": "cut short",
    "JSON that breaks off": (200, {}, b'{"id": "c1", "choices": [{"ind'),
    "a gateway's page": (200, {"content-type": "text/html"}, b"<html>gateway</html>"),
    "no choices": (200, {}, chat([]) | {"choices": []}),
    "an empty reply": (200, {}, chat([], written="")),
    "white space": (200, {}, chat([], written=" \n\t ")),
    "a refusal": (200, {}, chat([], refusal="I would rather not.")),
    "a filter": (200, {}, chat([], written="", stop="content_filter")),
    "a length of nothing": (200, {}, chat([], written='["The har', stop="length")),
    "a wrong body": (400, {}, error("invalid_request_error")),
    "too long a prompt": (400, {}, error("invalid_request_error", code="context_length_exceeded")),
}
"""Faults by which one request has no text."""
WRITTEN = chat(["The harbour was cold today."])
READ = {
    "another content type": (200, {"content-type": "text/plain"}, json.dumps(WRITTEN).encode()),
    "a text without a list": (200, {}, chat([], written="The harbour was cold today.")),
    "a list in prose": (200, {}, chat([], written='Sure:\n\n```json\n["The harbour was cold today."]\n```')),
    "an object": (200, {}, chat([], written='{"text": "The harbour was cold today."}')),
    "half of a surrogate pair": (200, {}, chat([], written='["The harbour was \\ud83d cold today."]')),
    "half of a surrogate pair in the body": (200, {}, chat(["The harbour was \ud83d cold today."])),
    "two replies for one prompt": (200, {}, two_replies()),
    "more texts than asked for": (200, {}, chat([f"The harbour was {how} today." for how in ("cold", "dark", "wet")])),
    "no usage": (200, {}, WRITTEN | {"usage": None}),
}
"""Unusual answers of which the text is read, or dropped by cleaning."""


def run(server, folder, *overrides):
    """A run whose check is answered as usual, and whose first request after it has the scripted answer."""
    server.script[:0] = [(200, {}, {"id": "test-model"}), (200, {}, chat(["A first text."]))]
    return tiny(
        folder,
        *labelled(folder.parent / "data"),
        "method=fusegen",
        f"method.samples={TEXTS}",
        "method.rounds=1",
        "method.texts_per_request=1",
        "llm=server",
        f"{SECTION}.base_url={server.url}/v1",
        f"{SECTION}.model=test-model",
        f"{SECTION}.max_tokens=100",
        f"{SECTION}.concurrency=1",
        f"+{SECTION}.timeout=0.5",
        *overrides,
    )


def counted(folder):
    """The numbers of each round, after checking that they add up and that the data set has what was generated."""
    rounds = rounds_that_add_up(folder)
    assert len(texts(folder).splitlines()) == sum(line["generated"]["own"] for line in rounds)
    texts(folder).decode("utf-8")
    return rounds


@pytest.mark.parametrize("fault", AGAIN)
def test_what_passes_is_asked_again_and_loses_nothing(fault, server, tmp_path):
    server.script = [AGAIN[fault]] * 2
    (line,) = counted(run(server, tmp_path / "run"))
    assert line["losses"] == {}
    assert line["generated"]["own"] == TEXTS
    assert len(server.seen) == 1 + TEXTS + 2
    _, first, second, third = server.seen[:4]
    assert first == second == third


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_reply_is_counted_and_its_text_asked_for_again(fault, server, tmp_path):
    server.script = [LOST[fault]]
    (line,) = counted(run(server, tmp_path / "run", f"+{SECTION}.retries=0"))
    assert sum(line["losses"]["own"].values()) == 1
    assert line["generated"]["own"] == TEXTS
    assert line["calls"] == TEXTS + 1 == len(server.seen) - 1


@pytest.mark.parametrize("fault", slow_but({"a refusal"}, LOST))
def test_texts_that_never_come_are_lost_by_number(fault, server, tmp_path, caplog):
    """One text comes of each label, and of the other requests none, however often they are sent."""
    answer = server._fresh
    given = []

    def some(path, body, number):
        label = "harbour" in body["messages"][-1]["content"]
        if given.count(label) < 2:
            given.append(label)
            return answer(path, body, number)
        return chat([], written="")

    server._fresh = some
    server.script = [LOST[fault]]
    (line,) = counted(run(server, tmp_path / "run", f"+{SECTION}.retries=0", "llm.most_lost=1"))
    assert line["generated"]["own"] == 4
    assert line["lost"]["own"] == TEXTS - 4
    assert f"{TEXTS - 4} of {TEXTS}" in caplog.text
    assert sum(line["losses"]["own"].values()) == line["calls"] - 4


@pytest.mark.parametrize("fault", READ)
def test_an_unusual_answer_is_read_or_counted(fault, server, tmp_path):
    server.script = [READ[fault]]
    folder = run(server, tmp_path / "run")
    (line,) = counted(folder)
    dropped = sum(line["losses"].get("own", {}).values()) + sum(line["cleaned"].get("own", {}).values())
    written = [row["text"] for row in lines(folder, "synthetic.jsonl")]
    assert dropped or any(text.startswith("The harbour was") for text in written)
    assert sum(text.startswith("The harbour was") for text in written) <= 1
    assert line["generated"]["own"] == TEXTS
    assert not any("\ud800" <= letter <= "\udfff" for text in written for letter in text)

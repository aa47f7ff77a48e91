"""Whole runs of `llm=server` against a server that fails in every way: every text that is lost is counted, and said."""

import json

import pytest

from tests.support.loopback import Loopback, chat, error
from tests.support.runs import labelled, lines, rounds_that_add_up, texts, tiny

TEXTS = 12
SECTION = "llm.models.own"


@pytest.fixture
def server():
    server = Loopback()
    yield server
    server.close()


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
READ = {
    "another content type": lambda text: (200, {"content-type": "text/plain"}, json.dumps(chat([text])).encode()),
    "a text without a list": lambda text: (200, {}, chat([], written=text)),
    "a list in prose": lambda text: (200, {}, chat([], written=f'Sure:\n\n```json\n["{text}"]\n```')),
    "an object": lambda text: (200, {}, chat([], written=f'{{"text": "{text}"}}')),
    "half of a surrogate pair": lambda text: (200, {}, chat([], written=f'["{text} \\ud83d"]')),
    "half of a surrogate pair in the body": lambda text: (200, {}, chat([f"{text} \ud83d"])),
    "two replies for one prompt": lambda text: (200, {}, chat([], written=text) | {"choices": two_choices(text)}),
    "more texts than asked for": lambda text: (200, {}, chat([f"{text} {how}" for how in ("cold", "dark", "wet")])),
    "no usage": lambda text: (200, {}, chat([text]) | {"usage": None}),
}
"""Unusual answers of which the text is read, or dropped by cleaning."""


def two_choices(text):
    (choice,) = chat([], written=text)["choices"]
    return [choice, choice | {"index": 1}]


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


def test_a_lost_reply_is_counted_and_its_text_asked_for_again(server, tmp_path):
    server.script = [*LOST.values()]
    (line,) = counted(run(server, tmp_path / "run", f"+{SECTION}.retries=0"))
    assert sum(line["losses"]["own"].values()) == len(LOST)
    assert line["generated"]["own"] == TEXTS
    assert line["calls"] == TEXTS + len(LOST) == len(server.seen) - 1


def test_an_unusual_answer_is_read_or_counted(server, tmp_path):
    server.script = [answer(f"The harbour was seen as {fault}.") for fault, answer in READ.items()]
    folder = run(server, tmp_path / "run")
    (line,) = counted(folder)
    dropped = sum(line["losses"].get("own", {}).values()) + sum(line["cleaned"].get("own", {}).values())
    written = [row["text"] for row in lines(folder, "synthetic.jsonl")]
    times = [sum(text.startswith(f"The harbour was seen as {fault}.") for text in written) for fault in READ]
    assert max(times) == 1
    assert times.count(0) <= dropped
    assert line["generated"]["own"] == TEXTS
    assert not any("\ud800" <= letter <= "\udfff" for text in written for letter in text)

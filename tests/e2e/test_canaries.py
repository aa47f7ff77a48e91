"""Nothing that a run leaves holds private text, an un-noised count or a noise key: every byte of it is searched.

The canaries are words of private records that occur in nothing public. A control shows that the search finds what is
there.
"""

import base64
import json
import threading
import traceback

import numpy as np
import pytest

from client import answer, service
from client.contributions import contribute
from common.errors import CaucusError, DataError, ProviderError
from common.ledger.ledger import Ledger
from common.models.encoder import Encoder
from server.llm.builtin.model import BuiltinModel
from tests.support.runs import die, forked, labelled, private_texts, resume, tiny, words_in


@pytest.fixture
def spoken(caplog, capfd):
    """All that was logged, at every level, and printed so far."""
    caplog.set_level("DEBUG")

    def everything():
        captured = capfd.readouterr()
        return caplog.text + captured.out + captured.err

    return everything


@pytest.fixture
def task(tmp_path):
    return [*labelled(tmp_path / "data"), "method.samples=60"]


def left(folder, *texts):
    """Every byte in the folder, and all that was said, in one."""
    return b"\0\0".join([*(path.read_bytes() for path in folder.rglob("*") if path.is_file()), *map(str.encode, texts)])


def numbers_in(content, vectors, scale):
    """Which of the count vectors the content holds, in any form that a program might have written."""
    matches = []
    for name, vector in vectors.items():
        for half in np.split(vector, 2):
            assert len(np.unique(half)) > 2, "too plain to be told from chance"
            shared = half / scale
            forms = [half.astype("<i8").tobytes(), half.astype("<u8").tobytes(), shared.astype("<f8").tobytes()]
            forms += [half.astype(">i8").tobytes(), half.astype("<i4").tobytes(), shared.astype("<f4").tobytes()]
            for values in (half.tolist(), shared.tolist()):
                forms += [json.dumps(values, separators=(gap, ":")).strip("[]").encode() for gap in (", ", ",")]
            matches += [name for form in forms if form in content]
    return matches


def keys_in(content, keys):
    forms = ((key, key.hex().encode(), base64.b64encode(key)) for key in keys)
    return [key for key, *written in forms if any(form in content for form in (key, *written))]


@pytest.fixture
def watched(monkeypatch):
    """Counts and keys, taken where they are made."""
    seen = {"counts": {}, "noise": [], "masks": []}
    contribution, ask = contribute.contribution, answer.answer
    at = threading.local()  # parties answer side by side

    def counted(*args, **kwargs):
        counts = contribution(*args, **kwargs)
        seen["counts"][at.place] = counts
        return counts

    def asked(query, **kwargs):
        at.place = kwargs["index"], kwargs["party"].ledger._path.stem
        return ask(query, **kwargs)

    def drawn(kind, real):
        def draw(count):
            seen[kind].append(real(count))
            return seen[kind][-1]

        return draw

    monkeypatch.setattr(contribute, "contribution", counted)
    monkeypatch.setattr(answer, "answer", asked)
    monkeypatch.setattr(answer, "secure_bytes", drawn("noise", answer.secure_bytes))
    monkeypatch.setattr(service, "secure_bytes", drawn("masks", service.secure_bytes))
    return seen


def count_vectors(seen):
    vectors = {f"query {index} of party {party}": counts for (index, party), counts in seen["counts"].items()}
    for index in {index for index, _ in seen["counts"]}:
        parts = [counts for (at, _), counts in seen["counts"].items() if at == index]
        vectors[f"total of query {index}"] = np.sum(parts, axis=0)
    return vectors


@pytest.mark.parametrize("mode", ["semi_honest", "malicious", "none"])
def test_a_complete_run_leaves_nothing_private(mode, task, watched, tmp_path, spoken):
    folder = tiny(tmp_path / "run", *task, f"secagg={mode}", "federation.partition=iid")
    content = left(folder, spoken())
    assert not words_in(content, private_texts(tmp_path))
    vectors = count_vectors(watched)
    assert len(vectors) == 2 * (3 + 1)
    assert not numbers_in(content, vectors, scale=4)
    assert len(watched["noise"]) == 2 * 3
    assert len(watched["masks"]) == (0 if mode == "none" else 3)
    assert not keys_in(content, watched["noise"] + watched["masks"])


def test_the_search_finds_what_is_there(task, watched, tmp_path):
    folder = tiny(tmp_path / "run", *task, "privacy.epsilon=.inf", "federation.partition=iid")
    content = left(folder)
    # Without noise the total is what the coordinator gets.
    assert set(numbers_in(content, count_vectors(watched), scale=4)) == {"total of query 0", "total of query 1"}
    text = private_texts(tmp_path)[3]
    (folder / "leak.log").write_text(f"about {text.upper()}")
    assert "zq003" in words_in(left(folder), [text])
    assert len(words_in(left(folder), [text])) == 4
    entry = {"run": "r", "index": 0, "plan_digest": b"p", "query_digest": b"q"}
    ledger = Ledger(folder / "open.db")
    ledger.reserve(**entry, release=Ledger(folder / "state/ledger.db").entries()[0].release)
    ledger.keep("r", 0, watched["masks"][0])
    assert keys_in(left(folder), watched["masks"]) == watched["masks"][:1]


def broken_model(monkeypatch, calls):
    """A model that fails for good after so many requests."""
    write = BuiltinModel._write
    left_over = [calls]

    def failing(self, request, *args):
        left_over[0] -= 1
        if left_over[0] < 0:
            raise ProviderError("the language model is away", do="Try again later")
        return write(self, request, *args)

    monkeypatch.setattr(BuiltinModel, "_write", failing)


def test_neither_a_run_that_fails_midway_nor_its_resumption_does(task, watched, tmp_path, spoken, monkeypatch):
    with monkeypatch.context() as patch:
        broken_model(patch, 8)
        with pytest.raises(ProviderError, match="is away"):
            tiny(tmp_path / "run", *task, "federation.partition=iid")
    folder = tmp_path / "run"
    assert watched["noise"], "it was to fail after a query"
    content = left(folder, spoken())
    assert not words_in(content, private_texts(tmp_path))
    assert not numbers_in(content, count_vectors(watched), scale=4)
    assert not keys_in(content, watched["masks"])

    resume(folder)
    content = left(folder, spoken())
    assert not words_in(content, private_texts(tmp_path))
    assert not numbers_in(content, count_vectors(watched), scale=4)
    assert not keys_in(content, watched["noise"] + watched["masks"])


@pytest.mark.parametrize("point", ["client.secagg.Agreed.unmask", "server.federation.checkpoint.Checkpoint.commit"])
def test_neither_does_one_that_was_killed(point, task, tmp_path, monkeypatch):
    folder = tmp_path / "run"

    def work():
        monkeypatch.setattr(point, lambda *_: die())
        tiny(folder, *task)

    assert forked(work) == -9
    assert list(folder.glob("state/query-*.npz"))
    assert not words_in(left(folder), private_texts(tmp_path))
    resume(folder)
    assert not words_in(left(folder), private_texts(tmp_path))


def test_an_error_that_quotes_private_text_stays_at_the_party(task, tmp_path, spoken, monkeypatch):
    encode = Encoder.encode

    def quoting(self, texts):
        if any("zq003" in text for text in texts):
            raise ValueError(f"cannot encode {texts}")
        return encode(self, texts)

    monkeypatch.setattr(Encoder, "encode", quoting)
    with pytest.raises(DataError, match="got ValueError") as caught:
        tiny(tmp_path / "run", *task)
    trace = "".join(traceback.format_exception(caught.value))
    content = left(tmp_path / "run", spoken(), trace)
    assert not words_in(content, private_texts(tmp_path))


@pytest.mark.parametrize(
    "rows",
    [
        [("zq001 zw001", "a"), ("zq002 zw002", "secretlabel")],
        [("zq001 zw001", "a"), ("", "b")],
        [("zq001 zw001", "a", "zw002")],
    ],
)
def test_no_complaint_about_a_private_file_quotes_it(rows, tmp_path, spoken):
    task = labelled(tmp_path / "data", train=rows)
    with pytest.raises(CaucusError, match=r"train\.csv:\d") as caught:
        tiny(tmp_path / "run", *task)
    message = f"{caught.value} {spoken()}"
    assert "zq" not in message
    assert "zw" not in message
    assert "secretlabel" not in message

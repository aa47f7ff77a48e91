"""A run whose models mark spans is the run without them, with spans beside its texts."""

import json

import pytest

from server.command import main
from server.documents.codec import to_json
from server.llm.builtin.model import BuiltinModel
from server.spans import Span
from server.tasks import demo_notes
from tests.support.marks import fit
from tests.support.runs import lines, read, resume, tiny

EXACT = ("privacy.epsilon=inf", "method.rounds=2")  # without noise two runs are equal
UNMEASURED = "task.test_records=0"


@pytest.fixture(scope="module")
def spanned(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("spans") / "run", *EXACT, "task.spans=true", "task.test_records=12")


def test_the_built_in_models_write_the_same_texts_and_the_hospitals_are_asked_the_same(spanned, tmp_path):
    plain = tiny(tmp_path / "plain", *EXACT, UNMEASURED)
    for file in ("synthetic.jsonl", "zero_shot.jsonl"):
        marked = lines(spanned, file)
        spans = [tuple(Span(**span) for span in row.pop("spans")) for row in marked]
        assert marked == lines(plain, file)
        assert all(fit(row["text"], of_text) for row, of_text in zip(marked, spans, strict=True))
        assert sum(map(len, spans)) > len(spans)
    assert read(plain, "privacy.json")["plan_digest"] == read(spanned, "privacy.json")["plan_digest"]
    assert read(plain, "traffic.json") == read(spanned, "traffic.json")
    assert "spans" not in read(plain, "run.json")
    assert set(read(spanned, "run.json")["spans"]) == {"finding", "absence", "measurement", "treatment"}
    assert not {"spans", "marks"} & read(plain, "metrics.json").keys()
    assert read(spanned, "metrics.json")["spans"]["f1"]["value"] > 0


def test_an_interrupted_run_keeps_the_spans_of_its_earlier_rounds(spanned, tmp_path, monkeypatch):
    generate, rounds = BuiltinModel.generate, []

    def interrupted(model, requests, **more):
        if any(request.good for request in requests):
            rounds.append(requests)
            raise KeyboardInterrupt
        return generate(model, requests, **more)

    with monkeypatch.context() as patched:
        patched.setattr(BuiltinModel, "generate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tiny(tmp_path / "cut", *EXACT, "task.spans=true", UNMEASURED)
    assert "<finding>" in rounds[0][0].good[0]
    resume(tmp_path / "cut")
    assert lines(tmp_path / "cut", "synthetic.jsonl") == lines(spanned, "synthetic.jsonl")


def test_later_held_out_texts_test_what_the_spans_teach(spanned, tmp_path):
    notes = demo_notes.held_out_notes(20, 9)
    spans = [note.spans for note in demo_notes.held_out_spans(20, 9)]
    rows = [
        {"text": note.text, "label": note.label, "spans": [to_json(span) for span in of_text]}
        for note, of_text in zip(notes, spans, strict=True)
    ]
    file = tmp_path / "later.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    before = read(spanned, "metrics.json")
    assert main(["evaluate", str(spanned), "--test", str(file), "--metrics"]) == 0
    after = read(spanned, "metrics.json")
    assert (after["spans"]["test"], after["spans"]["f1"]["rows"]) == ("later.jsonl", 10)
    assert (before["spans"]["f1"]["rows"], after["marks"]) == (6, before["marks"])

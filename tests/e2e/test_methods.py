"""Every method on real parties, alone and under secure aggregation: seconds each."""

from collections import Counter
from dataclasses import replace

import pytest

from server.llm.builtin.model import BuiltinModel
from tests.support.lanes import slow, slow_but
from tests.support.runs import lines, read, tiny

SETTINGS = {
    "wasp": ("method.rounds=2",),
    "aug_pe": ("method.rounds=2", "method.look_ahead=1"),
    "aug_pe_plus": ("method.rounds=2", "method.kept_terms=4", "method.terms=2"),
    "census": ("method.rounds=2", "method.directions=6", "method.labels=requested", "method.need=false"),
    "fusegen": ("method.rounds=2",),
    "pre_text": (
        "method.rounds=2",
        "method.seeds=12",
        "method.look_ahead=1",
        "method.smoothing=true",
        "privacy.unit=user",
        "privacy.max_records=4",
    ),
}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    file = tmp_path_factory.mktemp("public") / "terms.txt"
    file.write_text("fever\ncough\nchest pain\noxygen\nlactate\nswelling\n")
    return file


@pytest.mark.parametrize("parties", [slow(1), 3])
@pytest.mark.parametrize("method", slow_but({"wasp", "aug_pe", "census"}, SETTINGS))
def test_a_whole_run(method, parties, vocabulary, tmp_path):
    named = (f"method.vocabulary={vocabulary}",) if method == "aug_pe_plus" else ()
    run = tiny(
        tmp_path / "run",
        f"method={method}",
        f"federation.parties={parties}",
        "method.samples=24",
        *SETTINGS[method],
        *named,
    )
    rows, privacy = lines(run, "synthetic.jsonl"), read(run, "privacy.json")
    assert set(Counter(row["label"] for row in rows).values()) == {6}
    assert [line["candidates"] for line in lines(run, "rounds.jsonl")][-1] == 24
    assert privacy["aggregation"] == ("none" if parties == 1 else "secure, semi-honest coordinator")
    assert privacy["spent"]["queries_asked"] == privacy["spent"]["queries_planned"]
    assert privacy["spent"]["epsilon"] == pytest.approx(4.0 if privacy["queries"] else 0.0, rel=1e-3)
    names = [query["name"] for line in lines(run, "rounds.jsonl") for query in line["queries"]]
    assert names == [query["name"] for query in privacy["queries"] for _ in range(query["times"])]
    assert read(run, "run.json") | {"method": method, "status": "complete"} == read(run, "run.json")
    assert (run / "report.html").stat().st_size > 1000


@pytest.mark.parametrize("method", slow_but({"wasp", "pre_text"}, SETTINGS))
def test_a_whole_run_in_which_one_of_three_models_writes_nothing(method, vocabulary, tmp_path, monkeypatch, caplog):
    answer = BuiltinModel.generate

    def generate(self, requests, **settings):
        replies = answer(self, requests, **settings)
        return [replace(reply, texts=()) for reply in replies] if self.name == "narrow" else replies

    monkeypatch.setattr(BuiltinModel, "generate", generate)
    named = (f"method.vocabulary={vocabulary}",) if method == "aug_pe_plus" else ()
    run = tiny(tmp_path / "run", f"method={method}", "method.samples=24", *SETTINGS[method], *named)
    texts, rounds = lines(run, "synthetic.jsonl"), lines(run, "rounds.jsonl")
    assert (len(texts), {text["model"] for text in texts}) == (24, {"broad", "noisy"})
    assert sum(line["lost"]["narrow"] for line in rounds) == sum(line["requested"]["narrow"] for line in rounds) > 0
    for line in rounds:
        assert sum(note.startswith("narrow ") for note in line["notes"]) == (line["lost"]["narrow"] > 0)
    told = [note for line in rounds for note in line["notes"] if note.startswith("narrow ")]
    said = [record.getMessage() for record in caplog.records if record.name == "caucus.llm"]
    assert [line.partition(": ")[2] for line in said if line.startswith("round ")] == told
    assert told[0] in (run / "report.html").read_text("utf-8")

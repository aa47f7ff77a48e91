"""A small complete run: every file of its folder, readable and in agreement with all others."""

import math
import os
from html.parser import HTMLParser

import pytest

from common.ledger.ledger import Ledger
from common.plan.guarantee import verify
from common.privacy.accountant import epsilon
from server.prepare.components import build_components
from server.prepare.compose import load_settings
from tests.support.lanes import slow_but
from tests.support.runs import labelled, lines, read, texts, tiny

ROUNDS, SAMPLES = 3, 48


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    before = os.umask(0o022)
    made = tiny(tmp_path_factory.mktemp("complete") / "run")
    assert os.umask(before) == 0o022
    return made


def test_the_folder_holds_what_the_readme_lists_and_no_more(run):
    assert sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()) == [
        "config.yaml",
        "input_weaknesses.json",
        "lock",
        "map.json",
        "map_private.json",
        "metrics.json",
        *(f"parties/{party:04}.db" for party in range(3)),
        "parties/inputs.json",
        "privacy.json",
        "release.md",
        "report.html",
        "report.json",
        "rounds.jsonl",
        "run.json",
        *(f"state/answer-{index:03}.npy" for index in range(ROUNDS - 1)),
        "state/ledger.db",
        *(f"state/query-{index:03}.npz" for index in range(ROUNDS - 1)),
        "state/replies.db",
        "state/state.json",
        "synthetic.jsonl",
        "traffic.json",
        "zero_shot.jsonl",
    ]


def test_only_its_owner_can_open_what_a_run_makes(run):
    assert [path for path in (run, *run.rglob("*")) if path.stat().st_mode & 0o077] == []


def test_the_log_that_was_there_is_closed(tmp_path):
    (tmp_path / "run.log").touch(0o644)
    assert (tiny(tmp_path) / "run.log").stat().st_mode & 0o077 == 0


def test_exactly_as_many_texts_as_were_asked_for_over_labels_models_and_rounds(run):
    rows, rounds = lines(run, "synthetic.jsonl"), lines(run, "rounds.jsonl")
    assert len(rows) == SAMPLES
    assert all(row.keys() == {"text", "label", "model", "round", "weight"} and row["text"].strip() for row in rows)
    assert {row["weight"] for row in rows} == {1.0}
    labels = build_components(load_settings(run)).plan.labels
    assert sorted(row["label"] for row in rows) == sorted(SAMPLES // len(labels) * labels)
    for number, line in enumerate(rounds, 1):
        assert line["round"] == number
        of_round = [row["model"] for row in rows if row["round"] == number]
        assert line["generated"] == {model: of_round.count(model) for model in line["generated"]}
        assert line["requested"] == line["generated"]
        assert line["candidates"] == sum(row["round"] <= number for row in rows)
        assert math.isclose(sum(line["weights"].values()), 1)
        assert math.isfinite(line["fid"])
        assert all(seconds >= 0 for seconds in line["seconds"].values())
        assert min(line["tokens"][kind] for kind in ("input", "output")) > 0
    assert len(rounds) == ROUNDS
    assert [[query["index"] for query in line["queries"]] for line in rounds] == [[0], [1], []]


def test_what_was_spent_is_what_was_planned_to_the_last_digit(run):
    privacy, plan = read(run, "privacy.json"), build_components(load_settings(run)).plan
    assert privacy["plan_digest"] == plan.digest().hex()
    assert (privacy["epsilon"], privacy["delta"]) == (4.0, 1e-5)
    assert privacy["spent"] == {"epsilon": verify(plan), "queries_asked": ROUNDS - 1, "queries_planned": ROUNDS - 1}
    assert 3.999 < privacy["spent"]["epsilon"] <= 4
    assert [line["colluders"] for line in privacy["against_colluders"]] == [0, 1, 2]
    assert privacy["simulation"]
    assert privacy["not_covered"]


@pytest.mark.parametrize("ledger", ["state/ledger.db", "parties/0000.db", "parties/0001.db", "parties/0002.db"])
def test_every_ledger_holds_each_query_once_and_no_answer(ledger, run):
    plan = build_components(load_settings(run)).plan
    entries = Ledger(run / ledger).entries()
    assert [entry.index for entry in entries] == list(range(ROUNDS - 1))
    for entry in entries:
        assert (entry.committed, entry.answer, entry.survivors) == (True, None, {0, 1, 2})
        assert (entry.run, entry.plan_digest) == (read(run, "run.json")["run"], plan.digest())
    assert epsilon(Ledger(run / ledger).releases(), plan.delta) == verify(plan)


def test_all_ledgers_hold_the_same_queries(run):
    numbers = [
        [entry.query_digest for entry in Ledger(path).entries()]
        for path in (run / "state/ledger.db", *run.glob("parties/*.db"))
    ]
    assert all(digests == numbers[0] for digests in numbers)


def test_metrics_name_what_was_trained_and_tested(run):
    metrics = read(run, "metrics.json")
    assert (metrics["test_records"], metrics["synthetic"]["records"], metrics["real_private"]["records"]) == (
        24,
        SAMPLES,
        48,
    )
    assert metrics["real_private"]["simulation_only"]
    assert 0 < metrics["real_private"]["accuracy"] <= 1


def test_run_json_and_config_tell_how_to_repeat_it(run):
    about, config = read(run, "run.json"), load_settings(run)
    assert (about["status"], about["method"], about["task"], about["parties"]) == ("complete", "wasp", "demo_notes", 3)
    assert about["kind"] == "emergency-department notes"
    assert about["run"] == config.run
    assert config.method.samples == SAMPLES


class Addresses(HTMLParser):
    """Everything that a page would load."""

    def __init__(self):
        super().__init__()
        self.loaded = []

    def handle_starttag(self, tag, attributes):
        self.loaded += [value for name, value in attributes if name in {"src", "href", "srcset", "data"}]


def test_the_report_stands_alone_and_tells_the_figures(run):
    page = (run / "report.html").read_text("utf-8")
    addresses = Addresses()
    addresses.feed(page)
    assert all(address.startswith(("#", "data:")) for address in addresses.loaded)
    assert not any(far in page for far in ("@import", "url(http", "fetch(", "//cdn"))
    assert f"{read(run, 'metrics.json')['synthetic']['accuracy']:.3f}"[:4] in page or "%" in page


def test_the_same_seed_without_noise_gives_the_same_texts_and_another_seed_others(run, tmp_path):
    exact = (*labelled(tmp_path / "data"), "privacy.epsilon=.inf", "method.rounds=2", "llm.use=[broad]")
    exact += ("method.samples=24",)
    first, again = tiny(tmp_path / "a", *exact), tiny(tmp_path / "b", *exact)
    other = tiny(tmp_path / "c", *exact, "experiment_seed=1")
    assert texts(first) == texts(again) != texts(other)
    assert load_settings(first).run != load_settings(again).run


ABLATIONS = {
    "top": "method.top=6",
    "one vote": "method.top=1",
    "models": "llm.use=[noisy]",
    "records": "federation.records=30",
    "epsilon": "privacy.epsilon=0.5",
    "one party alone": "federation.parties=1",
    "two parties": "federation.parties=2",
    "alpha": "federation.partition=dirichlet federation.alpha=0.1",
    "iid": "federation.partition=iid",
    "no contrast": "method.contrast=false",
    "no weighting": "method.weighting=false",
    "user level": "privacy.unit=user privacy.max_records=4 federation.parties=20 federation.records=100 method.top=6",
    "no aggregation": "secagg=none",
    "dropouts and colluders": "federation.parties=5 federation.max_dropouts=1 federation.colluders=1",
    "no attributes, words": "method.words=12 method.temperature=0.5",
}


@pytest.mark.parametrize("name", slow_but({"no aggregation", "user level"}, ABLATIONS))
def test_every_ablation_runs_and_says_what_it_is(name, tmp_path):
    folder = tiny(tmp_path / "run", *ABLATIONS[name].split(), "method.rounds=2", "method.samples=40")
    config, privacy, rounds = load_settings(folder), read(folder, "privacy.json"), lines(folder, "rounds.jsonl")
    assert len(lines(folder, "synthetic.jsonl")) == 40
    assert read(folder, "run.json")["parties"] == config.federation.parties == len(list(folder.glob("parties/*.db")))
    assert privacy["queries"][0]["top"] == config.method.top
    assert privacy["epsilon"] == config.privacy.epsilon
    assert list(rounds[0]["weights"]) == list(config.llm.use or config.llm.models)
    assert privacy["spent"]["queries_asked"] == 1
    secure = name not in {"one party alone", "no aggregation"}
    assert privacy["aggregation"].startswith("secure" if secure else "none")
    absent = config.federation.max_dropouts + (config.federation.colluders or 0)
    assert privacy["noise_parties"] == (config.federation.parties - absent if secure else 1)
    real = read(folder, "metrics.json")["real_private"]["records"]
    assert real == (config.federation.records or 16 * config.federation.parties)
    if name == "no weighting":
        assert rounds[0]["weights"] == rounds[1]["weights"]
    if name == "user level":
        assert privacy["adjacency"] == {"relation": "add or remove", "unit": "user", "max_records": 4}
        assert math.isclose(privacy["queries"][0]["sensitivity_l2"], 4 * math.sqrt(2 / 3 * (4 - 4**-5)), rel_tol=1e-9)

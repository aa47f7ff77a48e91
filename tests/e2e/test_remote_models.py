"""Whole runs whose language models are on loopback, under the real SDKs: what reaches them, what they cost, caps."""

import json
from pathlib import Path

import pytest

import configs
from common.errors import ProviderError
from server.llm.render import our_prompts
from server.prepare.compose import reload_settings
from simulations.run import simulate
from tests.support.lanes import slow_but
from tests.support.loopback import Loopback, error
from tests.support.runs import command, labelled, lines, private_texts, read, texts, tiny, words_in

METHODS = sorted(path.stem for path in (Path(configs.__file__).parent / "method").glob("*.yaml"))
ASKS_NO_REMOTE_MODEL = {"only_private", "private_exemplars"}
"""Use the records where they are, in a simulation alone."""

SIZES = {
    "aug_pe": ["method.samples=8", "method.rounds=2", "method.look_ahead=1"],
    "aug_pe_plus": ["method.samples=8", "method.rounds=2", "method.kept_terms=8", "method.terms=3"],
    "dp_kps": [
        "method.samples=6",
        "method.rounds=1",
        "method.kept_terms=8",
        "method.length=3",
        "method.features=20",
        "method.mechanism=gaussian",
    ],
    "dpga": ["method.samples=6", "method.rounds=2", "method.keywords=3", "method.longest=30", "method.bins=5"],
    "fusegen": ["method.samples=12", "method.rounds=2", "method.epochs=1"],
    "pre_text": ["method.samples=8", "method.seeds=8", "method.rounds=2", "method.look_ahead=1"],
    "rpsg": ["method.samples=8", "method.rounds=2", "method.pool=12", "method.refinement.nll=1.0"],
    "dp_sgd": ["method.samples=4", "method.rounds=1", "method.steps=2", "method.longest=100", "method.rate=0.5"],
    "rupta": ["method.samples=4", "method.rounds=1", "method.longest=100"],
    "wasp": ["method.samples=24", "method.rounds=3", "method.top=3", "method.shots=2", "method.texts_per_request=2"],
}
PARTIES_WRITE = {"dp_sgd", "rupta"}
"""Ask the parties' own models alone. RPSG takes part with its pool: its unproven seeds are released, and are sent."""
REMOTE = {"anthropic": ("haiku", ""), "openai": ("small", "/v1")}


@pytest.fixture
def server(monkeypatch):
    for provider in REMOTE:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", "a-key-of-nobody")
    server = Loopback()
    yield server
    server.close()


def remote(provider, server, *more):
    """Overrides for the one model on loopback."""
    name, path = REMOTE[provider]
    section = f"llm.models.{name}"
    return [
        f"llm={provider}",
        f"llm.use=[{name}]",
        f"{section}.base_url={server.url}{path}",
        f"{section}.model=test-model",
        f"{section}.max_tokens=200",
        *more,
    ]


def small(method, folder):
    """Overrides for a small run of the method; one that is not listed runs with its defaults, but few texts."""
    words = [word for text in private_texts(folder) for word in text.strip(".").split()]
    vocabulary = folder / "terms.txt"
    # Terms of the records among public ones, which is what makes a histogram of them private.
    terms = ["harbour", "lantern", "kettle", *(word for word in words if word[0] in "qvjx")]
    vocabulary.write_text("\n".join(dict.fromkeys(terms)))
    needs = [f"method.vocabulary={vocabulary}"] if method in {"aug_pe_plus", "dp_kps"} else []
    return [f"method={method}", *SIZES.get(method, ["method.samples=8"]), *needs]


@pytest.mark.parametrize("provider", slow_but({"anthropic"}, REMOTE))
@pytest.mark.parametrize("method", [method for method in METHODS if method not in ASKS_NO_REMOTE_MODEL])
def test_no_private_text_reaches_a_model(method, provider, server, tmp_path):
    task = labelled(tmp_path / "data")
    run = tiny(tmp_path / "run", *task, *small(method, tmp_path), *remote(provider, server))
    sent, privacy = b"\n".join(server.raw), read(run, "privacy.json")
    assert read(run, "run.json") | {"method": method, "status": "complete"} == read(run, "run.json")
    assert privacy["spent"]["queries_asked"] == privacy["spent"]["queries_planned"]
    assert privacy["spent"]["epsilon"] == privacy["planned_epsilon"]
    assert not words_in(sent, private_texts(tmp_path))
    assert bool(server.seen) is (method not in PARTIES_WRITE)
    if method in PARTIES_WRITE:
        return
    assert b"harbour and lantern" in sent or method in {"aug_pe_plus", "dp_kps"}, "the public description was to go out"
    assert {row["model"] for row in lines(run, "synthetic.jsonl")} == {REMOTE[provider][0]}
    assert read(run, "run.json")["prompts"] == our_prompts().digest
    kept = {kind: one for row in lines(run, "rounds.jsonl") for kind, one in row["prompts"].items()}
    assert kept
    assert not words_in(json.dumps(kept).encode(), private_texts(tmp_path))
    assert all(json.dumps(one["prompt"])[1:-1].encode() in sent for one in kept.values())
    page = (run / "report.html").read_text("utf-8")
    assert all(f"{kind.replace('_', ' ')}: {REMOTE[provider][0]}</summary>" in page for kind in kept)


def test_the_search_of_what_was_sent_finds_what_is_there(server, tmp_path):
    labelled(tmp_path / "data")
    text = private_texts(tmp_path)[3]
    sent = json.dumps({"messages": [{"role": "user", "content": f"Original note:\n{text}"}]}).encode()
    assert "zq003" in words_in(sent, [text])


def wasp(provider, server, *more):
    return ["method=wasp", *SIZES["wasp"], *remote(provider, server, *more)]


def test_money_is_counted_by_round_and_in_total_and_a_cap_leaves_a_run_that_goes_on(server, tmp_path):
    settings = [*labelled(tmp_path / "data"), *wasp("openai", server)]
    fresh = server._fresh
    server._fresh = lambda *args: fresh(*args) | {"usage": {"prompt_tokens": 250, "completion_tokens": 50}}
    whole = tiny(tmp_path / "whole", *settings)
    # At 0.4 and 1.6 a million.
    paid = read(whole, "metrics.json")["paid"]["small"]
    assert (paid["replies"], paid["input_tokens"]) == (len(server.seen), 250 * len(server.seen))
    assert paid["cost"] == pytest.approx(len(server.seen) * (250 * 0.4 + 50 * 1.6) / 1e6, abs=1e-6)
    rounds = [line["paid"]["small"]["replies"] for line in lines(whole, "rounds.jsonl")]
    assert sum(rounds) == paid["replies"]

    first = len(server.seen)
    # A request may take its prompt's bytes and 200 tokens, some 1,500: the cap is reached on the way.
    with pytest.raises(ProviderError, match=r"llm\.max_tokens.*--resume"):
        tiny(tmp_path / "capped", *settings, "llm.max_tokens=3500", "llm.models.small.concurrency=1")
    folder = tmp_path / "capped"
    assert read(folder, "run.json")["status"] == "partial"
    stopped = len(server.seen) - first
    assert 0 < stopped < first
    simulate(reload_settings(folder, ["llm.max_tokens=null", "llm.max_cost=1"]), folder)
    assert read(folder, "run.json")["status"] == "complete"
    assert len(server.seen) == 2 * first
    assert read(folder, "metrics.json")["paid"]["small"]["replies"] == first
    assert sum(line["paid"]["small"]["replies"] for line in lines(folder, "rounds.jsonl")) == first
    assert len(texts(folder).splitlines()) == 24


def test_only_caps_may_change_when_a_run_goes_on(tmp_path):
    folder = tiny(tmp_path / "run")
    code, output = command(tmp_path, "--resume", str(folder), "privacy.epsilon=50")
    assert code == 2
    assert "llm.max_cost, llm.max_tokens" in output
    code, output = command(tmp_path, "--resume", str(tmp_path / "none"), "llm.max_cost=5")
    assert code == 2
    assert "config.yaml" in output


@pytest.mark.parametrize("status", [401, 404])
def test_a_wrong_key_or_model_stops_before_any_party_is_asked(status, server, tmp_path):
    server.script = [(status, {}, error("not_found_error", code="model_not_found"))]
    with pytest.raises(ProviderError, match=str(status)):
        tiny(tmp_path / "run", *labelled(tmp_path / "data"), *wasp("anthropic", server))
    assert not server.seen
    assert not list((tmp_path / "run" / "state").glob("*.np*"))
    assert json.loads((tmp_path / "run" / "privacy.json").read_text())["spent"]["queries_asked"] == 0


@pytest.mark.parametrize(
    ("answer", "advice", "goes_on"),
    [
        ((400, {}, error("x", "Unsupported parameter: 'temperature'")), "llm.models.small.temperature=false", False),
        ((401, {}, error("authentication_error")), "check the key", True),
    ],
)
def test_a_run_whose_setting_is_refused_is_not_said_to_go_on(answer, advice, goes_on, server, tmp_path):
    server.script = [(200, {}, {"id": "test-model"}), answer]
    place = f"hydra.run.dir={tmp_path / 'run'}"
    code, output = command(tmp_path, *labelled(tmp_path / "data"), *wasp("openai", server), place)
    assert code == 1
    assert advice in output
    assert ("--resume" in output) is goes_on
    assert len(server.seen) == 1

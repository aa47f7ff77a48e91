"""Every method with the real weights of a chat model: in this process, and behind our server, as a remote model is.

The model is SmolLM2, or the one that the environment variable MODELS names. SmolLM2 follows no prompt: half of its
replies are cut off and lost, which a run may allow and must count, and it has no keywords.
"""

import os

import pytest

from common.errors import ProviderError
from server.page.drafts import MADE
from tests.support import serving
from tests.support.real_models import fetched
from tests.support.runs import lines, read, resume, rounds_that_add_up, tiny

pytestmark = [pytest.mark.llm, pytest.mark.openvino]

MODEL = os.environ.get("MODELS") or "smollm2"
TEXTS, TOKENS, WORDS = 40, 200, 12
MOST_TOKENS = {"dpga": 600}
"""DPGA-TextSyn states no length, and no reply to its first prompt ended within `TOKENS`."""
KEYWORDS = 0 if MODEL == "smollm2" else 3
TERMS = "appointment\nbill\nblood test\nparking\nprescription\nresults\nsurgery\nward\nvisit\ndoctor"
COUNTED = ["method.kept_terms=8"]
SIZES = {
    "aug_pe": ["method.rounds=1", "method.look_ahead=1"],
    "aug_pe_plus": ["method.rounds=1", "method.terms=3", *COUNTED],
    "class_sums": ["method.rounds=2"],
    "dp_kps": ["method.rounds=1", "method.length=3", "method.features=20", "method.mechanism=gaussian", *COUNTED],
    "dpga": ["method.rounds=1", f"method.keywords={KEYWORDS}", "method.longest=30", "method.bins=5"],
    "fusegen": ["method.rounds=2", "method.epochs=1"],
    "pre_text": ["method.rounds=1", f"method.seeds={TEXTS}", "method.look_ahead=1"],
    "rpsg": ["method.rounds=2", "method.pool=60", "method.refinement.nll=1.0"],
    "wasp": ["method.rounds=2", "method.top=3", "method.shots=2"],
}
METHODS = [method for method in MADE if method not in {"dp_sgd", "rupta"}]  # whose texts hospitals write
OWN = "llm.models.own"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = serving.Served("caucus", fetched(MODEL), tmp_path_factory.mktemp("served") / "log.txt")
    try:
        yield made.up()
    finally:
        made.killed()


def of(method, folder):
    """Overrides for a run of the method with 40 texts of the demo's messages."""
    needs = []
    if COUNTED[0] in SIZES.get(method, ()):
        vocabulary = folder / "terms.txt"
        vocabulary.write_text(TERMS)
        needs = [f"method.vocabulary={vocabulary}"]
    task = ["task=demo_messages", "task.records_per_party=16", "task.test_records=24", "evaluation.metrics=[]"]
    short = [f"method.words={WORDS}", "method.texts_per_request=1"] if method != "dpga" else []
    sizes = [f"method.samples={TEXTS}", *SIZES.get(method, ())]
    return [*task, f"method={method}", *sizes, *needs, *short]


def local():
    section = "llm.models.local"
    return ["llm=local", f"{section}.model={MODEL}", f"{section}.engine=openvino", f"{section}.max_new_tokens={TOKENS}"]


def remote(server, **changes):
    settings = {"base_url": server.url, "model": server.model, "max_tokens": TOKENS} | changes
    return ["llm=server", *(f"{OWN}.{name}={value}" for name, value in settings.items())]


@pytest.mark.parametrize("method", METHODS)
def test_a_run_of_the_model_in_this_process(method, tmp_path):
    fetched(MODEL)
    folder = tiny(tmp_path / "run", *of(method, tmp_path), *local())
    rounds = rounds_that_add_up(folder)
    assert sum(line["generated"]["local"] for line in rounds) >= TEXTS / 4
    assert lines(folder, "synthetic.jsonl")


@pytest.mark.parametrize("method", METHODS)
def test_a_run_of_the_model_behind_our_server(method, server, tmp_path):
    before = server.answered()
    folder = tiny(tmp_path / "run", *of(method, tmp_path), *remote(server, max_tokens=MOST_TOKENS.get(method, TOKENS)))
    rounds = rounds_that_add_up(folder)
    assert sum(line["generated"]["own"] for line in rounds) >= TEXTS / 4
    assert lines(folder, "synthetic.jsonl")
    answered = server.answered() - before
    paid = read(folder, "metrics.json")["paid"]["own"]["replies"]
    assert 1 + sum(line["calls"] for line in rounds) == answered == paid  # one is the prompt that was tried first
    beyond = [
        {kind: line["paid"]["own"][f"{kind}_tokens"] - line["tokens"][kind] for kind in ("input", "output")}
        for line in rounds
    ]
    assert beyond[0]["input"] > 0  # the prompt that was tried first belongs to no round, and is paid in the first
    assert 0 <= beyond[0]["output"] <= MOST_TOKENS.get(method, TOKENS)
    assert not any(sum(line.values()) for line in beyond[1:])


def test_the_same_seeds_give_the_same_texts(tmp_path):
    """Of a new server and one request at a time: a prompt read before, or another batch, has other last digits."""
    runs = []
    for name in "ab":
        server = serving.Served("caucus", fetched(MODEL), tmp_path / f"{name}.txt")
        try:
            runs.append(tiny(tmp_path / name, *of("fusegen", tmp_path), *remote(server.up(), concurrency=1)))
        finally:
            server.killed()
    first, second = ([row["text"] for row in lines(run, "synthetic.jsonl")] for run in runs)
    assert first == second != []


def test_a_server_that_is_killed_in_mid_run_is_asked_for_the_rest_alone(tmp_path, monkeypatch):
    server = serving.Served("caucus", fetched(MODEL), tmp_path / "log.txt")
    kept = serving.kill_after(10, server, monkeypatch)
    folder = tmp_path / "run"
    try:
        server.up()
        with pytest.raises(ProviderError, match="not answer"):
            tiny(folder, *of("wasp", tmp_path), *remote(server, concurrency=4), f"+{OWN}.retries=1")
        assert read(folder, "run.json")["status"] == "partial"
        answered = len(kept)
        assert answered >= 10
        server.up()
        resume(folder)
    finally:
        server.killed()
    rounds = rounds_that_add_up(folder)
    keys = [row[1] for row in kept]
    unusable = sum(not row[2].texts for row in kept[:answered])  # and so asked for again
    assert 1 + sum(line["calls"] for line in rounds) == len(set(keys)) > answered - unusable  # one tried first
    assert len(keys) - len(set(keys)) <= unusable
    assert server.answered() <= len(keys) + 4  # at most, those that were under way had been answered too

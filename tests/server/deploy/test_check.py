"""`caucus-coordinator check`: what a run would use and what it lacks, before anything private is touched."""

import contextlib
import json

import pytest

from server.command import main
from server.methods.wasp import VOTES
from tests.support.tiny_models import tiny_bert, tiny_transformer, tiny_writer

pytestmark = pytest.mark.usefixtures("nothing_private")
SMALL = ["task.public_notes=60"]


def check(capsys, *overrides):
    code = main(["check", *overrides])
    return code, capsys.readouterr().out.splitlines()


def test_the_defaults_lack_nothing(capsys):
    code, lines = check(capsys, *SMALL)
    assert code == 0
    assert all(line.startswith("ok  ") for line in lines)
    table = "\n".join(lines)
    for word in ("encoder", "broad (BuiltinModel)", "noisy (BuiltinModel)", "wasp", "tfidf", "plan"):
        assert word in table


def test_a_plan_whose_answers_will_be_noise_is_ready_and_says_so(capsys):
    few = ("federation.expected_records=100", "privacy.epsilon=1", "method.rounds=auto")
    code, lines = check(capsys, *SMALL, *few)
    assert code == 0
    assert all(fact in lines[-1] for fact in ("ε = 1;", VOTES, "be noise", "0.2 votes"))
    assert check(capsys, *SMALL, "method.rounds=auto")[0] == 0  # of the demo the number of records is known


def test_all_that_is_missing_is_told_at_once(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    code, lines = check(
        capsys,
        *SMALL,
        "llm=anthropic",
        "embedding=pretrained",
        f"embedding.name_or_path={tmp_path}",
        "evaluation.model=finetuned",
        "evaluation.checkpoint=nowhere/at-all",
        f"evaluation.vocabulary={tmp_path}/terms.txt",
    )
    assert code == 1
    missing = [line for line in lines if line.startswith("MISSING")]
    assert any("ANTHROPIC_API_KEY" in line for line in missing)
    assert any("encoder;" in line for line in missing)
    assert any("evaluation" in line and "nowhere/at-all" in line for line in missing)
    assert any("terms.txt" in line for line in missing)
    assert not any("  plan  " in line for line in lines)


def test_local_models_are_looked_at_without_their_weights_in_memory(capsys, monkeypatch, tmp_path):
    from server.llm.local import Local

    monkeypatch.setattr(Local, "_engine", property(lambda _: pytest.fail("weights were loaded")))
    writer = tiny_writer(tmp_path / "writer", ("a card",), chat=True)
    encoder = tiny_transformer(tmp_path / "encoder")
    chosen = [
        *SMALL,
        "llm=local",
        f"llm.models.local.model={writer}",
        "embedding=pretrained",
        f"embedding.name_or_path={encoder}",
    ]
    code, lines = check(capsys, "--json", *chosen)
    report = json.loads("\n".join(lines))
    assert (code, report["ready"]) == (0, True)
    by_part = {part["part"]: part for part in report["parts"]}
    assert len(by_part["encoder"]["digest"]) == 64
    assert by_part["language model"]["digest"].startswith("local/")
    assert "this machine" in by_part["language model"]["detail"]

    bare = tiny_bert(tmp_path / "bert")
    code, lines = check(capsys, *SMALL, "llm=local", f"llm.models.local.model={bare}")
    assert code == 1
    assert "causal head" in "\n".join(lines)


def test_an_encoder_that_was_not_fetched_is_missing_and_make_models_is_told(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("CAUCUS_MODELS", str(tmp_path))
    code, lines = check(capsys, *SMALL, "embedding=minilm")
    (missing,) = [line for line in lines if line.startswith("MISSING")]
    assert code == 1
    assert "encoder         minilm " in missing
    assert "make models" in missing
    assert main(["plan", *SMALL, "embedding=minilm"]) == 2
    error = capsys.readouterr().err
    assert "model minilm;" in error
    assert "make models" in error


def test_a_model_that_would_not_answer_and_one_that_there_is_not(capsys, monkeypatch):
    from common.errors import ProviderError
    from server.llm.builtin.model import BuiltinModel

    def refuses(self):
        raise ProviderError("no answer", where=self.name)

    monkeypatch.setattr(BuiltinModel, "check", refuses)
    code, lines = check(capsys, *SMALL, "llm.use=[broad,narrow]", "++llm.models.narrow.share=7")
    table = "\n".join(lines)
    assert code == 1
    assert "no answer; at broad" in table
    assert "llm.models.narrow.share;" in table


def test_a_remote_model_is_asked_for_one_text_and_a_refused_setting_is_named(capsys, monkeypatch):
    from tests.support.loopback import Loopback, error

    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-nobody")
    refusal = 400, {}, error("x", "Unsupported parameter: 'temperature'")
    with contextlib.closing(Loopback()) as server:
        server.script = [(200, {}, {"id": "gpt-4.1-mini"}), refusal]
        url = f"llm.models.small.base_url={server.url}/v1"
        tables = [check(capsys, *SMALL, "llm=openai", url)[1] for _ in range(2)]
    assert "llm.models.small.temperature=false" in "\n".join(tables[0])
    assert "MISSING" not in "\n".join(tables[1])
    assert len(server.seen) == 2


def test_what_a_model_declines_is_said_and_no_plan_is_made_with_a_method_that_needs_it(capsys, monkeypatch):
    from server.llm.builtin.model import BuiltinModel

    monkeypatch.setattr(BuiltinModel, "declines", frozenset({"crossing", "contrast"}))
    code, lines = check(capsys, *SMALL, "llm.use=[broad]")
    assert (code, lines[-1].startswith("ok       plan")) == (0, True)
    assert "declines contrast, crossing" in "\n".join(lines)
    code, lines = check(capsys, *SMALL, "llm.use=[broad]", "method=dpga", "method.samples=8")
    assert code == 1
    assert all(fact in lines[-1] for fact in ("broad", "crossing; at llm.use"))


def test_without_a_task_the_rest_is_told_all_the_same(capsys, monkeypatch):
    specs = {"tensorboard": None}
    monkeypatch.setattr("common.system.extras.find_spec", lambda name: specs.get(name, True))
    code, lines = check(capsys, "task=csv", "tracking=tensorboard")
    table = "\n".join(lines)
    assert code == 1
    for word in ("task.labels", "task.public_text", "ok       encoder", "EXTRAS=[tracking]"):
        assert word in table


def test_a_task_without_labels_says_so(capsys):
    (line,) = (line for line in check(capsys, "task.labels=unlabelled")[1] if " task " in line)
    assert line.endswith("no labels")
    (line,) = (line for line in check(capsys)[1] if " task " in line)
    assert line.endswith("4 labels")

"""DP-SGD and RUPTA on real parties: whole runs, their price, statements and ledgers; interrupted and refused ones."""

import json

import pytest

from client.writers import causal_model, fine_tuning
from common.errors import ConfigError, DropoutError
from common.ledger.ledger import Ledger
from server.command import main as coordinator
from tests.support.lanes import slow
from tests.support.runs import labelled, lines, read, resume, texts, tiny

SGD = (
    "method=dp_sgd",
    "method.samples=8",
    "method.rounds=1",
    "method.steps=3",
    "method.rate=1.0",
    "method.max_tokens=32",
    "federation.parties=1",
)
RUPTA = ("method=rupta", "method.samples=8", "method.rounds=1", "federation.parties=1")


@pytest.fixture(autouse=True)
def _tiny_model(monkeypatch):
    for name, value in {"_WIDTH": 16, "_LAYERS": 1, "_HEADS": 2}.items():
        monkeypatch.setattr(causal_model, name, value)


def party(run):
    return Ledger(run / "parties" / "0000.db").entries()


@pytest.mark.parametrize(
    "changes", [(), slow(("method.rate=0.3",)), ("method.lora=2", "client.fine_tuning.micro_batch=4")]
)
def test_a_party_trains_and_releases_texts_at_the_price_of_the_plan(changes, tmp_path):
    run = tiny(tmp_path / "run", *SGD, *changes)
    rows, privacy = lines(run, "synthetic.jsonl"), read(run, "privacy.json")
    assert {row["model"] for row in rows} == {"dp_sgd"}
    assert len(rows) == 8 or lines(run, "rounds.jsonl")[0]["notes"]
    (query,) = privacy["queries"]
    assert privacy["epsilon"] == 4.0
    assert privacy["spent"]["epsilon"] == privacy["planned_epsilon"] == pytest.approx(4.0, rel=1e-4)
    assert query["noise_multiplier"] == query["scale_grid"] / 4096 > 0.5
    assert f"{query['noise_multiplier']:.3g} times" in privacy["statement"]
    assert any(item.startswith("Training in") for item in privacy["not_covered"])
    (entry,) = party(run)
    release = entry.release
    assert (release.times * release.draws, release.scale) == (3, query["scale_grid"])
    assert (entry.committed, entry.answer) == (True, None)


def test_several_parties_train_each_for_itself(tmp_path):
    run = tiny(tmp_path / "run", *SGD, "federation.parties=3")
    (query,) = read(run, "privacy.json")["queries"]
    assert (query["texts"], query["summed"]) == (4, False)
    assert len(lines(run, "synthetic.jsonl")) <= 8
    assert "whole noise" in read(run, "privacy.json")["statement"]


def test_without_noise_there_is_no_guarantee(tmp_path):
    run = tiny(tmp_path / "run", *SGD, "privacy.epsilon=.inf")
    privacy = read(run, "privacy.json")
    assert privacy["planned_epsilon"] == privacy["spent"]["epsilon"] == "inf"
    assert privacy["statement"].startswith("No privacy")
    assert not any(item.startswith("Training in") for item in privacy["not_covered"])


def test_the_price_is_known_before_anything_private_is_touched(capsys):
    assert (
        coordinator(["plan", "--json", "method=dp_sgd", "method.steps=20", "method.rate=1.0", "federation.parties=1"])
        == 0
    )
    plan = json.loads(capsys.readouterr().out)
    assert (plan["epsilon"], plan["queries"][0]["steps"], plan["forecast"]["model_calls"]) == (4.0, 20, 0)
    assert coordinator(["plan", "--json", "method=rupta", "federation.parties=1"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["epsilon"], plan["unproven"]) == ("inf", ["rewritten records"])


def test_a_run_that_dies_after_training_gets_the_texts_that_were_kept(tmp_path, monkeypatch):
    trained = []
    train = fine_tuning.train
    monkeypatch.setattr(fine_tuning, "train", lambda *some, **more: trained.append(1) or train(*some, **more))

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("server.federation.checkpoint.Checkpoint.commit", stop)
        with pytest.raises(KeyboardInterrupt):
            tiny(tmp_path / "run", *SGD)
    (entry,) = party(tmp_path / "run")
    assert entry.answer is not None
    resume(tmp_path / "run")
    assert trained == [1]
    assert read(tmp_path / "run", "run.json")["status"] == "complete"
    assert len(party(tmp_path / "run")) == 1
    released = texts(tmp_path / "run")
    resume(tmp_path / "run")
    assert texts(tmp_path / "run") == released


def test_a_party_without_records_trains_on_noise_alone(tmp_path):
    run = tiny(tmp_path / "run", *SGD, "task.records_per_party=0")
    assert read(run, "privacy.json")["spent"]["epsilon"] == pytest.approx(4.0, rel=1e-4)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("client.limits.max_epsilon=3",), "OVER_LIMIT"),
        (("client.limits.lifetime_epsilon=3",), "OVER_LIMIT"),
        (("client.fine_tuning=null",), "OVER_LIMIT"),
        (("client.limits.queries=[votes]",), "OVER_LIMIT"),
        (("client.fine_tuning.max_steps=2",), "MALFORMED"),
        (("client.fine_tuning.name_or_path=no-such-folder",), "MALFORMED"),
        (("method.max_tokens=20",), "MALFORMED"),
        (("method.resolution=4096", "method.lora=0", "client.fine_tuning.device=abacus"), "MALFORMED"),
    ],
)
def test_a_party_refuses_what_its_own_file_does_not_allow_and_is_charged_nothing(overrides, message, tmp_path):
    with pytest.raises(DropoutError, match=message):
        tiny(tmp_path / "run", *SGD, *overrides)
    assert party(tmp_path / "run") == ()


def test_limits_see_the_price_of_subsampled_steps_as_it_is(tmp_path):
    # By norms alone it would be far above 5.
    limits = ("client.limits.max_epsilon=5", "client.limits.lifetime_epsilon=5")
    run = tiny(tmp_path / "run", *SGD, "method.steps=40", "method.rate=0.1", *limits)
    assert len(party(run)) == 1


def test_fewer_texts_than_labels_are_refused_before_anything_is_asked(tmp_path):
    with pytest.raises(ConfigError, match=r"method\.samples"):
        tiny(tmp_path / "run", *SGD, "method.samples=3")
    assert party(tmp_path / "run") == ()


# RUPTA


def test_records_are_rewritten_without_a_guarantee_and_it_says_so(tmp_path):
    run = tiny(tmp_path / "run", *RUPTA, "task.records_per_party=40")
    rows, privacy = lines(run, "synthetic.jsonl"), read(run, "privacy.json")
    assert 0 < len(rows) <= 8
    assert {row["model"] for row in rows} == {"rupta"}
    assert privacy["epsilon"] == privacy["planned_epsilon"] == privacy["spent"]["epsilon"] == "inf"
    assert "rewritten records" in privacy["statement"]
    (entry,) = party(run)
    assert (entry.release.mechanism, entry.release.scale) == ("pure", 0.0)


@pytest.mark.parametrize("parties", [1, slow(3)])
def test_more_texts_than_records_are_stated(parties, tmp_path):
    run = tiny(tmp_path / "run", *RUPTA, "method.samples=60", f"federation.parties={parties}")
    rows, (line,) = lines(run, "synthetic.jsonl"), lines(run, "rounds.jsonl")
    assert len(rows) <= 16 * parties
    assert any(f"{60 - len(rows)} of 60" in note for note in line["notes"])


@pytest.mark.parametrize(
    "limits",
    [
        ("client.limits.unsafe_unproven=false",),
        ("client.limits.queries=[votes]",),
        ("client.rewriting=null",),
        ("client.rewriting.most=7",),
    ],
)
def test_a_party_rewrites_nothing_that_its_own_file_does_not_allow(limits, tmp_path):
    with pytest.raises(DropoutError):
        tiny(tmp_path / "run", *RUPTA, *limits)
    assert party(tmp_path / "run") == ()


@pytest.mark.parametrize("method", [SGD, RUPTA])
def test_a_run_leaves_nothing_of_the_records_but_what_was_released(method, tmp_path, caplog, capfd):
    caplog.set_level("DEBUG")
    task = labelled(tmp_path / "data")
    run = tiny(tmp_path / "run", *task, *method, "client.rewriting.nearest=0", "client.rewriting.copied=1.0")
    captured = capfd.readouterr()
    words = {f"zq{i:03}" for i in range(40)} | {f"zw{i:03}" for i in range(40)}
    released = {word for word in words if word.encode() in texts(run)}
    left = b"\0".join(path.read_bytes() for path in run.rglob("*") if path.is_file()) + str.encode(
        caplog.text + captured.out + captured.err
    )
    assert {word for word in words if word.encode() in left} == released
    if method is SGD:
        assert not released

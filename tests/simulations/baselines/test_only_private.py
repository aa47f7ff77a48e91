import pytest

from common.domain import Record
from common.errors import ConfigError
from server.command import main
from server.prepare.components import build_components
from server.prepare.compose import compose_settings
from simulations.baselines import unprotected
from tests.support.runs import lines, read, tiny

SMALL = ("method=only_private", "task.records_per_party=16", "task.test_records=24")


def small(folder, *overrides):
    return tiny(folder, *SMALL, "+method.samples=60", "+method.rounds=3", *overrides)


@pytest.mark.parametrize("name", ["only_private", "private_exemplars"])
def test_a_coordinator_refuses_a_baseline_before_anything_else(name, capsys):
    with pytest.raises(ConfigError, match=rf"{name}.*caucus-simulate"):
        build_components(compose_settings([f"method={name}"]))
    assert main(["plan", f"method={name}"]) == 2
    assert "caucus-simulate" in capsys.readouterr().err


def test_it_trains_on_the_private_records_and_says_so_first(tmp_path, caplog):
    caplog.set_level("INFO")
    folder = small(tmp_path / "run")
    metrics, privacy = read(folder, "metrics.json"), read(folder, "privacy.json")
    assert metrics["synthetic"] is None
    assert metrics["real_private"]["records"] == 48
    assert metrics["real_private"]["seconds"] > 0
    assert "48 private records" in caplog.text
    assert metrics["real_private"]["accuracy"] > 0.5 > metrics["majority_class"]["accuracy"] > 0
    assert next(iter(privacy)) == "statement"
    assert privacy["not_covered"]
    assert privacy["statement"].startswith("OnlyPrivate:")
    assert {privacy[key] for key in ("epsilon", "planned_epsilon", "released_epsilon", "party_epsilon")} == {"inf"}
    assert privacy["spent"]["epsilon"] == "inf"
    assert lines(folder, "synthetic.jsonl") == []
    assert read(folder, "run.json")["status"] == "complete"
    page = (folder / "report.html").read_text("utf-8").partition("<body>")[2]
    assert page.index("<strong>OnlyPrivate:</strong>") < page.index('id="utility"')
    assert "simulation only" in page.partition('id="utility"')[2].lower()


def test_without_held_out_records_there_is_nothing_to_say(tmp_path):
    with pytest.raises(ConfigError, match="held-out"):
        small(tmp_path / "run", "task.test_records=0")


def test_the_run_s_encoder_stands_in_where_the_model_needs_one():
    private = [Record(f"a note about {'hearts' if at % 2 else 'lungs'} {at}", "ab"[at % 2]) for at in range(8)]
    for model in ("encoder", "network"):
        config = compose_settings([f"evaluation.model={model}", "task.public_notes=60"])
        assert unprotected.train_on_records(config, private, private[:2])["real_private"]["records"] == 8


def test_without_labels_there_is_nothing_to_train(tmp_path):
    with pytest.raises(ConfigError, match="labels"):
        small(tmp_path / "run", "task.labels=unlabelled")


@pytest.mark.parametrize("name", ["only_private", "private_exemplars"])
def test_baselines_refuse_spans_as_records_have_no_marks(name):
    with pytest.raises(ConfigError, match=rf"^method {name}; .* spans"):
        unprotected.records_of(compose_settings([f"method={name}", "task=demo_notes", "task.spans=true"]))

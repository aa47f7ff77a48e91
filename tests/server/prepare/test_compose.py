"""What an operator typed, checked before any part is built. The command's own tests have more cases."""

import pytest

from common.errors import ConfigError
from server.prepare.compose import compose_settings
from server.prepare.files import check_files
from server.settings.sections import with_values


def test_values_of_the_right_kind_pass_and_so_do_choices_additions_and_null_where_it_may_be():
    config = compose_settings(
        [
            *("method=aug_pe", "method.rounds=3", "privacy.epsilon=.inf", "privacy.delta=1e-6", "secagg=none"),
            *("llm.models=null", "llm.use=null", "llm.max_cost=null", "purpose='2026'", "evaluation.metrics=[]"),
            *("+more=1", "~experiment_seed"),
        ],
        "server",
    )
    assert (config.method.rounds, config.others["more"], config.purpose) == (3, 1, "2026")
    assert compose_settings(["method=dpga", "method.tau=null"], "server").method.tau is None


def test_paths_are_made_absolute_and_names_of_models_are_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own-model").mkdir()
    path = ["embedding=pretrained", "task=csv", "task.train=a.csv", "evaluation.target=/b.txt"]
    config = compose_settings([*path, "embedding.name_or_path=own-model", "evaluation.checkpoint=bert-base-uncased"])
    assert config.task.train == str(tmp_path / "a.csv")
    assert config.evaluation.target == "/b.txt"
    assert config.embedding.settings["name_or_path"] == str(tmp_path / "own-model")
    assert config.evaluation.checkpoint == "bert-base-uncased"
    (tmp_path / "minilm").mkdir()
    for path, kept in ("minilm", "minilm"), ("./minilm", str(tmp_path / "minilm")):
        named = compose_settings(["embedding=pretrained", f"embedding.name_or_path={path}"])
        assert named.embedding.settings["name_or_path"] == kept
    (tmp_path / "copied-model").mkdir()
    entry = "+llm.models.mine={_target_: server.llm.local.Local, model: copied-model}"
    models = compose_settings(["llm=local", "llm.models.local.model=Qwen/Qwen2.5-1.5B-Instruct", entry]).llm.models
    assert models["local"].settings["model"] == "Qwen/Qwen2.5-1.5B-Instruct"
    assert models["mine"].settings["model"] == str(tmp_path / "copied-model")
    assert compose_settings(["embedding_cache=run"]).embedding_cache == "run"
    assert compose_settings(["reply_cache=own.db"]).reply_cache == str(tmp_path / "own.db")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "public.txt").write_text("x")
    config = compose_settings(
        ["task=csv", f"task.public_text={tmp_path}/public.txt", f"task.train={tmp_path}/private.csv"]
    )
    check_files(config)  # of private records a coordinator needs none
    config = with_values(config, {"task.test": str(tmp_path)})
    with pytest.raises(ConfigError, match=rf"^task\.test; .* at {tmp_path}"):
        check_files(config)


@pytest.mark.parametrize(
    ("choice", "advice"),
    [("method=dp_kps", r"method\.vocabulary=PATH"), ("embedding=pretrained", r"embedding\.name_or_path=VALUE")],
)
def test_a_setting_without_a_default_is_named(choice, advice):
    with pytest.raises(ConfigError, match=advice):
        compose_settings([choice])

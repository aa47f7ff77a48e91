import pytest
from flwr.app import Context, RecordDict

from common.errors import ConfigError, DropoutError
from common.models.encoder import Encoder
from common.phrases import NumberedParty, Phrase
from server import app, failure
from server.llm.base import Request
from server.prepare.components import build_components
from server.prepare.compose import compose_settings, load_settings, store
from server.settings.schema import Hospital
from server.settings.sections import with_values
from server.vector_cache import Remembered
from simulations.federation.local_grid import LocalGrid


def test_vectors_of_synthetic_texts_are_kept_where_the_configuration_says(tmp_path):
    overrides = ["task.public_notes=60"]
    assert not isinstance(build_components(compose_settings(overrides), folder=tmp_path).encoder, Remembered)
    kept = build_components(compose_settings([*overrides, "embedding_cache=run"]), folder=tmp_path / "state").encoder
    assert isinstance(kept, Remembered)
    assert (tmp_path / "state" / "vectors.db").exists()
    assert kept.digest == Encoder.hashed_ngrams().digest
    without_a_run = build_components(compose_settings([*overrides, "embedding_cache=run"])).encoder
    assert not isinstance(without_a_run, Remembered)
    build_components(compose_settings([*overrides, f"embedding_cache={tmp_path}/own.db"]))
    assert (tmp_path / "own.db").exists()


def test_replies_are_kept_where_the_configuration_says(tmp_path):
    overrides = ["task.public_notes=60", "llm.use=[broad]"]
    for more, path in ([], tmp_path / "replies.db"), ([f"reply_cache={tmp_path}/own.db"], tmp_path / "own.db"):
        model = build_components(compose_settings([*overrides, *more]), folder=tmp_path).providers["broad"]
        model.generate([Request(task_kind="note", labels=(("a", "first"),), label="a")])
        assert path.exists()


def failure_text(folder, raised, cause=None):
    """What a run folder says of a run that failed so."""
    with pytest.raises(type(raised)), failure.logging_to(folder):
        raise raised from cause
    message = (folder / failure.FAILURE).read_text()
    assert (folder / "run.log").read_text().rstrip("\n").endswith(message)
    return message


def test_the_run_folder_has_the_text_of_our_own_errors_and_of_a_library_s_type_and_place_alone(tmp_path):
    error = DropoutError("too few parties", expected=3, got=2)
    assert failure_text(tmp_path, error) == str(error)
    assert failure_text(tmp_path, RuntimeError("Error in call to target"), ConfigError("top", got=0)) == "top; got 0"
    message = failure_text(tmp_path, RuntimeError("401 for key sk-ant-abc and the prompt about Ann"))
    assert message.startswith("RuntimeError in server.failure,")
    assert "state/traceback.txt" in message
    (tmp_path / "config.yaml").write_text("api_key: !sk-ant-abc x")
    with pytest.raises(Exception, match="sk-ant-abc") as caught, failure.logging_to(tmp_path):
        load_settings(tmp_path)
    line = next(entry.lineno for entry in caught.traceback if entry.frame.code.name == "values") + 1
    assert f"in server.prepare.compose, line {line};" in (tmp_path / failure.FAILURE).read_text()
    assert "sk-ant" not in (tmp_path / "run.log").read_text() + (tmp_path / failure.FAILURE).read_text()


def test_a_deployed_run_knows_the_hospitals_by_name_and_node(tmp_path, monkeypatch):
    hospitals = (Hospital(name="St. Mary", node=70), Hospital(name="St. Luke", node=2**64 - 1))
    store(
        with_values(compose_settings(["federation.parties=2"], "server"), {"federation.hospitals": hospitals}), tmp_path
    )

    def coordinate(_, network, folder):
        assert folder == tmp_path
        assert network._enrolled == {70: 0, 2**64 - 1: 1}
        raise DropoutError("too few", got=Phrase(NumberedParty(1), " did not answer"))

    monkeypatch.setattr(app, "coordinate", coordinate)
    context = Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config={"run-folder": str(tmp_path)})
    with pytest.raises(DropoutError):
        app.app(LocalGrid(None, 0), context)
    assert "St. Luke" in (tmp_path / "error.txt").read_text()

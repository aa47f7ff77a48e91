from common.embedding import Encoder
from common.remembered import Remembered
from server.app import Parts, composed


def test_vectors_of_synthetic_texts_are_kept_where_the_configuration_says(tmp_path):
    asked = ["task.public_notes=60"]
    assert type(Parts(composed(asked), folder=tmp_path).encoder) is Encoder
    kept = Parts(composed([*asked, "embedding_cache=run"]), folder=tmp_path / "state").encoder
    assert isinstance(kept, Remembered)
    assert (tmp_path / "state" / "vectors.db").exists()
    assert kept.digest == Encoder.embedded().digest
    assert type(Parts(composed([*asked, "embedding_cache=run"])).encoder) is Encoder  # without a run, as for a plan
    Parts(composed([*asked, f"embedding_cache={tmp_path}/own.db"]))
    assert (tmp_path / "own.db").exists()

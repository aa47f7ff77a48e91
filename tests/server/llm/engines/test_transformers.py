import pytest
import torch

from server.llm.engines.base import Job
from server.llm.engines.transformers import Noise, Transformers
from tests.support.engines import sampled
from tests.support.tiny_models import tiny_gpt2, tiny_llama


def job(**changes):
    return Job(**{"ids": (7, 8, 9), "seed": 0, "max_new_tokens": 12, "temperature": 1.0} | changes)


@pytest.fixture(scope="module", params=[tiny_llama, tiny_gpt2], ids=["llama", "gpt2"])
def folder(request, tmp_path_factory):
    """Positions are relative in one model, and absolute in the other."""
    return request.param(tmp_path_factory.mktemp("checkpoint") / "model")


def test_draws_have_the_softmax_distribution():
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05]))
    rows = [(job(seed=seed), 0) for seed in range(4000)]
    noise = Noise(rows, 1.0)
    for _ in range(2):  # each step draws anew
        drawn = noise(None, logits.repeat(4000, 1)).argmax(dim=1)
        shares = torch.bincount(drawn, minlength=4) / 4000
        # Four standard errors: false alarm below 1 in 1,000 over both steps, and fixed by the seeds.
        assert torch.all((shares - logits.exp()).abs() < 4 * (logits.exp() * (1 - logits.exp()) / 4000).sqrt())
    cold = Noise([(job(seed=seed, temperature=0.5), 0) for seed in range(4000)], 1.0)
    drawn = cold(None, logits.repeat(4000, 1)).argmax(dim=1)
    assert (drawn == 0).float().mean() > 0.25 / 0.365 - 0.03
    narrow = Noise(rows, 0.6)(None, logits.repeat(4000, 1)).argmax(dim=1)
    assert set(narrow.tolist()) == {0, 1}


def test_continuations_of_one_prompt_differ_and_do_not_depend_on_the_batch(folder):
    jobs = [job(seed=1, count=3), job(seed=2), job(seed=3, ids=tuple(range(20)), count=2, max_new_tokens=5)]
    jobs += [job(seed=seed, temperature=0.0) for seed in (4, 5)]
    narrow, wide = (
        Transformers(folder, name="m", device="cpu", dtype="float32", batch_tokens=tokens) for tokens in (1, 10_000)
    )
    results = sampled(narrow, jobs)
    assert results == sampled(wide, jobs) == sampled(wide, jobs[::-1])[::-1]
    assert [len(continuations) for continuations in results] == [3, 1, 2, 1, 1]
    assert len({tuple(ids) for ids in results[0]}) == 3
    assert all(len(ids) <= 5 for ids in results[2])
    assert results[3] == results[4]

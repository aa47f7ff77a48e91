"""DP-SGD in a party: gradients of single records, their whole numbers, noise, and what is drawn from the model."""

import logging
import math
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from client.writers import causal_model, fine_tuning
from client.writers.fine_tuning import ROOM, FineTuningWriter, Tuner, train
from common.domain import UNLABELLED
from common.errors import ConfigError
from common.plan.planned import PlannedQuery
from common.queries.texts import FineTunedSpec
from tests.support.asking import embedded
from tests.support.tiny_models import tiny_llama

LABELS = ("a", "second")
TEXTS = ("Fever.", "no cough, no pain", "chest pain since noon", "x", "")
RECORDS = embedded(TEXTS, labels=[0, 1, 0, 1, 1])
TINY = {"_WIDTH": 16, "_LAYERS": 1, "_HEADS": 2}


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    for name, value in TINY.items():
        monkeypatch.setattr(causal_model, name, value)


def base(max_tokens=24, **settings):
    return causal_model.load_causal_model(settings.pop("name_or_path", None), LABELS, max_tokens=max_tokens, **settings)


def tuner(made=None, *, lora=0, resolution=4096, micro_batch=1):
    return Tuner(made or base(), lora=lora, resolution=resolution, micro_batch=micro_batch)


def spec(**changes):
    return FineTunedSpec(**{"texts": 4, "steps": 2, "batch": 5, "max_tokens": 24} | changes)


def planned(rate=0.5, scale=100.0, **changes):
    return PlannedQuery(name="texts", spec=spec(**changes), mechanism="dp-sgd", rate=rate, redraw=rate < 1, scale=scale)


def read(made, records=RECORDS):
    return [made.read(label, text) for label, text in zip(records.labels.tolist(), records.texts, strict=True)]


def weights(made):
    return torch.cat([weight.detach().flatten() for weight in made.model.parameters()])


@cache
def folder_of(tmp_path, **signs):
    """A saved GPT-2 with dropout, a tokenizer of four words, and no token to pad with."""
    words = Tokenizer(models.WordLevel({"?": 0, "a": 1, "second": 2, "pain": 3, "<end>": 4}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, **dict(signs)).save_pretrained(tmp_path)
    config = GPT2Config(vocab_size=5, n_positions=20, n_embd=8, n_layer=1, n_head=2, resid_pdrop=0.3, bos_token_id=4)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    return str(tmp_path)


# Gradients


@pytest.mark.parametrize(("network", "lora"), [("gpt2", 0), ("gpt2", 2), ("llama", 2)])
def test_gradients_of_records_computed_together_are_those_of_each_alone(network, lora, tmp_path):
    path = str(tiny_llama(tmp_path / "llama", chat=True, tied=True)) if network == "llama" else None
    made = base(name_or_path=path)
    assert made.model.lm_head.weight is made.model.get_input_embeddings().weight  # tied: both uses count
    alone = tuner(made, lora=lora)
    together = tuner(base(name_or_path=path), lora=lora, micro_batch=len(TEXTS))
    with torch.no_grad():
        for mine, other in zip(together.weights, alone.weights, strict=True):
            mine.copy_(other.normal_(std=0.3))
    expected, rows = alone.gradients(read(made)), together.gradients(read(made))
    assert rows.shape == (len(TEXTS), alone.size)
    assert torch.allclose(rows, expected, rtol=1e-3, atol=1e-5)
    # And alone they are those of a loop of backward passes over what is behind the label, without padding.
    for record, row in zip(read(made), expected, strict=True):
        ids = torch.tensor([record.ids])
        labels = ids.masked_fill(torch.arange(len(record.ids)) < record.prefix, -100)
        alone.causal.model.zero_grad()
        alone._model(input_ids=ids, labels=labels, loss_type="ForCausalLMLoss").loss.backward()
        assert torch.allclose(torch.cat([weight.grad.flatten() for weight in alone.weights]), row, rtol=1e-3, atol=1e-6)


def test_a_record_computed_alone_has_the_same_gradient_to_the_last_bit_whoever_is_with_it():
    one = tuner()
    tokens = read(one.causal)
    for place in range(len(TEXTS)):
        assert torch.equal(one.gradients(tokens)[place], one.gradients(tokens[place : place + 1])[0])


def test_without_noise_or_clipping_it_is_plain_gradient_descent():
    made, plain = base(), base()
    wanted = spec(steps=3, batch=5, clip=10.0, resolution=2**20, learning_rate=0.1)
    optimizer = lambda parameters, rate: torch.optim.SGD(parameters, lr=rate)
    tuned = train(tuner(made, resolution=2**20), wanted, RECORDS, rate=1.0, scale=0.0, optimizer=optimizer)
    descent, alone = torch.optim.SGD(plain.model.parameters(), lr=0.1), tuner(plain)
    start = weights(plain)
    for _ in range(3):
        rows = alone.gradients(read(plain))
        assert rows.norm(dim=1).max() < 10
        alone.update(rows.sum(dim=0) / 5, descent)
    moved = (weights(plain) - start).norm()
    assert moved > 0.1
    assert (weights(tuned) - weights(plain)).norm() < 1e-3 * moved


# Whole numbers


def test_rows_are_clipped_and_rounded_without_bias_and_never_longer_than_the_bound():
    one = tuner()
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn((400, one.size), generator=generator)
    rows[:200] = rows[0] * torch.linspace(0.1, 3, 200)[:, None]
    whole = one.rounded(rows, clip=20.0)
    assert torch.equal(whole, whole.round())
    assert (whole.double() ** 2).sum(dim=1).max() <= 4096**2
    unit = 20.0 / (ROOM * 4096)
    clipped = rows * (20.0 / rows.norm(dim=1).clamp(min=20.0))[:, None]
    # One coordinate is off by a standard deviation of half a unit at most, the mean of so many by far less.
    off = (whole * unit - clipped) / unit
    assert off.abs().max() <= 1.01
    assert abs(off.mean()) < 5 * 0.5 / off.numel() ** 0.5


def test_a_row_that_rounding_makes_longer_than_the_bound_is_dropped():
    one = tuner()
    one._resolution = 64  # for more weights than it can bear: rounding adds about a quarter for each
    assert one.size / 4 > 64**2 * (1 - ROOM**2)
    rows = torch.ones((20, one.size))
    assert not one.rounded(rows, clip=1.0).any()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_not_finite_is_dropped_and_spoils_no_other(bad):
    one = tuner()
    rows = torch.ones((3, one.size))
    rows[1, 7] = bad
    whole = one.rounded(rows, clip=1.0)
    assert not whole[1].any()
    assert whole[0].any()
    assert torch.isfinite(whole).all()


@pytest.mark.parametrize("place", range(len(TEXTS)))
def test_one_record_moves_the_sum_by_no_more_than_the_sensitivity(place):
    made = base()
    mine = read(made)
    order = [*(other for other in range(len(mine)) if other != place), place]
    sums = []
    for count in (len(mine), len(mine) - 1):
        one = tuner(made)
        one._coins.manual_seed(3)  # the same for those before the last
        sums.append(one.clipped_sum([mine[at] for at in order[:count]], clip=0.01))
    moved = sums[0] - sums[1]
    assert 0.9 * 4096 < moved.norm() <= spec().sensitivity.l2_squared ** 0.5 == 4096


def test_too_many_weights_for_the_whole_numbers_are_refused():
    with pytest.raises(ConfigError, match=r"resolution of 64"):
        tuner(resolution=64)
    made = base()
    assert tuner(made, lora=1, resolution=64 * 3).size < sum(weight.numel() for weight in made.model.parameters())


# Noise


@pytest.fixture
def drawn(monkeypatch):
    calls = []

    def draw(scale, size, key):
        calls.append((scale, size, key))
        return np.full(size, 3, dtype=np.int64)

    monkeypatch.setattr(fine_tuning, "discrete_gaussian", draw)
    return calls


@pytest.mark.parametrize("records", [RECORDS, embedded(())], ids=["some", "none"])
def test_every_step_is_noised_on_every_weight_with_a_key_of_its_own_whoever_was_drawn(records, drawn):
    one = tuner()
    before = weights(one.causal)
    tuned = train(one, spec(steps=4), records, rate=0.3, scale=123.0)
    assert [call[:2] for call in drawn] == [(123.0, one.size)] * 4
    assert len({key for _, _, key in drawn}) == 4
    assert not torch.equal(before, weights(tuned))


def test_sums_are_divided_by_the_public_number_whoever_was_drawn(drawn):
    optimizer = lambda parameters, rate: torch.optim.SGD(parameters, lr=1.0)
    moves = []
    for records, batch in ((embedded(()), 5), (embedded(()), 10)):
        one = tuner()
        before = weights(one.causal)
        tuned = train(one, spec(steps=1, batch=batch), records, rate=0.5, scale=1.0, optimizer=optimizer)
        moves.append((before - weights(tuned)).double())
    assert moves[0].mean() == pytest.approx(3 / (ROOM * 4096) / 5, rel=1e-3)
    assert moves[1].mean() == pytest.approx(3 / (ROOM * 4096) / 10, rel=1e-3)


def test_each_step_draws_records_anew_with_the_rate(monkeypatch):
    sizes = []
    monkeypatch.setattr(
        Tuner, "clipped_sum", lambda self, batch, *, clip: sizes.append(len(batch)) or torch.zeros(self.size)
    )
    many = embedded([f"note {i}" for i in range(200)])
    train(tuner(), spec(steps=50), many, rate=0.25, scale=0.0)
    assert len(set(sizes)) > 1
    # 10^4 draws: a standard deviation of 43.
    assert abs(sum(sizes) - 2500) < 5 * 43
    sizes.clear()
    train(tuner(), spec(steps=2), many, rate=1.0, scale=0.0)
    assert sizes == [200, 200]


def test_a_tuned_model_learns_and_logs_nothing(caplog):
    caplog.set_level(logging.DEBUG)
    many = embedded(["aaaa"] * 8)
    tuned = train(tuner(), spec(steps=12, learning_rate=0.05, batch=8, clip=5.0), many, rate=1.0, scale=0.0)
    written = tuned.write(0, 20, temperature=0.2, top_p=0.9)
    assert sum(set(text) == {"a"} for text in written) > 10
    assert not [record for record in caplog.records if record.name.startswith("caucus")]


# What is written


@pytest.mark.parametrize("lora", [0, 2])
def test_a_fine_tuning_writer_answers_with_texts_of_all_labels_also_without_records(lora):
    for records in (RECORDS, embedded(())):
        texts = FineTuningWriter().write(planned(texts=5, lora=lora), records, labels=LABELS, encoder=None, key=b"")
        assert sorted(label for label, _ in texts) == [0, 0, 0, 1, 1]
        assert all(text.strip() for _, text in texts)


def test_adapters_leave_the_other_weights_and_end_in_them():
    made = base()
    before = made.model.transformer.wte.weight.clone()
    linear = made.model.transformer.h[0].mlp.c_fc.weight.clone()
    tuned = train(tuner(made, lora=2), spec(), RECORDS, rate=1.0, scale=50.0)
    assert torch.equal(tuned.model.transformer.wte.weight, before)
    assert not torch.equal(tuned.model.transformer.h[0].mlp.c_fc.weight, linear)


def test_a_model_that_writes_nothing_gives_fewer_texts(monkeypatch):
    made = base()
    monkeypatch.setattr(type(made.tokenizer), "batch_decode", lambda self, rows, **_: [" "] * len(rows))
    assert made.write(0, 3, temperature=1.0, top_p=1.0) == []
    assert made.write(0, 0, temperature=1.0, top_p=1.0) == []


def test_a_record_is_its_label_its_text_and_an_end_and_no_longer_than_the_limit():
    made = base(max_tokens=16)
    end = made.tokenizer.eos_token_id
    short, long = made.read(1, "ab"), made.read(0, "b" * 100)
    assert made.tokenizer.decode(short.ids) == "second\nab<|end|>"
    assert (short.prefix, short.ids[-1]) == (7, end)
    assert (len(long.ids), end in long.ids) == (16, False)
    # A text cannot end itself, and half a character is no error.
    assert made.read(0, "<|end|>").ids.count(end) == 1
    assert made.read(0, "\ud800").prefix == 2
    assert all(0 < len(text) <= 14 for text in made.write(0, 5, temperature=1.0, top_p=1.0))


# The party's own model


def test_a_checkpoint_is_trained_and_sampled_without_dropout_or_a_token_to_pad_with(tmp_path):
    path = folder_of(tmp_path, eos_token="<end>")
    made = base(max_tokens=12, name_or_path=path)
    assert made.tokenizer.pad_token is None
    assert {module.p for module in made.model.modules() if isinstance(module, torch.nn.Dropout)} == {0.0}
    records = embedded(["pain pain", "pain"], labels=[0, 1])
    for micro_batch in (1, 2):
        settings = FineTuningWriter(name_or_path=path, micro_batch=micro_batch)
        settings.check(planned(max_tokens=12), LABELS)
        texts = settings.write(planned(max_tokens=12), records, labels=LABELS, encoder=None, key=b"")
        assert {label for label, _ in texts} <= {0, 1}


def test_a_network_of_llamas_kind_gets_adapters_in_all_linear_layers_and_writes(tmp_path):
    path = str(tiny_llama(tmp_path / "llama", chat=True, tied=True))
    made = tuner(base(name_or_path=path), lora=2)
    adapted = {name.split(".")[-4] for name, weight in made._model.named_parameters() if weight.requires_grad}
    assert adapted == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    settings = FineTuningWriter(name_or_path=path, micro_batch=2)
    texts = settings.write(planned(lora=2, resolution=8192), RECORDS, labels=LABELS, encoder=None, key=b"")
    assert {label for label, _ in texts} == {0, 1}


@pytest.mark.parametrize(
    ("settings", "query", "message"),
    [
        ({"name_or_path": "no-such-model"}, {}, "name_or_path"),
        ({"device": "abacus"}, {}, "device"),
        ({"max_steps": 1}, {}, "steps"),
        ({}, {"max_tokens": 12}, "at least 15, for labels"),
    ],
)
def test_what_cannot_be_done_is_said_before_any_record_is_seen(settings, query, message):
    with pytest.raises(ConfigError, match=message):
        FineTuningWriter(**settings).check(planned(**query), LABELS)


def test_a_tokenizer_without_an_end_and_a_short_context_are_refused(tmp_path):
    path = folder_of(tmp_path)
    with pytest.raises(ConfigError, match="end-of-text"):
        base(name_or_path=path)
    (tmp_path / "ended").mkdir()
    path = folder_of(tmp_path / "ended", eos_token="<end>")
    with pytest.raises(ConfigError, match="at most 20"):
        base(name_or_path=path, max_tokens=21)


def test_a_model_whose_gradients_opacus_gets_wrong_is_refused_but_trained_one_by_one(monkeypatch):
    right = Tuner.gradients
    monkeypatch.setattr(Tuner, "gradients", lambda self, records: 1.01 * right(self, records))
    with pytest.raises(ConfigError, match="micro_batch"):
        tuner(micro_batch=2)
    tuner(micro_batch=1)
    monkeypatch.setattr(Tuner, "gradients", lambda self, records: right(self, records).no_such_thing)
    with pytest.raises(ConfigError, match="micro_batch"):
        tuner(micro_batch=2)


@pytest.mark.slow
def test_simulated_hospitals_load_the_first_model_of_a_process_at_the_same_time():
    code = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from client.writers.causal_model import load_causal_model

sys.setswitchinterval(1e-5)
together = threading.Barrier(3)

def loaded(_):
    together.wait()
    return load_causal_model(None, ["a"], max_tokens=16)

with ThreadPoolExecutor(3) as threads:
    assert len(list(threads.map(loaded, range(3)))) == 3
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_without_labels_a_text_begins_with_the_line_feed_alone():
    alone = causal_model.load_causal_model(None, (UNLABELLED,), max_tokens=24)
    (prefix,), (named, _) = alone.prefixes, base().prefixes
    assert alone.tokenizer.decode(prefix).strip() == ""
    assert len(prefix) < len(named)
    assert prefix[-1] == named[-1]
    assert alone.write(0, 3, temperature=1.0, top_p=1.0)

import os
import subprocess
import sys
from functools import cache

import pytest

from common.errors import ConfigError, ProviderError
from server.llm.engines import openvino
from server.llm.engines.base import Job
from server.llm.engines.openvino import OpenVino
from tests.support.engines import sampled
from tests.support.tiny_gguf import tiny_gguf

FRESH = """
import sys
from pathlib import Path
from server.llm.engines.base import Job
from server.llm.engines.openvino import OpenVino
OpenVino(Path(sys.argv[1]), name="m").sample(
    [Job(ids=(30 + i, 31, 32), seed=i, count=3, max_new_tokens=20, temperature=1.0) for i in range(70)],
    lambda place, continuations: print(place, continuations),
)
assert sys.modules["openvino_telemetry"] is None
assert not any(module.startswith("openvino_telemetry.") for module in sys.modules)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_gguf(tmp_path_factory.mktemp("gguf")).parent


@pytest.fixture(scope="module")
def engine(folder):
    return OpenVino(folder, name="m")


def job(**changes):
    return Job(**{"ids": (30, 31, 32), "seed": 5, "max_new_tokens": 20, "temperature": 1.0} | changes)


@pytest.mark.slow
def test_two_fresh_processes_give_the_same_tokens_and_report_to_nobody(folder, tmp_path):
    command, environment = [sys.executable, "-c", FRESH, str(folder)], os.environ | {"HOME": str(tmp_path)}
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert first == second
    assert len(first.splitlines()) == 70
    assert not list(tmp_path.rglob("*ga_cid"))  # the identity under which telemetry would report


def test_no_temperature_takes_the_likeliest_and_a_small_top_p_few(engine):
    cold = sampled(engine, [job(seed=seed, temperature=0.0) for seed in range(3)])
    assert cold == [cold[0]] * 3
    assert sampled(engine, [job(seed=seed, top_p=0.001) for seed in range(3)]) == cold


def test_only_top_p_below_1_is_among_the_likeliest_tokens(engine, monkeypatch):
    monkeypatch.setattr(openvino, "LIKELIEST", 1)
    cold = sampled(engine, [job(temperature=0.0)])
    assert sampled(engine, [job(top_p=0.99)]) == cold
    assert sampled(engine, [job(top_p=1.0)]) != cold


def test_a_text_does_not_depend_on_the_order_and_prompts_that_begin_alike_are_each_done_once(engine):
    jobs = [job(ids=(*range(30, 30 + nth % 3 * 40), 60 + nth), seed=nth, count=1 + nth % 2) for nth in range(12)]
    texts = sampled(engine, jobs)
    assert [len(continuations) for continuations in texts] == [prompt.count for prompt in jobs]
    assert sampled(engine, jobs[::-1]) == texts[::-1]
    assert sampled(engine, []) == []


@pytest.mark.parametrize("length", [31, 32, 33, 64])
def test_sample_one_prompt_several_times_gives_what_each_job_gives_alone(engine, length):
    jobs = [job(ids=tuple(range(30, 30 + length)), seed=seed, temperature=0.3) for seed in range(6)]
    together, alone = sampled(engine, jobs), [sampled(engine, [each])[0] for each in jobs]
    assert sum(one != other for one, other in zip(together, alone, strict=True)) < 2  # by rounding


def test_a_stop_ends_a_continuation(engine):
    (answers,) = sampled(engine, [job(count=30, max_new_tokens=200, stop="\n")])
    decoded = [openvino._pipeline(engine._weights).get_tokenizer().decode(ids) for ids in answers]
    assert not any("\n" in text for text in decoded)
    assert sum(len(ids) < 200 for ids in answers) > 20


def test_an_exported_model_is_read_in_place_of_a_file(folder, engine, tmp_path):
    import openvino
    import openvino_genai
    from openvino_tokenizers import convert_tokenizer
    from transformers import AutoTokenizer

    file = tmp_path / "tiny.gguf"
    file.write_bytes((folder / "tiny.gguf").read_bytes())
    scheduler = openvino_genai.SchedulerConfig()
    openvino_genai.ContinuousBatchingPipeline(file, scheduler, "CPU", {"enable_save_ov_model": True})
    tokenizer = AutoTokenizer.from_pretrained(tmp_path, gguf_file=file.name)
    for kind, network in zip(("", "de"), convert_tokenizer(tokenizer, with_detokenizer=True), strict=True):
        openvino.save_model(network, tmp_path / f"openvino_{kind}tokenizer.xml")
    file.unlink()
    assert sampled(OpenVino(tmp_path, name="m"), [job(count=3)]) == sampled(engine, [job(count=3)])


def test_a_folder_without_one_file_and_a_damaged_file_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"openvino_model\.xml.*; got 0"):
        OpenVino(tmp_path, name="m")
    (tmp_path / "m.gguf").write_bytes(b"GGUF cut off")
    with pytest.raises(ConfigError, match="loaded"):
        OpenVino(tmp_path, name="m")


class Failing:
    """A pipeline whose call `what` fails, the number `after`, counted from 0."""

    def __init__(self, pipeline, what, after):
        self._pipeline, self._what, self._left = pipeline, what, after

    def __getattr__(self, name):
        if name == self._what:
            self._left -= 1
            if self._left < 0:
                raise RuntimeError("no memory")
        return getattr(self._pipeline, name)


@pytest.mark.parametrize(("what", "after"), [("add_request", 1), ("step", 0), ("step", 3)])
def test_a_failure_of_the_engine_is_one_of_the_provider_and_spoils_no_later_call(engine, monkeypatch, what, after):
    jobs = [job(seed=seed) for seed in range(3)]
    expected, loaded = sampled(engine, jobs), openvino._pipeline
    with monkeypatch.context() as patched:
        failing = cache(lambda weights: Failing(loaded(weights), what, after))
        patched.setattr(openvino, "_pipeline", failing)
        with pytest.raises(ProviderError, match="model m"):
            sampled(engine, jobs)
        assert failing.cache_info().currsize == 0
    loaded.cache_clear()
    assert sampled(engine, jobs) == expected


@pytest.mark.parametrize("lengths", [(1, 500, 500), (500, 1, 1)])
def test_a_call_that_is_broken_off_changes_no_text_of_the_next(engine, lengths):
    def stop(*_):
        raise KeyboardInterrupt

    jobs = [job(seed=seed) for seed in range(3)]
    expected = sampled(engine, jobs)
    with pytest.raises(KeyboardInterrupt):
        engine.sample([job(max_new_tokens=length, seed=7) for length in lengths], stop)
    assert sampled(engine, jobs) == expected
    assert not openvino._pipeline(engine._weights).has_non_finished_requests()


def test_a_prompt_that_does_not_fit_the_cache_has_empty_texts(engine, monkeypatch):
    import openvino_genai

    scheduler = openvino_genai.SchedulerConfig()
    scheduler.num_kv_blocks = 4  # of 32 tokens
    small = cache(lambda weights: openvino_genai.ContinuousBatchingPipeline(weights, scheduler, "CPU", {}))
    monkeypatch.setattr(openvino, "_pipeline", small)
    assert sampled(engine, [job(ids=tuple(range(30, 90)) * 8, count=2)]) == [[[], []]]
    assert sampled(engine, [job()])[0][0]

"""A text is its job's alone, whatever is computed beside it."""

import sys

import pytest

from server.llm.engines.base import Job
from server.llm.engines.openvino import OpenVino
from tests.support.tiny_gguf import tiny_gguf


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return OpenVino(tiny_gguf(tmp_path_factory.mktemp("tiny")).parent, name="tiny")


def _sampled(engine, jobs):
    written = {}

    def done(place, continuations):
        assert place not in written
        written[place] = continuations

    engine.sample(jobs, done)
    return [written[place] for place in range(len(jobs))]


def _jobs(beginning, count):
    return [
        Job(ids=(*beginning, 20 + nth), seed=nth, count=1 + nth % 2, max_new_tokens=5, temperature=0.7)
        for nth in range(count)
    ]


def test_each_job_is_done_once_in_any_order_and_with_prompts_that_begin_alike(engine):
    jobs = [*_jobs(range(30, 100), 5), *_jobs(range(40, 80), 3), *_jobs((), 4)]
    texts = _sampled(engine, jobs)
    assert [len(continuations) for continuations in texts] == [job.count for job in jobs]
    assert [*reversed(_sampled(engine, jobs[::-1]))] == texts
    assert _sampled(engine, []) == []


def test_openvino_does_not_report_its_import(engine):
    assert sys.modules["openvino_telemetry"] is None
    assert engine

"""The audit passes sound code and finds the faults that it is for, through the whole pipeline, with little power.

Noise is the operating system's: each statistical check of sound code fails with probability `audit.ALARM`, 6e-7, all
of them in here together with less than 6e-6. That a planted fault is not found has less than 1e-7 each.
"""

from unittest import mock

import pytest

from client import answer
from common import rng
from common.privacy.samplers import discrete_gaussian, discrete_laplace
from server.federation import ask
from simulations.laboratory.audit import canaries, measure
from simulations.laboratory.audit.federation import half_of_the_noise
from simulations.laboratory.audit.finding import AuditFinding


def failed(findings):
    return [finding.check for finding in findings if not finding.passed]


@pytest.mark.parametrize("secure", [True, False])
def test_each_party_adds_one_share_under_a_key_of_its_own(secure):
    assert not failed(measure.structure(secure=secure))


def test_structure_shows_keys_that_are_used_again():
    with mock.patch.object(rng, "secure_bytes", bytes):
        failures = [check.split(": ")[1] for check in failed(measure.structure(secure=False))]
    assert failures == ["different keys", "those the system's entropy", "keys taken by all answers"]


def test_a_subsample_is_drawn_once_or_for_each_answer_as_planned():
    assert not failed(measure.subsamples())


def without_one(sampler):
    """As the sampler, but the first draw stays away."""
    calls = []

    def draw(scale, size, key, **shares):
        calls.append(key)
        return sampler(scale, size, key, **shares) * (len(calls) > 1)

    return draw


def test_variance_shows_one_share_missing_of_ten():
    assert measure.variance(parties=10, coordinates=20_000).passed
    with mock.patch.object(answer, "discrete_gaussian", without_one(discrete_gaussian)):
        assert not measure.variance(parties=10, coordinates=20_000).passed


@pytest.mark.parametrize("scale", [0.8, 20.0])
def test_laplace_shows_a_scale_that_is_a_fifth_too_small(scale):
    assert measure.laplace(scale=scale, parties=4, coordinates=20_000).passed
    smaller = lambda scale, size, key, *, shares: discrete_laplace(scale / 1.2, size, key, shares=shares)
    with mock.patch.object(answer, "discrete_laplace", smaller):
        assert not measure.laplace(scale=scale, parties=4, coordinates=20_000).passed


@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_canaries_show_half_of_sigma(epsilon):
    assert canaries.canaries_in_votes(epsilon, labels=64, rounds=2).passed
    with half_of_the_noise():
        assert not canaries.canaries_in_votes(epsilon, labels=64, rounds=2).passed


@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_canaries_of_class_sums_show_half_of_sigma(epsilon):
    assert canaries.canaries_in_class_sums(epsilon, labels=2048, rounds=2).passed
    with half_of_the_noise():
        assert not canaries.canaries_in_class_sums(epsilon, labels=2048, rounds=2).passed


def test_canaries_show_twice_of_sigma():
    double = lambda sigma, size, key: discrete_gaussian(2 * sigma, size, key)
    with mock.patch.object(answer, "discrete_gaussian", double), mock.patch.object(ask, "check_sum"):
        assert not canaries.canaries_in_votes(8.0, labels=64, rounds=2).passed  # without the check, which finds it too


def test_the_table_says_what_failed_and_so_does_the_exit_code(capsys, monkeypatch):
    sound = AuditFinding(check="one thing", figure="3", limit="3", passed=True)
    wrong = AuditFinding(check="another", figure="4", limit="3", passed=False)
    monkeypatch.setattr(measure, "_all", lambda *, quick: [sound, wrong] if quick else [sound])
    measure.main([])
    assert "FAILED" not in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        measure.main(["--quick"])
    assert ended.value.code == 1
    output = capsys.readouterr().out
    assert [line.split()[-1] for line in output.splitlines()[1:]] == ["passed", "FAILED"]
    assert "one thing" in output


@pytest.mark.parametrize("finds", [True, False])
def test_runs_that_are_repeated_count_alarms_and_faults_found(finds, monkeypatch):
    def of_votes(*_, **__):
        sound = answer.discrete_gaussian is discrete_gaussian
        return AuditFinding(check="", figure="", limit="", passed=sound or not finds)

    monkeypatch.setattr(canaries, "canaries_in_votes", of_votes)
    repeated = list(measure._repeated(3))
    assert [finding.figure for finding in repeated] == [f"0 alarms, {3 * finds} halved sigmas seen"] * 4
    assert all(finding.passed == finds for finding in repeated)

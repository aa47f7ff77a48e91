"""Each way of rough products keeps its bound, on vectors that bring it near to it, and is taken where it should be."""

import os
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from client.contributions import rough_products
from client.contributions.rough_products import (
    DigitProducts,
    FloatProducts,
    PackedDigits,
    adds_exactly,
    check_precision,
)
from client.contributions.votes import votes_of
from client.session import RefusalError
from common.queries.votes import Votes, VotesSpec

_DIM = 96
_exactly = pytest.mark.skipif(not adds_exactly(), reason="this processor adds products of digits in 16 bits")
_WAYS = [FloatProducts, pytest.param(DigitProducts, marks=_exactly)]


def _on_grid(rows):
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    return torch.from_numpy(np.rint(rows * 2**24) / 2**24).float()


def _kinds():
    rng = np.random.default_rng(1)
    normal = rng.standard_normal((40, _DIM))
    copies = np.repeat(normal[:4], 10, axis=0) + rng.choice([0, 1e-6, 1e-4], (40, 1)) * normal
    tiny = normal * np.exp(-rng.uniform(0, 20, (40, _DIM)))
    peaks = normal + 30 * (np.arange(_DIM) == 5)
    return {
        "random": normal,
        "copies": copies,
        "tiny entries": tiny,
        "one large entry": peaks,
        "axes": np.eye(_DIM)[:40],
        "flat": np.sign(normal),
        "nothing at all": np.zeros((40, _DIM)),
        # The rest of each entry is just below one half of the first digit, always on the same side.
        "rests": np.concatenate([rng.integers(-60, 60, (40, _DIM - 1)) + 0.498, np.full((40, 1), 127)], 1),
    }


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("right", _kinds())
@pytest.mark.parametrize("left", _kinds())
def test_no_error_exceeds_its_bound(way, left, right, monkeypatch):
    monkeypatch.setattr(rough_products, "_PART", 16)
    records, candidates = _on_grid(_kinds()[left]), _on_grid(_kinds()[right])
    rough = way(candidates, 40, 48)(records)
    assert rough.values.shape == (40, 48)
    error = np.abs(rough.values.numpy()[:, :40] * rough.unit - (records.double() @ candidates.double().T).numpy())
    assert (error < rough.error).all()


@_exactly
def test_the_bound_of_digits_is_reached_within_a_factor():
    vectors = _on_grid(_kinds()["rests"])
    rough = DigitProducts(vectors, 40, 40)(vectors)
    error = np.abs(rough.values.numpy() * rough.unit - (vectors.double() @ vectors.double().T).numpy())
    assert (error > 0.5 * rough.error).any()


@_exactly
def test_a_bound_too_small_moves_votes(monkeypatch):
    rng = np.random.default_rng(2)
    near = np.repeat(_kinds()["rests"][:2], 20, axis=0) + 0.3 * rng.uniform(-1, 1, (40, _DIM))
    query = Votes(
        spec=VotesSpec(top=8, furthest=True), vectors=_on_grid(near).numpy(), labels=np.zeros(40, dtype=np.int32)
    )
    records, labels = _on_grid(_kinds()["rests"]).numpy(), np.zeros(40, dtype=np.int32)
    expected = votes_of(query, records, labels)
    monkeypatch.setattr(rough_products, "_FEW", 0)
    monkeypatch.setattr(rough_products, "_COARSE", 1.0)
    monkeypatch.setattr(rough_products, "multiplies_digits", lambda: True)
    np.testing.assert_array_equal(votes_of(query, records, labels), expected)
    digits = DigitProducts._digits
    monkeypatch.setattr(DigitProducts, "_digits", lambda *of: tuple(0 * bound for bound in digits(*of)))
    assert not np.array_equal(votes_of(query, records, labels), expected)


@_exactly
@pytest.mark.parametrize("share", [1.0, 0.999])
@pytest.mark.parametrize("signs", [1, 0])
def test_the_largest_sums_of_digits_are_only_rounded(share, signs):
    rng = np.random.default_rng(3)
    dim = rough_products._MOST_DIMENSIONS
    left, right = (np.where(rng.random((2, 5, dim)) < share, 127, 126) for _ in range(2))
    right *= signs or rng.choice([-1, 1], (2, 5, 1))
    found = PackedDigits(torch.from_numpy(right).to(torch.int8), rows=5)(torch.from_numpy(left).to(torch.int8))
    exact = 254 * left[0] @ right[0].T + left[0] @ right[1].T + left[1] @ right[0].T
    sizes = 254 * abs(left[0]) @ abs(right[0]).T + abs(left[0]) @ abs(right[1]).T + abs(left[1]) @ abs(right[0]).T
    assert sizes.max() > 2**35
    off = np.abs(found.double().numpy() - exact)
    assert (off <= 4.01 * 2**-24 * sizes).all()
    assert off.any() == (share < 1)


@_exactly
def test_vectors_that_fill_all_digits_of_the_most_dimensions():
    flat = torch.full((4, rough_products._MOST_DIMENSIONS), 2.0**-7)
    flat[1, ::2] *= -1
    flat[2] *= 2.0**-17
    flat[3] = 0
    rough = DigitProducts(flat, 4, 4)(flat)
    error = np.abs(rough.values.numpy() * rough.unit - (flat.double() @ flat.double().T).numpy())
    assert (error < rough.error).all()
    assert (rough.error < 1e-2).all()


@_exactly
def test_the_way_taken(monkeypatch):
    vectors = _on_grid(_kinds()["random"])
    few, many = 39, 40
    monkeypatch.setattr(rough_products, "_FEW", few)
    capable = lambda value: monkeypatch.setattr(rough_products, "multiplies_digits", lambda: value)  # noqa: E731
    taken = lambda candidates, records: type(rough_products.rough_products(candidates, records, width=40))  # noqa: E731
    capable(True)
    assert taken(vectors[:few], many) is FloatProducts
    assert taken(vectors, many) is DigitProducts
    assert taken(vectors, few) is FloatProducts
    assert taken(_on_grid(np.eye(many, 2**14 + 1)), many) is FloatProducts
    with monkeypatch.context() as patch:
        patch.setattr(rough_products, "_COARSE", 1e-9)
        assert taken(vectors, many) is FloatProducts
    assert taken(vectors, many) is DigitProducts
    capable(False)
    assert taken(vectors, many) is FloatProducts


def test_the_processors_on_which_digits_are_multiplied(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_int8": True})
    for exactly in (True, False):
        monkeypatch.setattr(rough_products, "adds_exactly", lambda exactly=exactly: exactly)
        rough_products.multiplies_digits.cache_clear()
        assert rough_products.multiplies_digits() is exactly
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"architecture": "aarch64"})
    rough_products.multiplies_digits.cache_clear()
    assert not rough_products.multiplies_digits()
    rough_products.multiplies_digits.cache_clear()


@pytest.mark.parametrize(("set_of_instructions", "exact"), [("AVX2", False), ("SSE41", False), ("ALL", True)])
def test_a_matrix_library_that_adds_digits_in_16_bits_is_found_out(set_of_instructions, exact):
    capabilities = torch.cpu.get_capabilities()
    if exact and not any(capabilities.get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8")):
        pytest.skip("this processor adds in 16 bits")
    code = "from client.contributions.rough_products import adds_exactly; print(adds_exactly())"
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": set_of_instructions}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout.decode().strip() == str(exact)


@pytest.mark.parametrize("operators", [{}, {"qlinear_prepack": Mock(side_effect=RuntimeError)}])
def test_a_library_without_the_operators_multiplies_in_float32(operators, monkeypatch):
    monkeypatch.setattr(torch.ops, "onednn", SimpleNamespace(**operators))
    assert not adds_exactly()


def test_a_device_multiplies_in_float32(monkeypatch):
    monkeypatch.setattr(rough_products, "multiplies_digits", lambda: True)
    monkeypatch.setattr(rough_products, "_FEW", 39)
    monkeypatch.setattr(rough_products, "_DEVICE", torch.device("meta"))
    vectors = _on_grid(_kinds()["random"])
    products = rough_products.rough_products(vectors, 1000, width=48)
    assert isinstance(products, FloatProducts)
    values = products(vectors).values
    assert (values.device.type, values.shape, values.dtype) == ("meta", (40, 48), torch.float32)


def test_products_with_fewer_bits_are_refused(monkeypatch):
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "STRICT")
    check_precision()
    for backend in (torch.backends.mkldnn, torch.backends.cuda):
        before = backend.matmul.fp32_precision
        backend.matmul.fp32_precision = "tf32"
        try:
            with pytest.raises(RefusalError, match="expected full precision; got tf32"):
                check_precision()
        finally:
            backend.matmul.fp32_precision = before
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    with pytest.raises(RefusalError, match="got NVIDIA_TF32_OVERRIDE"):
        check_precision()
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16")
    vectors = np.eye(4, dtype=np.float32)
    query = Votes(spec=VotesSpec(top=8), vectors=vectors, labels=np.zeros(4, dtype=np.int32))
    with pytest.raises(RefusalError, match="got ONEDNN_DEFAULT_FPMATH_MODE"):
        votes_of(query, vectors, np.zeros(4, dtype=np.int32))

import hashlib
import itertools

import numpy as np
import pytest
from scipy import stats

from common.errors import InternalError, ProtocolError
from common.secagg import shamir
from tests.support.shares import combine, split

SECRET = bytes(range(100, 132))
ENTROPY = bytes(range(32))


def interpolate(shares):
    """Lagrange at 0 with Python's integers: the oracle for the vectorised path."""
    limbs = [0] * 16
    for point, share in shares.items():
        weight = 1
        for other in shares:
            if other != point:
                weight = weight * other * pow(other - point, -1, shamir.PRIME) % shamir.PRIME
        for place in range(16):
            value = int.from_bytes(share[4 * place : 4 * place + 4], "little")
            limbs[place] = (limbs[place] + weight * value) % shamir.PRIME
    return sum(limb << (20 * place) for place, limb in enumerate(limbs)).to_bytes(40, "little")[:32]


def test_the_modulus_is_prime():
    assert all(shamir.PRIME % factor for factor in range(2, 1025))
    assert shamir.PRIME > 2**20


@pytest.mark.parametrize(("count", "threshold"), [(1, 1), (2, 2), (5, 1), (5, 3), (5, 5)])
def test_any_threshold_shares_give_the_secret(count, threshold):
    shares = split(SECRET, threshold, range(1, count + 1), ENTROPY)
    for size in range(threshold, count + 1):
        for points in itertools.combinations(shares, size):
            assert combine({point: shares[point] for point in points}, threshold) == SECRET


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32, SECRET])
def test_an_independent_interpolation_agrees(secret):
    points = [1, 7, 99, 1000, shamir.PRIME - 1]
    shares = split(secret, 4, points, ENTROPY)
    assert interpolate({point: shares[point] for point in points[1:]}) == secret
    assert combine({point: shares[point] for point in points[1:]}, 4) == secret


def test_large_groups_stay_exact():
    """Full-size coefficients and 700 terms: a product that lost one bit would not pass the checksum."""
    points = range(shamir.PRIME - 1000, shamir.PRIME)
    shares = split(SECRET, 700, points, ENTROPY)
    kept = dict(itertools.islice(shares.items(), 250, 950))
    assert combine(kept, 700) == SECRET == interpolate(kept)


def test_many_secrets_at_once():
    secrets = [hashlib.sha256(bytes([i])).digest() for i in range(5)]
    split = shamir.split_many(secrets, 3, [1, 2, 3, 4], ENTROPY, label=b"")
    named = {f"secret {i}": {point: shares[point] for point in (4, 2, 1)} for i, shares in enumerate(split)}
    assert list(shamir.combine_many(named, 3, label=b"").values()) == secrets
    assert shamir.combine_many({}, 3, label=b"") == {}


def test_secrets_split_together_have_coefficients_of_their_own():
    first, second = shamir.split_many([SECRET, SECRET], 2, [1, 2], ENTROPY, label=b"")
    assert first[1] != second[1]


def test_fewer_than_threshold_shares_are_uniform_whatever_the_secret():
    """Chi-square of a share's residues in 64 bins against uniform, for two opposite secrets.

    Entropy is fixed, so this cannot flicker; over random entropy the false-alarm rate is 1e-6.
    """
    edges = np.linspace(0, shamir.PRIME, 65)
    for secret in (bytes(32), b"\xff" * 32):
        shares = [split(secret, 2, [3, 5], hashlib.sha256(bytes([i])).digest())[3] for i in range(250)]
        counts, _ = np.histogram(np.frombuffer(b"".join(shares), "<u4"), edges)
        assert stats.chisquare(counts, np.diff(edges) / shamir.PRIME * counts.sum()).pvalue > 1e-6 / 2


def test_coefficients_are_drawn_by_rejection(monkeypatch):
    ceiling = 2**32 // shamir.PRIME * shamir.PRIME
    words = [ceiling, 5, 2**32 - 1, ceiling - 1]
    stream = np.array(words * 20, "<u4").tobytes()
    lengths = []

    def keystream(key, count):
        lengths.append(count)
        return stream[:count]

    monkeypatch.setattr(shamir, "keystream", keystream)
    assert shamir._uniform(ENTROPY, 10).tolist() == [5, shamir.PRIME - 1] * 5
    assert lengths == [72, 144]


def test_one_share_less_than_needed_is_refused():
    shares = split(SECRET, 3, [1, 2, 3], ENTROPY)
    del shares[2]
    with pytest.raises(ProtocolError, match="at least 3"):
        combine(shares, 3)


def test_a_lower_threshold_than_at_splitting_gives_an_error_not_a_secret():
    shares = split(SECRET, 3, [1, 2, 3], ENTROPY)
    with pytest.raises(ProtocolError, match="do not fit"):
        combine(shares, 2)


def test_shares_under_another_label_do_not_fit():
    shares = split(SECRET, 2, [1, 2], ENTROPY, label=b"round 1")
    assert combine(shares, 2, label=b"round 1") == SECRET
    with pytest.raises(ProtocolError, match="do not fit"):
        combine(shares, 2, label=b"round 2")


def test_each_single_bit_matters():
    """Every bit that leaves a residue a residue: the flipped share must be noticed. 1 miss in 2^64 by chance."""
    shares = split(SECRET, 2, [1, 2], ENTROPY)
    for bit in range(8 * shamir.SHARE_BYTES):
        altered = (int.from_bytes(shares[2], "little") ^ (1 << bit)).to_bytes(shamir.SHARE_BYTES, "little")
        with pytest.raises(ProtocolError):
            combine({1: shares[1], 2: altered}, 2)


def test_shares_at_the_wrong_points_do_not_fit():
    shares = split(SECRET, 2, [1, 2], ENTROPY)
    with pytest.raises(ProtocolError, match="do not fit"):
        combine({1: shares[2], 2: shares[1]}, 2)


def test_shares_of_two_secrets_do_not_fit():
    first, second = shamir.split_many([SECRET, bytes(32)], 2, [1, 2], ENTROPY, label=b"")
    with pytest.raises(ProtocolError, match="do not fit"):
        combine({1: first[1], 2: second[2]}, 2)


def test_limbs_beyond_20_bits_do_not_fit():
    """The modulus is above 2^20, so a false share can ask for a limb that no secret has."""
    limb = (2**20).to_bytes(4, "little")
    with pytest.raises(ProtocolError, match="do not fit"):
        combine({1: limb * 16}, 1)


@pytest.mark.parametrize("share", [b"", bytes(63), bytes(65), b"\xff" * 64, "x" * 64, None], ids=repr)
def test_malformed_shares_are_refused(share):
    shares = split(SECRET, 2, [1, 2], ENTROPY)
    with pytest.raises(ProtocolError, match="share") as caught:
        shamir.combine_many({"party 7": {1: shares[1], 2: share}}, 2, label=b"")
    assert "party 7" in str(caught.value)


def test_secrets_combined_together_need_the_same_points():
    first, second = shamir.split_many([SECRET, bytes(32)], 2, [1, 2, 3], ENTROPY, label=b"")
    del second[1]
    with pytest.raises(ProtocolError, match="every secret"):
        shamir.combine_many({"a": first, "b": second}, 2, label=b"")


@pytest.mark.parametrize("points", [[0, 1], [1, 1], [1], [1, shamir.PRIME], [-1, 1], [1, 2.0]])
def test_bad_points_are_refused_when_splitting(points):
    with pytest.raises(ProtocolError):
        split(SECRET, 2, points, ENTROPY)


@pytest.mark.parametrize("point", [0, -1, shamir.PRIME, shamir.PRIME + 1])
def test_bad_points_are_refused_when_combining(point):
    shares = split(SECRET, 2, [1, 2], ENTROPY)
    with pytest.raises(ProtocolError, match="points"):
        combine({1: shares[1], point: shares[2]}, 2)


@pytest.mark.parametrize("threshold", [0, -1, 8192])
def test_thresholds_out_of_range_are_refused(threshold):
    with pytest.raises(ProtocolError, match="threshold"):
        split(SECRET, threshold, range(1, 9000), ENTROPY)


def test_secrets_of_other_sizes_are_our_bug():
    with pytest.raises(InternalError, match="31 bytes"):
        split(bytes(31), 1, [1], ENTROPY)

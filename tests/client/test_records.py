import logging
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes, hmac

from client import records as module
from client.records import EmbeddedRecords, embed_records, load_records
from common.domain import UNLABELLED, Record
from common.errors import ConfigError, DataError, InternalError
from common.models.encoder import Encoder
from tests.support.asking import embedded

LABELS = ("a", "b")
ENCODER = Encoder.hashed_ngrams(dimensions=32, bits=10)
KEY = bytes(range(32))


def test_records_are_read_and_embedded_under_the_plans_numbers(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("text,label\nhello there,b\ngood day,a\n", encoding="utf-8")
    mine = embed_records(load_records(path), ENCODER).for_plan(LABELS)
    assert mine.labels.tolist() == [1, 0]
    assert mine.texts == ("hello there", "good day")
    assert mine.owners is None
    assert np.array_equal(mine.vectors, ENCODER.encode(["hello there", "good day"]))
    assert embed_records(load_records(path), ENCODER).for_plan(("b", "a")).labels.tolist() == [0, 1]


def test_a_party_without_records_has_vectors_of_the_right_width():
    none = embed_records([], ENCODER).for_plan(LABELS)
    assert (none.vectors.shape, none.labels.shape, none.texts) == ((0, 32), (0,), ())
    assert none.sampled(0.5, KEY).limited(1).texts == ()


def test_a_label_that_the_plan_lacks_does_not_take_part_and_is_not_named(caplog):
    caplog.set_level(logging.DEBUG)
    private = [Record("zqx one", "secretlabel", "ann"), Record("hello there", "b", "bob")]
    mine = embed_records(private, ENCODER).for_plan(LABELS, unit="user")
    alone = embed_records(private[1:], ENCODER).for_plan(LABELS)
    assert np.array_equal(mine.vectors, alone.vectors)
    assert np.array_equal(mine.labels, alone.labels)
    assert (mine.texts, mine.owners) == (alone.texts, ("bob",))
    several = embed_records(private, ENCODER).for_plan(LABELS, labels_per_record=2)
    assert several.texts == alone.texts
    assert len(caplog.messages) == 2
    for message in caplog.messages:
        assert "take part" in message
        assert not [word for word in ("secretlabel", "zqx", "1", "ann") if word in message]


def test_embedded_records_show_nothing_in_repr_str_or_errors():
    mine = embedded(["zqx"], [77], [[0.123]], owners=("ann",))
    for text in (repr(mine), str(mine), f"{mine}", repr(mine.limited(1)), repr([mine])):
        assert not [secret for secret in ("zqx", "77", "0.123", "ann") if secret in text]
    with pytest.raises(InternalError) as caught:
        EmbeddedRecords(vectors=mine.vectors, labels=mine.labels, texts=("zqx", "zqx"))
    assert "zqx" not in str(caught.value)
    with pytest.raises(InternalError) as caught:
        EmbeddedRecords(vectors=mine.vectors, labels=mine.labels, texts=mine.texts, owners=("ann", "ann"))
    assert "ann" not in str(caught.value)
    whole = embed_records([Record("zqx", "a", "ann")], ENCODER)
    assert not [secret for secret in ("zqx", "ann", "0.") if secret in f"{whole!r}{whole}"]


def test_a_vector_that_no_encoder_returns_is_zero_and_no_other_is_copied():
    sound = np.array([[0.6, -0.8], [1.0001, 0], [0, -1]], np.float32)
    assert embedded("abc", vectors=sound).vectors is sound
    wild = [[np.nan, 0], [np.inf, 0], [0, -np.inf], [1.01, 0], [0, -3e38]]
    assert embedded("abcdefgh", vectors=[*wild, *sound]).vectors.tolist() == [[0, 0]] * 5 + sound.tolist()


def test_each_owner_keeps_the_first_records_over_all_labels():
    mine = embedded("abcde", [0, 1, 0, 0, 0], np.arange(5).reshape(5, 1) / 4, owners=("u", "u", "u", "v", "u"))
    kept = mine.limited(2)
    assert kept.texts == ("a", "b", "d")
    assert kept.labels.tolist() == [0, 1, 0]
    assert kept.vectors.ravel().tolist() == [0, 1 / 4, 3 / 4]
    assert kept.owners == ("u", "u", "v")
    # Without owners each record is a unit of its own.
    assert embedded("abcde").limited(2).texts == tuple("abcde")


def test_an_owner_is_looked_at_once_a_record_however_many_labels_it_has():
    looked_at = []

    class Owner:
        def __repr__(self):
            looked_at.append(self)
            return "u"

    labels = tuple(f"{number}" for number in range(64))
    mine = embed_records([Record("note", "0", more=labels[1:])] * 3, ENCODER)
    mine = replace(mine.for_plan(labels, labels_per_record=64), owners=(Owner(),) * 3 * 64)
    assert [len(mine.limited(most, 5).texts) for most in (1, 2, 4)] == [5, 10, 15]
    assert len(looked_at) == 3 * 3
    assert mine.limited(3, 64) is mine  # nothing to leave out, so nothing to copy


def test_the_digest_is_hmac_sha256_of_label_number_and_text():
    mine = embedded(["a", "b", "a", "a"], [0, 0, 1, 0])
    expected = []
    for message in (b"0:0:a", b"0:0:b", b"1:0:a", b"0:1:a"):
        mac = hmac.HMAC(KEY, hashes.SHA256())
        mac.update(message)
        expected.append(int.from_bytes(mac.finalize()[:8], "big"))
    assert mine.digests(KEY).tolist() == expected
    assert len(set(embedded(["\ud800", "\ud801", "d"]).digests(KEY).tolist())) == 3  # half a surrogate pair is text


@pytest.mark.parametrize("owned", [False, True])
def test_whether_a_unit_takes_part_depends_on_the_key_and_on_no_other_unit(owned):
    texts = [f"{i % 40}" for i in range(100)]
    owners = [f"user {i % 30}" for i in range(100)]

    def drawn(places, key=KEY):
        mine = embedded([texts[i] for i in places], owners=tuple(owners[i] for i in places) if owned else None)
        return mine.sampled(0.4, key)

    all_of_them = drawn(range(100))
    assert all_of_them.texts == drawn(range(100)).texts
    assert all_of_them.texts != drawn(range(100), bytes(32)).texts
    rng = np.random.default_rng(1)
    assert sorted(drawn(rng.permutation(100)).texts) == sorted(all_of_them.texts)
    for left_out in range(100):
        unit = [i for i in range(100) if (owners[i] == owners[left_out] if owned else i == left_out)]
        rest = list(drawn([i for i in range(100) if i not in unit]).texts)
        gone = list(all_of_them.texts)
        for text in rest:
            gone.remove(text)
        # All of the unit or nothing of it; which of equal records is "the" unit does not matter.
        assert sorted(gone) in ([], sorted(texts[i] for i in unit))


def test_equal_records_take_part_independently():
    # 20,000 equal records at rate 0.3: the number is binomial, here within 5 standard deviations (false alarm 6e-7 over
    # keys, none for this one).
    count = len(embedded(["same"] * 20_000).sampled(0.3, KEY).texts)
    assert abs(count - 6000) < 5 * (20_000 * 0.3 * 0.7) ** 0.5


def test_rates_of_zero_one_and_below_the_digests_step(monkeypatch):
    mine = embedded("abc", owners=("u", "v", "w"))
    assert mine.sampled(0, KEY).texts == ()
    assert mine.sampled(1, KEY).texts == tuple("abc")
    digests = iter([0, 1, 2**64 - 1])
    monkeypatch.setattr(module, "_digest", lambda *_: next(digests))
    assert mine.sampled(1.75 * 2.0**-64, KEY).texts == ("a",)
    digests = iter([0, 1, 2**64 - 1])
    assert mine.sampled(1, KEY).texts == tuple("abc")
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(ConfigError):
            mine.sampled(rate, KEY)


def test_in_a_plan_without_labels_every_record_takes_part_whatever_its_label(caplog, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("text\nhello there\ngood day\n", encoding="utf-8")
    alone = embed_records(load_records(path, labelled=False), ENCODER)
    labelled = embed_records([Record("hello there", "a"), Record("good day", "b")], ENCODER)
    for mine in (alone, labelled):
        population = mine.for_plan((UNLABELLED,))
        assert population.labels.tolist() == [0, 0]
        assert population.texts == ("hello there", "good day")
        assert np.array_equal(population.digests(KEY), alone.for_plan((UNLABELLED,)).digests(KEY))
    assert caplog.text == ""
    assert alone.for_plan(LABELS).texts == ()  # and none where the plan has labels
    assert "take part" in caplog.text
    with pytest.raises(DataError, match="no column label"):
        load_records(path)


def test_a_record_shows_nothing_of_itself():
    assert repr(Record(text="zyx", label="zyx", user="zyx", more=("zyx",))) == "Record()"

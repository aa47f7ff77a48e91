"""Abstractions leave particulars out, keep to their lengths and are as many as asked, at most."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.writers.abstractors import Extracts, Summariser, same
from tests.support.tiny_models import tiny_summariser

NOTE = (
    "[AGE], here with chest pain for 7 days (since the party). He met Anna Burns in Springfield, has a cough and a "
    'fever of 39.5. He said "I am dying". The chest pain is worse at night. The film shows chest consolidation.'
)


def write(abstraction, text=NOTE, count=10, *, tone=0, sampled=False, seed=0):
    return abstraction.write(text, count, tone=tone, sampled=sampled, rng=np.random.default_rng(seed))


def test_extracts_are_shorter_general_and_in_the_texts_order():
    extracts = write(Extracts())
    assert 3 <= len(extracts) <= 10
    assert len(set(extracts)) == len(extracts)
    for extract in extracts:
        assert not any(word in extract for word in ("7", "39.5", "Anna", "Burns", "Springfield", "party", "dying", "["))
        assert len(extract.split()) <= 0.75 * len(NOTE.split())
    assert "chest pain for some days" in " ".join(extracts)
    assert extracts[0].index("chest pain") < extracts[0].index("The film shows chest consolidation.")
    assert write(Extracts()) == extracts
    assert write(Extracts(), seed=1) == extracts
    assert len(write(Extracts(longest=5), count=1)[0].split()) <= 5


def test_sampled_extracts_are_others():
    drawn = [write(Extracts(), sampled=True, seed=seed) for seed in range(3)]
    assert len({tuple(extract) for extract in drawn}) == 3
    assert write(Extracts(), sampled=True, seed=2) == drawn[2]


@pytest.mark.parametrize("text", ["", " . ", "...", "[EMAIL]", "(all)"])
def test_of_nothing_there_is_no_abstraction(text):
    assert write(Extracts(), text) == write(Extracts(), text, sampled=True) == []


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=80), st.integers(1, 12), st.booleans())
def test_whatever_the_text_extracts_are_of_letters_and_few(text, count, sampled):
    extracts = write(Extracts(), text, count, sampled=sampled)
    assert len(extracts) <= count
    assert all(extract.strip() for extract in extracts)


def test_a_summariser_by_its_folder_writes_by_beams_and_by_chance(tmp_path):
    import torch

    summariser = Summariser(str(tiny_summariser(tmp_path)), longest=12, shortest=6)
    before = torch.random.get_rng_state()
    beams = write(summariser, "fever and chest pain " * 60, count=3)
    assert 1 <= len(beams) <= 3
    assert write(summariser, "fever and chest pain " * 60, count=3, seed=9) == beams
    drawn = [write(summariser, "fever and chest pain", count=3, sampled=True, seed=seed) for seed in range(3)]
    assert len({tuple(extract) for extract in drawn}) > 1
    assert all(len(extract.split()) <= 12 for extract in [*beams, *(extract for draw in drawn for extract in draw)])
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(("tone", "phrase"), [(1, "Keep positive tone: fever"), (-1, "Keep negative tone: fever")])
def test_the_control_phrase_says_the_tone(tone, phrase, tmp_path, monkeypatch):
    summariser = Summariser(str(tiny_summariser(tmp_path)), longest=8, shortest=2)
    read, tokenizer = [], summariser._tokenizer
    monkeypatch.setattr(summariser, "_tokenizer", lambda text, **how: read.append(text) or tokenizer(text, **how))
    monkeypatch.setattr(summariser._tokenizer, "batch_decode", tokenizer.batch_decode, raising=False)
    write(summariser, "fever", count=1, tone=tone)
    write(summariser, "fever", count=1)
    summariser._control = False
    write(summariser, "fever", count=1, tone=tone)
    assert read == [phrase, "fever", "fever"]


def test_sameness_is_of_words():
    assert same("Fever, 39.5 today!", "fever 40.1 TODAY")
    assert not same("fever today", "some fever today")

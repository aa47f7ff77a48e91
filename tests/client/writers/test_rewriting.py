"""RUPTA in a party: which records, which rewritings, what the evaluators say; and what is withheld."""

import logging

import numpy as np
import pytest

from client.records import embed_records
from client.writers import rewriting
from client.writers.abstractors import Extracts
from client.writers.rewriting import Evaluators, RewriteVerdict, Rewriting
from common import redaction
from common.domain import Record
from common.plan.planned import PlannedQuery
from common.queries.texts import RewrittenSpec
from tests.support.federations import ENCODER, LABELS

FEVER = ["fever and cough since monday", "fever with a cough since sunday", "a cough since monday, no fever at all"]
BONES = ["broken arm after a fall", "an arm was broken in a fall", "fall from a ladder, broken wrist"]
TEXTS = [*FEVER, *BONES]


class Scripted:
    """Writes the n-th of its lists in the n-th round; remembers what it was given."""

    def __init__(self, *rounds):
        self.rounds, self.given = list(rounds), []

    def write(self, text, count, *, tone, sampled, rng):
        self.given.append((text, count, tone, sampled))
        return self.rounds[min(len(self.given), len(self.rounds)) - 1]


def held(texts=TEXTS):
    private = [Record(text, LABELS[place >= len(texts) // 2]) for place, text in enumerate(texts)]
    return embed_records(private, ENCODER).for_plan(LABELS)


def planned(texts=6, rounds=3):
    return PlannedQuery(name="texts", spec=RewrittenSpec(texts=texts, rounds=rounds), mechanism="none")


def write(made, records=None, **spec):
    made.check(planned(**spec), LABELS)
    return made.write(planned(**spec), records or held(), labels=LABELS, encoder=ENCODER, key=bytes(32))


def evaluators(records=None, copied=0.5, nearest=1):
    return Evaluators(records or held(), 2, ENCODER, redaction.default(), copied=copied, nearest=nearest)


# Evaluators


def test_a_copy_is_found_out_and_a_text_of_the_same_kind_is_not():
    judge = evaluators().judge
    assert judge(0, FEVER[0]) == RewriteVerdict(2, False, 1.0)  # copied, and its record is the nearest
    assert judge(0, "cough and fever") == RewriteVerdict(1, False, 0.0)  # the nearest all the same
    assert judge(0, FEVER[1]) == RewriteVerdict(0, False, 0.0)
    assert evaluators(nearest=0).judge(0, "cough and fever") == RewriteVerdict(0, False, 0.0)
    assert evaluators(nearest=4).judge(0, FEVER[1]).findings == 1
    assert evaluators(nearest=0).judge(0, "call 212-555-0123").findings == 1


def test_a_text_of_another_label_is_mistaken_and_privacy_comes_first():
    judge = evaluators(nearest=0).judge
    assert judge(0, "broken arm, a fall") == RewriteVerdict(0, True, 0.0)
    assert judge(0, "broken arm, a fall") < judge(0, FEVER[0])
    assert judge(0, "cough") < judge(0, "broken arm, a fall")


def test_of_a_label_without_another_record_nothing_is_mistaken():
    records = held(["fever", "broken arm"])
    assert not evaluators(records).judge(0, "broken arm").mistaken


def test_two_equal_records_hide_each_other():
    records = held(["fever and cough", "fever and cough", "arm", "leg"])
    assert evaluators(records).judge(0, "cough, fever").findings == 0


def test_words_of_few_records_are_left_out_and_masks_stay():
    assert evaluators().general("[PERSON] had fever on monday and zebra", 2) == "[PERSON] fever monday"
    assert evaluators().general("fever on monday", 3) == "fever"


def test_copying_is_counted_in_runs_of_three_words():
    pairs = [("a b c d", "x A B C y"), ("a b", "b a"), ("a b", "a b"), ("", "x")]
    assert [rewriting._repeated(*pair) for pair in pairs] == [0.5, 0, 1, 0]


# The loop


def test_rewriting_stops_at_a_text_that_both_evaluators_accept():
    rewriter = Scripted([FEVER[1]])
    made = Rewriting(rewriter=rewriter, candidates=4)
    assert made._rewritten(0, evaluators(), 3, np.random.default_rng(0)) == FEVER[1]
    # The rewriter sees no word that stands in one record alone.
    assert rewriter.given == [("fever cough since monday", 4, 0, False)]


def test_rewriting_goes_on_with_fewer_words_and_keeps_the_best():
    rewriter = Scripted([FEVER[0]], ["broken arm, a fall"], [])
    made = Rewriting(rewriter=rewriter)
    assert made._rewritten(0, evaluators(), 3, np.random.default_rng(0)) == "broken arm, a fall"
    assert [arguments[0] for arguments in rewriter.given][:2] == ["fever cough since monday", ""]
    assert [arguments[3] for arguments in rewriter.given] == [False, True, True]


def test_what_the_privacy_evaluator_never_accepts_is_withheld_and_nothing_private_is_logged(caplog):
    caplog.set_level(logging.DEBUG)
    made = Rewriting(rewriter=Scripted([FEVER[0]]), nearest=6)
    assert write(made) == []
    assert "withheld" in caplog.text
    assert not any(word in caplog.text for text in TEXTS for word in text.split() if len(word) > 4)


def test_texts_are_redacted_before_and_after():
    records = held(["fever, call 212-555-0123", "fever, call 212-555-0199", "arm, call 212-555-0100", "arm"])
    rewriter = Scripted(["fever, ask Dr. Smith or 212-555-0123"])
    texts = write(Rewriting(rewriter=rewriter, nearest=0), records)
    assert texts
    assert not any("212" in text or "Smith" in text for _, text in texts)
    assert not any("212" in arguments[0] for arguments in rewriter.given)


# A writer


@pytest.mark.parametrize(("count", "expected"), [(4, 4), (50, 6)])
def test_each_drawn_record_is_one_text_and_never_two(count, expected):
    made = Rewriting(rewriter=Scripted(["pain"]), nearest=0)
    texts = write(made, texts=count)
    assert len(texts) == expected
    assert sum(label for label, _ in texts) <= 3


def test_without_records_there_is_nothing_to_write():
    assert write(Rewriting(rewriter=Extracts()), held([])) == []


def test_the_embedded_rewriter_leaves_no_long_copy():
    texts = [f"{start}, and {end}" for start in TEXTS for end in ("was sent home today", "is to come again soon")]
    written = write(Rewriting(rewriter=Extracts()), held(texts), texts=12)
    assert written
    assert not any(whole in text.lower() for _, text in written for whole in texts)

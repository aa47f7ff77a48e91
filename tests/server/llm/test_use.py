"""Losses of every kind: counted by what they are, with samples that may be shown, and named by errors with advice."""

import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from common.errors import ProviderError
from server.documents.rounds import LostReply, RoundReport
from server.llm.base import LOSSES, Reply, Request, advice_on, kind_of_loss, shown_loss
from server.llm.clean import PLAIN
from server.llm.generate import Written, generate
from server.llm.marks import RunMarks
from server.llm.orders import Order
from server.llm.passes import FINAL_AFTER
from server.llm.use import Use, counts_of_losses
from server.operators.round_report import make_report
from server.report.write import write_report
from tests.server.llm.test_clean import DROPPING

REPLIES = ("failed", "refused", "filtered", "truncated", "unreadable", "short", "empty", "malformed", "too long")
OF_TEXTS = tuple(kind for kind in LOSSES if kind not in REPLIES)
PUBLIC = Request(task_kind="note", labels=(("a", "A"),), label="a")
PRIVATE = replace(PUBLIC, good=("a private text",))
RAW = "Sure!\x1b[2J\nHere   is <b>nothing</b>. " + 500 * "x"


def lost(kind):
    """A reply with a loss of this kind, and what the cleaner counted in it."""
    if kind in REPLIES:
        return Reply(texts=(), input_tokens=1, output_tokens=1, loss=kind, prompt="p", raw=RAW), Counter()
    counted = kind if kind in DROPPING else f"{kind}: a reason"
    return Reply(texts=("t",), input_tokens=1, output_tokens=1, prompt="p", raw=RAW), Counter({counted: 1, "quotes": 9})


def used(*kinds, request=PUBLIC):
    use = Use()
    for kind in kinds:
        reply, cleaned = lost(kind)
        use.add("m", request, reply, cleaned)
    return use


def test_the_table_has_every_rule_that_drops_texts_and_nothing_that_is_a_repair():
    assert set(DROPPING) <= set(OF_TEXTS)
    assert set(OF_TEXTS) - set(DROPPING) == {"no section", "no spans"}
    assert set(FINAL_AFTER) <= set(LOSSES)
    assert {kind_of_loss(rule) for rule in ("quotes", "characters", "loops")} == {None}


@pytest.mark.parametrize("kind", [*OF_TEXTS, *(kind for kind in REPLIES if kind not in ("empty", "unreadable"))])
def test_each_kind_is_counted_sampled_and_explained(kind, tmp_path):
    use = used(kind, kind, kind)
    assert counts_of_losses(use.losses, use.cleaned) == {kind: {"m": 3}}
    assert f"3 {shown_loss(kind)}" in use.losses_in_words
    assert use.advice.endswith(advice_on(kind, "m"))
    assert "Sure!?[2J" in use.advice
    assert not {"\x1b", "\n"} & set(use.advice)
    first = LostReply(written_by="m", reply=f"{RAW[:400]}…")
    assert use.samples == {kind: (first, first)}

    report = make_report(0, ["m"], requested={"m": 3}, generated=[], candidates=0, work=[Written(texts=[], use=use)])
    report = replace(report, seconds={"generate": 0.0, "embed": 0.0, "ask": 0.0})
    assert RoundReport.from_json(report.to_json()) == report
    (tmp_path / "rounds.jsonl").write_text(json.dumps(report.for_readers().to_json()) + "\n")
    page = write_report(tmp_path).read_text("utf-8")
    assert f"<summary>{kind}: 3 (m)</summary>" in page
    assert page.count("reply of m") == 2
    assert "Here   is &lt;b&gt;nothing" in page


@pytest.mark.parametrize("kind", LOSSES)
def test_no_sample_is_kept_of_a_reply_to_private_text(kind):
    use = used(kind, request=PRIVATE)
    assert (use.samples, use.exchanges) == ({}, {})
    assert "Sure" not in use.advice


@pytest.mark.parametrize(
    ("raw", "kind"), [("", "empty"), (" \n", "empty"), ("[]", "unreadable"), ("<think>…", "unreadable")]
)
@pytest.mark.parametrize("loss", [None, "empty"])
def test_a_reply_without_texts_is_empty_only_without_any_text(raw, kind, loss):
    assert Reply(texts=(), input_tokens=1, output_tokens=1, loss=loss, raw=raw).loss == kind
    assert Reply(texts=("a",), input_tokens=1, output_tokens=1, raw=raw).loss is None


def test_advice_is_on_the_two_most_frequent_kinds():
    use = used("truncated", "empty", "empty", "copies", "copies", "copies")
    assert [part.partition(" (")[0] for part in use.advice.split("; ") if " (" in part] == ["copies", "unreadable"]
    assert "m (1 failed)" in used("failed").losses_in_words


@pytest.mark.parametrize("kind", [kind for kind in LOSSES if kind not in ("empty", "unreadable")])
def test_the_error_for_labels_without_texts_names_the_kind_and_stops_where_asking_again_cannot_mend(kind):
    reply, cleaned = lost(kind)
    asked = []

    def answer(requests, *, arrived):
        asked.extend(requests)
        return [reply] * len(requests)

    model = SimpleNamespace(remote=False, generate=answer)
    cleaner = PLAIN if kind in REPLIES else SimpleNamespace(marks=RunMarks(), clean=lambda *_, **__: ([], cleaned))
    with pytest.raises(ProviderError) as caught:
        generate(
            {"m": model},
            [Order(model="m", label="a", count=4)],
            lambda order, texts, rng: replace(PUBLIC, n=texts, seed=int(rng.integers(2**60))),
            round_number=0,
            texts_per_request=1,
            experiment_seed=0,
            cleaner=cleaner,
        )
    assert f"{len(asked)} {shown_loss(kind)}" in str(caught.value)
    assert advice_on(kind, "m") in str(caught.value)
    assert "Sure!" in str(caught.value)
    assert len(asked) == FINAL_AFTER.get(kind, 9 * 4)

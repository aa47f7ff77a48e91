import dataclasses
import json

import pytest

from common.errors import ConfigError, InternalError
from server.domain import Wording
from server.llm.base import MODES, Request, accepted
from tests.support.provider_contract import DIFFERENCES

LABELS = (("a", "first"), ("b", "second"))


def request(**fields) -> Request:
    return Request(**({"task_kind": "note", "labels": LABELS} | fields))


@pytest.mark.parametrize(
    "wrong",
    [
        {"task_kind": ""},
        {"labels": ()},
        {"labels": (("a", "x"), ("a", "y"))},
        {"label": "c"},
        {"n": 0},
        {"blanks": 1.5, "source": ("text",)},
        {"blanks": 0.5},
        {"more": ("b",)},
        {"abstract": True, "source": ("one", "two")},
        {"abstract": True, "source": ("one",), "blanks": 0.5},
        {"abstract": True, "good": ("one",)},
        {"abstract": True, "phrases": True},
        {"blanks": 0.5, "source": ("one", "two")},
        {"source": ("one", "two", "three")},
        {"source": ("one",), "good": ("two",)},
        {"bad": ("only bad",)},
        {"good": ("  ",)},
        {"must": ("",)},
        {"words": 0},
        {"good": ("one",), "good_must": (("a", "b"), ("c",)), "must": ("d",)},
        {"good": ("one",), "good_must": (("a",),)},
        {"good": ("one",), "bad": ("two",), "good_must": (("a",),), "must": ("d",)},
        {"good": ("one",), "good_must": ((" ",),), "must": ("d",)},
        {"phrases": True, "source": ("one",)},
        {"phrases": True, "good": ("one",)},
        {"phrases": True, "must": ("one",)},
        {"phrases": True, "words": 3},
        {"temperature": -0.1},
        {"seed": -1},
        {"seed": 2**64},
        {"before": "", "bad": ("one",), "good": ("two",)},
        {"before": "", "source": ("one",)},
    ],
)
def test_what_cannot_be_read_in_one_way_is_refused(wrong):
    with pytest.raises(ConfigError):
        request(**wrong)


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        *(
            ({"label": "a", "good": ("x",), "bad": ("y",)}, change)
            for change in (
                {"task_kind": "letter"},
                {"labels": (("a", "first"), ("b", "other"))},
                {"label": "b"},
                {"n": 2},
                {"attribute": "night"},
                {"good": ("z",)},
                {"bad": ("z",)},
                {"must": ("pain",)},
                {"words": 9},
                {"temperature": 0.5},
                {"seed": 1},
                {"wording": Wording(style="terse")},
            )
        ),
        ({"good": ("x",), "must": ("pain",)}, {"good_must": (("ache",),)}),
        ({}, {"phrases": True}),
        ({"source": ("x",)}, {"blanks": 0.5}),
        ({"source": ("x",)}, {"abstract": True}),
    ],
    ids=str,
)
def test_every_field_changes_the_key(fields, change):
    assert request(**fields | change).key("m") != request(**fields).key("m")


def test_canonical_is_json_that_keeps_all():
    written = json.loads(request(label="a", good=("naïve",)).canonical())
    assert written["good"] == ["naïve"]
    # Without what came later the form is that of before, so that caches keep their replies.
    later = {"marks", "more", "before", "showable"}
    assert set(written) == {field.name for field in dataclasses.fields(Request)} - later
    assert "plural" not in written["wording"]
    assert json.loads(request(wording=Wording(plural="notes")).canonical())["wording"]["plural"] == "notes"


@pytest.mark.parametrize("mode", MODES)
def test_a_declined_mode_is_simplified_or_never_asked_for(mode):
    fields, without = DIFFERENCES[mode]
    original, others = request(**fields), frozenset(MODES) - request(**fields).modes
    assert accepted(original, others) == original
    if mode == "contrast":
        assert accepted(original, frozenset({mode})) == request(**without)
    else:
        with pytest.raises(InternalError, match=rf"expected no .*{mode}.*; got {mode}"):
            accepted(original, frozenset({"contrast", mode}))


@pytest.mark.parametrize("fields", [{name: ("x",)} for name in ("good", "source", "must")] + [{"before": "x"}])
def test_a_request_with_a_text_may_be_shown_only_if_its_maker_says_so(fields):
    assert not request(**fields).may_be_shown
    assert request(**fields, showable=True).may_be_shown
    assert request().may_be_shown
    assert request(**fields, showable=True).key("m") == request(**fields).key("m")

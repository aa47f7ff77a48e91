import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.models.encoder import Encoder
from common.rng import experiment
from server.domain import Candidate, Example, Task
from server.llm.builtin.lexicon import Lexicon
from server.llm.builtin.model import BuiltinModel
from server.llm.clean import Cleaner
from server.llm.completion import Completion, opening_words
from server.llm.marks import Marks, RunMarks, marks_of, without_marks
from server.llm.requests import abstracts, by_example, subtopics
from server.settings.schema import Rules
from server.spans import REASONS, Marked, Span, mark_spans, read_marks, remove_tags, words
from server.tasks import demo_notes
from tests.support.marks import fit
from tests.support.prompts import render

TASK = Task(
    name="t", kind="note", labels={"a": "A", "b": "B"}, spans={"drug": "name of a medicine", "dose": "an amount"}
)
TYPES = list(TASK.spans)
PIECES = st.sampled_from(
    ["<drug>", "</drug>", "<dose>", "</dose>", "<b>", "</b>", "<", ">", "/", "drug", " ", "\n", "é", "💊", "5 mg", "<5"]
)


def request(task=TASK, **fields):
    return replace(by_example(task, "a", texts=3, rng=experiment(0, "test")), **fields)


@pytest.fixture
def public_marks():
    return RunMarks([Example(text="no entity"), Example(text="b 5 g", spans=(Span(start=2, end=5, type="dose"),))])


@given(st.one_of(st.lists(PIECES, max_size=14).map("".join), st.text()))
@example("<<drug>drug</drug>>")
@example("<drug> aspirin </drug>")
def test_any_reply_yields_spans_whose_text_stands_there_or_is_dropped(reply):
    found = read_marks(reply, TYPES)
    if isinstance(found, str):
        assert found in REASONS
        return
    assert fit(found.text, found.spans)
    assert {span.type for span in found.spans} <= set(TYPES)
    assert found.text == found.text.strip()
    for span in found.spans:
        inner = found.text[span.start : span.end]
        assert inner == inner.strip() != ""
        assert inner in reply
    assert read_marks(mark_spans(found.text, found.spans), TYPES) == found


@pytest.mark.parametrize(
    ("reply", "text", "spans"),
    [
        ("took nothing, SpO2 <92 and >80", "took nothing, SpO2 <92 and >80", []),
        (" <drug>aspirin</drug> <dose>5 mg</dose>", "aspirin 5 mg", [(0, 7, "drug"), (8, 12, "dose")]),
        ("💊 <drug> é </drug>.", "💊  é .", [(3, 4, "drug")]),
    ],
)
def test_marks_are_taken_out_and_spans_count_code_points(reply, text, spans):
    assert read_marks(reply, TYPES) == Marked(text, tuple(Span(start=a, end=b, type=kind) for a, b, kind in spans))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("<food>bread</food>", "unplanned type"),
        ("<drug>aspirin", "unbalanced tags"),
        ("aspirin</drug>", "unbalanced tags"),
        ("<drug>aspirin</dose>", "unbalanced tags"),
        ("<drug>aspirin <dose>5 mg</dose></drug>", "nested tags"),
        ("take <drug> </drug>", "empty span"),
    ],
)
def test_a_text_with_a_wrong_mark_is_dropped_and_counted(reply, reason):
    kept, changed = Cleaner(Rules()).clean([reply, "<drug>a</drug> b"], request(), run_texts=())
    assert (kept, changed) == (["a b"], {f"no spans: {reason}": 1})


def test_copies_and_duplicates_are_found_whatever_their_marks(public_marks):
    asked = request(good=("<drug>aspirin</drug> taken",))
    replies = ["Aspirin taken", "<drug>old</drug>", "<dose>new</dose>", "new"]
    kept, changed = Cleaner(Rules()).clean(replies, asked, run_texts={"old"})
    assert (kept, changed) == (["new"], {"copies": 1, "duplicates": 2})
    kept, _ = Cleaner(Rules(), marks=public_marks).clean(["<drug>aspirin</drug> twice"], request(), run_texts=())
    shown = public_marks.shown(request(good=(kept[0], "from elsewhere")))
    assert shown.good == ("<drug>aspirin</drug> twice", "from elsewhere")
    assert shown.marks.shown_example == "b <dose>5 g</dose>"
    bare = request(marks=None)
    assert public_marks.shown(bare) is bare


def test_candidates_get_their_spans_and_bring_them_into_a_resumed_run():
    marks, candidate = RunMarks(), Candidate(text="aspirin", label="a", model="m", round=0)
    marks.add(Marked("aspirin", (Span(start=0, end=7, type="drug"),)))
    (spanned,) = marks.given([candidate])
    saved = json.loads(json.dumps(spanned.to_json()))
    assert saved["spans"] == [{"start": 0, "end": 7, "type": "drug"}]
    resumed = RunMarks()
    resumed.know([Candidate.from_json(saved), candidate])
    assert resumed.given([candidate]) == (spanned,)
    assert "spans" not in candidate.to_json()


def test_without_types_requests_are_what_they_were():
    plain = replace(TASK, spans={})
    assert marks_of(plain) is None
    assert "marks" not in json.loads(request(plain).canonical())
    assert request().key("m") != request(plain).key("m")
    for asked, count in ((abstracts, {"texts": 1}), (subtopics, {"phrases": 1})):
        assert asked(TASK, "a", rng=experiment(0, "test"), **count).marks is None


def test_a_chat_prompt_says_how_to_mark_and_blanks_no_part_of_a_span(public_marks):
    _, user = render(public_marks.shown(request()))
    assert "<drug> (name of a medicine); <dose> (an amount)." in user
    assert "b <dose>5 g</dose>" in user.splitlines()[-3]
    public_marks.add(Marked("a b c d", (Span(start=2, end=5, type="drug"),)))
    for seed in range(9):
        asked = public_marks.shown(request(source=("a b c d",), blanks=0.5, seed=seed * 97, n=1))
        shown = next(line for line in render(asked)[1].splitlines() if "____" in line)
        assert "<drug>b c</drug>" in shown or "drug" not in shown
        assert opening_words(asked) in ("a <drug>b c</drug>", "a")


def test_an_example_is_not_cut_within_a_span():
    text = "one two <drug>Dr. Strong drops. Forte</drug> three four. five six"
    for words_asked in (1, 2, 3):
        prompt = Completion().beginning(request(good=(text,), words=words_asked), []).prompt
        shown = next(line.split('"')[-2] for line in prompt.splitlines() if "one two" in line)
        assert isinstance(read_marks(shown, TYPES), Marked)


def test_the_builtin_model_marks_what_public_texts_mark_and_writes_what_it_wrote_before():
    public = demo_notes.public_examples(60, 0)
    texts = [example.text for example in public]
    model = BuiltinModel(name="m", public_texts=texts, public_examples=public, encoder=Encoder.hashed_ngrams())
    plain = BuiltinModel(name="m", public_texts=texts, encoder=Encoder.hashed_ngrams())
    assert model.identity == f"{plain.identity}/spans={Lexicon(public).digest}"
    good = tuple(mark_spans(example.text, example.spans) for example in public[:2])
    asked = request(good=good, n=4, marks=Marks(types=tuple(demo_notes.SPANS.items())))
    (reply,), (before,) = model.generate([asked]), plain.generate([without_marks(asked)])
    assert tuple(remove_tags(text) for text in reply.texts) == before.texts
    assert all("<finding>" in text for text in reply.texts)
    assert all(isinstance(asked.marks.read(text), Marked) for text in reply.texts)


def test_a_lexicon_takes_the_longest_phrase_the_word_before_and_any_digit():
    def example(text):
        found = read_marks(text, TYPES)
        return Example(text=found.text, spans=found.spans)

    lexicon = Lexicon(
        [
            example("<drug>Acid</drug> and <drug>acid drops</drug>"),
            *[example("lactic acid at <dose>5 mg</dose> and <drug>x</drug>")] * 3,
            example("take <drug>acid</drug>"),
        ]
    )
    assert lexicon.mark("take acid, 7 MG") == "take <drug>acid</drug>, <dose>7 MG</dose>"
    assert lexicon.mark("Acid drops") == "<drug>Acid drops</drug>"
    assert lexicon.mark("lactic acid") == "lactic acid"
    assert lexicon.mark("an acid") == "an acid"
    assert Lexicon([]).digest == Lexicon([Example(text="a")]).digest == ""


def test_a_span_is_one_word_and_a_made_up_example_can_be_read():
    text = "take (<drug>acetyl salicylic acid</drug>), now"
    assert [word.group() for word in words(text)] == ["take", "(<drug>acetyl salicylic acid</drug>),", "now"]
    marks = Marks(types=tuple(TASK.spans.items()))
    assert marks.shown_example == "<drug>name of a medicine</drug>; <dose>an amount</dose>"
    assert isinstance(marks.read(marks.shown_example), Marked)

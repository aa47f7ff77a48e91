"""Every form in which chat models write texts yields exactly the texts: reasoning x fence x words around x list."""

import json
from itertools import product

import pytest

from server.llm.parse import parse

TEXTS = {
    "sentences": [
        "Seen on day 3: cough and fever since 2 days.",
        "My card hasn't come, where is it?",
        "BP 120/80, afebrile [sic], wound clean.",
        "I paid {$12.00} twice; the app says otherwise.",
        "Follow-up in 6 weeks, sooner if pain returns.",
    ],
    "awkward": [
        'She said "no", and left: that was it.',
        "First line.\nSecond line, [1] and {2}.",
        "Température 38,5 °C – naïve Größe",
        "It's the patient's 2nd visit (see [note]).",
        "[redacted] called; 10% off\\on",
    ],
}
IDEA = '["a first idea", "an older patient"]'
REASONING = {
    "none": "{}",
    "tag": "<think>\nThey want a list. Maybe " + IDEA + "?\n</think>\n\n{}",
    "empty": "<think>\n\n</think>\n\n{}",
    "no opening tag": "Okay, the user wants a list such as " + IDEA + ".\n</think>\n{}",
    "two": "<think>a</think>\n<think>" + IDEA + "</think>{}",
    "named inside": "<think>I close with </think> and go on " + IDEA + "</think>{}",
    "after": "{}\n<think>Was " + IDEA + " better?</think>",
    "unclosed after": "{}\n<think>Was " + IDEA,
    **{
        name: f"<{name}>\n{IDEA}\n</{name}>\n{{}}"
        for name in (
            "thinking",
            "reasoning",
            "thought",
            "Thought",
            "reflection",
            "analysis",
            "scratchpad",
            "seed:think",
        )
    },
    "thought, no opening tag": IDEA + "\n</thought>\n{}",
    "attribute": '<thinking effort="high">' + IDEA + "</thinking>{}",
    "brackets": "[THINK]" + IDEA + "[/THINK]{}",
    "triangles": "◁think▷" + IDEA + "◁/think▷{}",
    "begin of": "<|begin_of_thought|>" + IDEA + "<|end_of_thought|>\n<|begin_of_solution|>{}<|end_of_solution|>",
    "start": "<|START_THINKING|>" + IDEA + "<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
    "channels": "<|channel|>analysis<|message|>"
    + IDEA
    + "<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "channels without tokens": "analysisWe need " + IDEA + ".assistantfinal{}",
    "channel": "<|channel>thought\n" + IDEA + "<channel|>{}",
    "unused tokens": "<unused94>thought\n" + IDEA + "<unused95>{}",
    "details": '<details type="reasoning" done="true">\n<summary>Thought</summary>\n' + IDEA + "\n</details>\n{}",
    "words": "Here is my thought process:\n" + IDEA + "\n\nHere is my response:\n{}",
    "answer tag": "<think>" + IDEA + "</think>\n<answer>\n{}\n</answer>",
    "output tag": "<Thought>" + IDEA + "</Thought>\n<Output>\n{}\n</Output>",
    "conclusion": "<SUMMARY>x</SUMMARY>\n<REASONING>" + IDEA + "</REASONING>\n<CONCLUSION>{}</CONCLUSION>",
    "chat tokens": "<|im_start|>assistant\n{}<|im_end|>\n<|im_start|>user\nMore!",
    "end token": "{}<|eot_id|>",
    "end of sentence": "{}<｜end▁of▁sentence｜>",
}
FENCES = {
    "none": "{}",
    "json": "```json\n{}\n```",
    "plain": "```\n{}\n```",
    "python": "```python\n{}\n```",
    "unclosed": "```json\n{}",
    "one line": "```json {}```",
}
AROUND = {
    "none": "{}",
    "line before": "Here are the texts you asked for:\n\n{}",
    "bracket before": "Sure! I wrote [5] different texts [see below]:\n{}",
    "placeholder before": "I used no [Your Name] or {name}.\n\n{}",
    "after": "{}\n\nLet me know if you need more!",
    "both": "Certainly.\n\n{}\n\nI hope this helps [1].",
}


def dumped(value):
    return json.dumps(value, ensure_ascii=False)


LISTS = {
    "list": dumped,
    "indented": lambda texts: json.dumps(texts, indent=2),
    "raw newlines": lambda texts: dumped(texts).replace("\\n", "\n"),
    "comma at the end": lambda texts: dumped(texts)[:-1] + ",\n]",
    "wrong escape": lambda texts: dumped(texts).replace("'", "\\'"),
    "commas missing": lambda texts: "[\n" + "\n".join(map(dumped, texts)) + "\n]",
    "nulls": lambda texts: dumped([None, *[item for text in texts for item in (text, None, 3)]]),
    "numbers": lambda texts: dumped([item for at, text in enumerate(texts) for item in (at + 1, text)]),
    "comments": lambda texts: (
        "[\n" + "".join(f"// Note {at}\n{dumped(text)},\n" for at, text in enumerate(texts)) + "]"
    ),
    "python": repr,
    "python, None": lambda texts: repr([None, *texts, True]),
    "tuple inside": lambda texts: repr([tuple(texts)]),
    "assignment": lambda texts: "texts = " + repr(texts),
    "nested": lambda texts: dumped([texts]),
    "nested, each": lambda texts: dumped([[text] for text in texts]),
    "nested, numbered": lambda texts: dumped([[at, text] for at, text in enumerate(texts)]),
    "objects": lambda texts: dumped([{"text": text} for text in texts]),
    "objects, id first": lambda texts: dumped(
        [{"id": f"note-{at}", "label": "x y", "text": t} for at, t in enumerate(texts)]
    ),
    "objects, number first": lambda texts: dumped([{"number": at, "Note": text} for at, text in enumerate(texts)]),
    "objects, longer label": lambda texts: dumped([{"label_description": "z " * 90, "note": text} for text in texts]),
    "objects, list beside": lambda texts: dumped([{"note": text, "symptoms": ["a b", "c d"]} for text in texts]),
    "objects, reasoning": lambda texts: dumped([{"reasoning": "long " * 50, "patient_note": text} for text in texts]),
    "python objects": lambda texts: repr([{"id": None, "text": text} for text in texts]),
    "object": lambda texts: dumped({"texts": texts}),
    "object, keys beside": lambda texts: dumped({"count": 5, "language": "English", "texts": texts}),
    "object, any key": lambda texts: dumped({"label": "x y", "patient_voices": texts, "tags": ["a b", "c d"]}),
    "object in object": lambda texts: dumped({"status": "ok", "data": {"texts": texts}}),
    "object of objects": lambda texts: dumped(
        {"notes": [{"id": at, "content": text} for at, text in enumerate(texts)]}
    ),
    "numbered fields": lambda texts: dumped({f"text_{at}": text for at, text in enumerate(texts, 1)}),
    "numbers as fields": lambda texts: dumped({str(at): text for at, text in enumerate(texts, 1)}),
    "numbered objects": lambda texts: dumped(
        {f"note{at}": {"id": at, "text": text} for at, text in enumerate(texts, 1)}
    ),
    "lists by label": lambda texts: dumped({"late card": texts[:2], "lost card": texts[2:]}),
    "JSON lines": lambda texts: "\n".join(dumped({"id": f"n{at}", "text": text}) for at, text in enumerate(texts)),
    "JSON lines, commas": lambda texts: ",\n".join(dumped({"note": text, "tags": ["a b"]}) for text in texts),
    "JSON lines, numbered": lambda texts: "\n".join(
        f"{at}. {dumped({'text': text})}" for at, text in enumerate(texts, 1)
    ),
    "lines of lists": lambda texts: "\n".join(dumped([text]) for text in texts),
    "several fences": lambda texts: "\n".join(f"Text {at}:\n```json\n{dumped([t])}\n```" for at, t in enumerate(texts)),
    "double encoded": lambda texts: dumped([dumped({"text": text}) for text in texts]),
}
LINES = {
    "numbered": lambda texts: "\n".join(f"{at}. {text}" for at, text in enumerate(texts, 1)),
    "numbered, gaps": lambda texts: "\n\n".join(f"{at}) {text}" for at, text in enumerate(texts, 1)),
    "numbered, quoted": lambda texts: "\n".join(f'{at}. "{text}"' for at, text in enumerate(texts, 1)),
    "numbers in brackets": lambda texts: "\n".join(f"({at}) {text}" for at, text in enumerate(texts, 1)),
    "bold numbers": lambda texts: "\n".join(f"**{at}.** {text}" for at, text in enumerate(texts, 1)),
    "bold headings": lambda texts: "\n\n".join(f"**Message {at}:**\n{text}" for at, text in enumerate(texts, 1)),
    "headings": lambda texts: "\n\n".join(f"### Clinical Note {at}\n{text}" for at, text in enumerate(texts, 1)),
    "words": lambda texts: "\n".join(f"Text {at}: {text}" for at, text in enumerate(texts, 1)),
    "bullets": lambda texts: "\n".join(f"- {text}" for text in texts),
    "points": lambda texts: "\n".join(f"• {text}" for text in texts),
    "strings": lambda texts: "\n".join(map(dumped, texts)),
    "strings, commas": lambda texts: ",\n".join(map(dumped, texts)),
    "typographic": lambda texts: "\n".join(f"“{text}”" for text in texts),
    "fences": lambda texts: "\n".join(f"```\n{text}\n```" for text in texts),
    "elements": lambda texts: "\n".join(f"<text>{text}</text>" for text in texts),
    "ruled": "\n---\n".join,
    "paragraphs": "\n\n".join,
}
PHRASES = ("night sweats", "X-ray", "patient's rights", "terms & conditions", "3D scans")
PHRASE_LISTS = {
    **{name: form for name, form in LISTS.items() if name not in ("objects, list beside", "JSON lines, commas")},
    "lines without quotation marks": lambda phrases: "[\n  " + ",\n  ".join(phrases) + "\n]",
}


def put(form, inner):
    before, after = form.split("{}")
    return f"{before}{inner}{after}"


def fenced_and_surrounded(inner, written):
    """Replies with a list in each fence and among words, but for a fence around fences or one open before words."""
    for (of_fence, fence), (of_words, around) in product(FENCES.items(), AROUND.items()):
        open_before_words = of_fence == "unclosed" and of_words in ("after", "both")
        around_fences = written == "several fences" and of_fence != "none"
        if not open_before_words and not around_fences:
            yield put(around, put(fence, inner))


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("written", LISTS)
@pytest.mark.parametrize("n", [5, 1])
def test_texts_come_out_of_every_form(kind, written, n):
    texts = TEXTS[kind][:n]
    for reply in fenced_and_surrounded(LISTS[written](texts), written):
        assert parse(reply, n) == tuple(texts), reply


@pytest.mark.parametrize("written", PHRASE_LISTS)
def test_phrases_come_out_of_every_form(written):
    for reply in fenced_and_surrounded(PHRASE_LISTS[written](list(PHRASES)), written):
        assert parse(reply, len(PHRASES), phrases=True) == PHRASES, reply


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("form", ["[{}]", "[ {} ].", "\n[{}]\n"])
def test_phrases_come_out_of_a_list_without_quotation_marks(fence, form):
    reply = put(FENCES[fence], put(form, ", ".join(PHRASES)))
    assert parse(reply, len(PHRASES), phrases=True) == PHRASES


@pytest.mark.parametrize(
    "reply",
    [
        "[Sorry, as an AI, I must decline, thank you]",
        "I can't do that.\n[Sorry, as an AI, I must decline, ask somebody else, thank you]",
        "[I'm sorry, but I can't help with that]",
        "[refused]",
    ],
)
def test_a_refusal_in_brackets_has_no_phrases(reply):
    assert parse(reply, 12, phrases=True) == ()


def test_a_placeholder_in_brackets_hides_no_phrases():
    assert parse("[insert phrases here]\nnight sweats\nX-ray", 12, phrases=True)[1:] == ("night sweats", "X-ray")


@pytest.mark.parametrize("written", [*LINES, "lines"])
def test_phrases_come_out_of_plain_lines(written):
    reply = (LINES | {"lines": "\n".join})[written](PHRASES)
    for before in "", "Here are the phrases:\n\n":
        assert parse(before + reply, len(PHRASES), phrases=True) == PHRASES


@pytest.mark.parametrize("reasoning", REASONING)
@pytest.mark.parametrize("fence", ["none", "json"])
@pytest.mark.parametrize("written", ["list", "object, keys beside", "python", "JSON lines"])
def test_reasoning_is_no_text(reasoning, fence, written):
    for n, texts in product((5, 1), TEXTS.values()):
        reply = put(REASONING[reasoning], put(FENCES[fence], LISTS[written](texts[:n])))
        assert parse(reply, n) == tuple(texts[:n]), reply


@pytest.mark.parametrize("reasoning", REASONING)
def test_one_plain_text_comes_without_reasoning(reasoning):
    for text in [text for texts in TEXTS.values() for text in texts]:
        assert parse(put(REASONING[reasoning], text), 1) == (text,)


@pytest.mark.parametrize("written", LINES)
@pytest.mark.parametrize("reasoning", ["none", "tag", "no opening tag"])
def test_lists_in_plain_lines_yield_their_texts(written, reasoning):
    texts = TEXTS["sentences"]
    for before in "", "Here are the texts:\n\n":
        assert parse(put(REASONING[reasoning], before + LINES[written](texts)), 5) == tuple(texts)

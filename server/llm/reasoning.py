"""The answer in a chat model's reply, without its reasoning and without the tags and tokens of its template.

Reasoning stands in typed parts of the content, between tags such as "<think>", or, if the prompt ends with the opening
tag, before a closing tag alone. A reply that is cut off may have reasoning only.
"""

import re
from collections.abc import Mapping

_THOUGHTS = "thoughts?|reflections?|analysis|scratchpad|planning"
_OPENING = (
    r"<(?:think(?:ing)?|reasoning|inner_monologue|chain_of_thought|cot|antthinking|seed:think)(?:\s[^<>]*)?>"
    r"|<details\s[^<>]*reasoning[^<>]*>|\[think\]|◁think▷|<unused94>|<\|?channel\|?>\s*(?:analysis|commentary|thought)\b"
    r"|<[|｜](?:start_|begin[_▁]of[_▁])?(?:think(?:ing)?|thought|reasoning)[|｜]>"
)
_CLOSING = (
    r"</(?:think(?:ing)?|reasoning|inner_monologue|chain_of_thought|cot|antthinking|seed:think)\s*>"
    rf"|</(?:{_THOUGHTS})\s*>|\[/think\]|◁/think▷|<unused95>|<channel\|>|<\|channel\|>\s*final\b[^<]*<\|message\|>"
    r"|<[|｜](?:/|end_|end[_▁]of[_▁])(?:think(?:ing)?|thought|reasoning)[|｜]>"
    r"|(?:(?<=</summary>)|(?<=\n))\s{0,9}</details>|^\W{0,9}here(?:'s|’s| is) my (?:final )?(?:response|answer)\W*?:"
)
_AT_START = rf"\A\s*(?:<(?:{_THOUGHTS})(?:\s[^<>]*)?>|here(?:'s|’s| is) my (?:thought process|thinking|reasoning)\W*?:)"
_MARK = re.compile(rf"(?P<opening>{_OPENING}|{_AT_START})|(?P<closing>{_CLOSING})", re.IGNORECASE | re.MULTILINE)
_INSIDE = re.compile(rf"<(?:{_THOUGHTS})(?:\s[^<>]*)?>", re.IGNORECASE)
_WITHOUT_TOKENS = re.compile(r"\A\s*analysis(?=[A-Z\"'])(?:.*assistant\s?final|.*)", re.DOTALL)
_TEMPLATE_START = re.compile(
    r"\A(?:\s|<s>|<bos>|<\|(?:im_start|start|begin_of_text|start_response|start_text|begin_of_solution|begin_of_box"
    r"|message|channel|assistant)\|>"
    r"|<\|start_header_id\|>|<\|end_header_id\|>|<start_of_turn>|(?<=>)(?:assistant|model|final)(?=\s|<))+",
    re.IGNORECASE,
)
_TEMPLATE_END = re.compile(
    r"<[|｜](?:im_end|im_start|end|eot_id|eom_id|endoftext|end_of_text|return|end_response|end_text|end_of_solution"
    r"|end_of_box|start_header_id|end[_▁]of[_▁]sentence|user|call|start)[|｜]>"
    r"|<end_of_turn>|<start_of_turn>|<eos>|</s>\s*\Z|\[/INST\]\s*\Z",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"^[ \t]*<(answer|final_answer|final|output|response|conclusion|solution)>(.*?)(?:</\1>\s*)?\Z",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_TEXT_PARTS = (None, "text", "output_text")


def answer_in(reply: str) -> str:
    """Return the answer in a reply; empty if the reply has reasoning only.

    What stands before the last closing tag, and after an opening tag that is never closed, is reasoning. Tags of words
    that may also mark spans, such as "<thought>", count only at the beginning, or if they are closed but never opened.
    """
    text = _without_reasoning(_WITHOUT_TOKENS.sub("", reply))
    if start := _TEMPLATE_START.match(text):
        text = text[start.end() :]
    text = _TEMPLATE_END.split(text, maxsplit=1)[0]
    answer = _ANSWER.search(text)
    return (answer[2] if answer else text).strip()


def text_of(content: object) -> str | None:
    """Return the text of a message's content: a string, or typed parts, of which those of text count; else None.

    No content is an empty text. Parts of reasoning, or of an unknown type, are left out.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Mapping):
        return _part_text(content)
    return "".join(map(_part_text, content)) if isinstance(content, list) else None


def _part_text(part: object) -> str:
    if isinstance(part, Mapping):
        text = part.get("text") if part.get("type") in _TEXT_PARTS and not part.get("thought") else None
        part = text.get("value") if isinstance(text, Mapping) else text
    return part if isinstance(part, str) else ""


def _without_reasoning(text: str) -> str:
    marks = list(_MARK.finditer(text))
    inside = _INSIDE.search(text)
    if inside and not (marks and marks[0].start() <= inside.start()):
        marks = [mark for mark in marks if not re.fullmatch(rf"</(?:{_THOUGHTS})\s*>", mark.group(), re.IGNORECASE)]
    if not marks:
        return text
    last = max((place for place, mark in enumerate(marks) if mark["closing"]), default=-1)
    start = marks[last].end() if last >= 0 else 0
    answer = text[start : marks[last + 1].start() if last + 1 < len(marks) else len(text)]
    if answer.strip() or not marks[0]["opening"]:
        return answer
    return text[: marks[0].start()]

"""Prompts in the form of a model's own chat template, and what is kept of an answer that was cut off."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_END = re.compile(r"[.!?][\"')\]]*(?=\s|$)")


def prompt(tokenizer: Any, system: str, user: str) -> str | None:
    """Return the prompt that a model continues with its answer.

    Args:
        tokenizer: A tokenizer with a chat template.
        system: Instructions for each prompt, which may be empty.
        user: The user's message.

    Returns:
        The prompt, special tokens included; None if the template accepts no user message.
    """
    turns = [{"role": "system", "content": system}] if system else []
    return prompt_of_turns(tokenizer, [*turns, {"role": "user", "content": user}])


def prompt_of_turns(tokenizer: Any, turns: Sequence[Mapping[str, str]]) -> str | None:
    """Return the prompt for a conversation, as `prompt` does; None if the template does not accept these turns.

    Args:
        tokenizer: A tokenizer with a chat template.
        turns: The messages, each with a `role` and its `content`. In a template without a system turn, the first
            message's instructions are placed before the user's message that follows.
    """
    from jinja2 import TemplateError

    chats = [turns]
    if [turn["role"] for turn in turns[:2]] == ["system", "user"]:
        content = f"{turns[0]['content']}\n\n{turns[1]['content']}"
        chats.append([{"role": "user", "content": content}, *turns[2:]])
    for chat in chats:
        try:
            return str(tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False))
        except TemplateError:
            continue
    return None


def whole_sentences(text: str) -> str:
    """Return the text up to the end of its last complete sentence; empty if it has no complete sentence."""
    ends = list(_END.finditer(text))
    return text[: ends[-1].end()] if ends else ""

"""Prompts as a model's own chat template has them."""

from typing import Any


def prompt(tokenizer: Any, system: str, user: str) -> str | None:
    """The prompt that a model continues with its answer.

    Args:
        tokenizer: One with a chat template.
        system: Instructions for each prompt; some templates know no such turn, and have it before the user's words.
        user: The user's words.

    Returns:
        The prompt, special tokens included; None if the template takes no user's message.
    """
    from jinja2 import TemplateError

    chats = [
        [{"role": "system", "content": system}, {"role": "user", "content": user}],
        [{"role": "user", "content": f"{system}\n\n{user}"}],
    ]
    for turns in chats:
        try:
            return str(tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False))
        except TemplateError:
            continue
    return None

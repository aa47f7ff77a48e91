"""Prompts in the form of a model's own chat template."""

from typing import Any


def prompt(tokenizer: Any, system: str, user: str) -> str | None:
    """Return the prompt that a model continues with its answer.

    Args:
        tokenizer: A tokenizer with a chat template.
        system: Instructions for each prompt, which may be empty; in templates without a system turn they are placed
            before the user's message.
        user: The user's message.

    Returns:
        The prompt, special tokens included; None if the template accepts no user message.
    """
    from jinja2 import TemplateError

    chats = [[{"role": "user", "content": f"{system}\n\n{user}" if system else user}]]
    if system:
        chats.insert(0, [{"role": "system", "content": system}, {"role": "user", "content": user}])
    for turns in chats:
        try:
            return str(tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False))
        except TemplateError:
            continue
    return None

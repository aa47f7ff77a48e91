"""A model that follows instructions and writes a party's abstractions (RPSG) and rewritings (RUPTA).

The instruction is the system message, and the text is the whole user message: small models have learnt to summarise and
rewrite in this form. If the user message begins with the instruction, or if the instruction is long, small models write
about the text instead. For larger models, a party's own file can set another instruction (`instruction`).

A text that is cut off at `longest` tokens ends with its last complete sentence. A text without content is not sent to
the model, which would invent something.
"""

from typing import Any

import numpy as np

from client.writers.abstractors import says
from client.writers.causal_model import load_saved_model
from common.errors import ConfigError
from common.models import chat
from common.validate import in_range, integers, not_empty

ABSTRACT = "Extract and present the main key point of the input text in one very short sentence."
REWRITE = (
    "You're an AI assistant for text re-writing. Rewrite the input text to make it more concise while preserving its "
    "core meaning."
)


class Instructed:
    """A causal language model from transformers that follows instructions; an `Abstraction`.

    Args:
        name_or_path: A folder, the name of a model that was fetched, such as smollm2, or a name in the local cache;
            nothing is downloaded, and code that comes with the model is not run.
        instruction: Instruction that the model gets for each text.
        longest: Maximum number of tokens of a text.
        temperature: Sampling temperature; small models write gibberish from about 0.9 on.
        top_p: Total probability of the likeliest tokens that are sampled from; 1 for all tokens.
        device: Device, as torch names it.

    Raises:
        ConfigError: There is no such model on this machine, or its chat template accepts no messages.
    """

    def __init__(
        self,
        name_or_path: str,
        *,
        instruction: str,
        longest: int = 200,
        temperature: float = 0.7,
        top_p: float = 0.95,
        device: str = "cpu",
    ) -> None:
        not_empty(instruction=instruction)
        integers(1, longest=longest)
        in_range(0.01, 2, temperature=temperature)
        in_range(0.01, 1, top_p=top_p)
        self._instruction, self._longest = instruction, longest
        self._sampling = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0}
        self._model, self._tokenizer = load_saved_model(name_or_path, device)
        self._model.eval()
        if self._tokenizer.chat_template and chat.prompt(self._tokenizer, instruction, "") is None:
            do = "Choose another model"
            raise ConfigError("the chat template takes no user's message", where=f"name_or_path: {name_or_path}", do=do)

    def write(self, text: str, count: int, *, tone: int, sampled: bool, rng: np.random.Generator) -> list[str]:
        """Return up to `count` abstractions (`client.writers.abstractors.Abstraction`); `tone` has no effect."""
        del tone, sampled
        import torch
        from transformers import GenerationConfig

        if not says(text):
            return []
        ids = self._ids(text)
        room = getattr(self._model.config, "max_position_embeddings", None)
        if room is not None and ids.shape[1] + self._longest > room:
            # Nothing is written from a text that does not fit: a seed without an abstraction is blank, and the input of
            # a rewriter remains a candidate.
            return []
        end = self._tokenizer.eos_token_id
        how: dict[str, Any] = {"eos_token_id": end, "pad_token_id": end or 0}
        how |= {"max_new_tokens": self._longest, "num_return_sequences": count}
        with torch.random.fork_rng(), torch.inference_mode():
            torch.manual_seed(int(rng.integers(2**63)))
            rows = self._model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                generation_config=GenerationConfig(**self._sampling, **how),  # type: ignore[no-untyped-call]
            )[:, ids.shape[1] :]
        ended = [rows.shape[1] < self._longest or end in row for row in rows.tolist()]
        written = self._tokenizer.batch_decode(rows, skip_special_tokens=True)
        kept = (whole(row, ended=done) for row, done in zip(written, ended, strict=True))
        return list(dict.fromkeys(text for text in kept if text))

    def _ids(self, text: str) -> Any:
        """Return (1, tokens) token IDs for instruction and text, in the model's chat template if it has one."""
        chats = bool(self._tokenizer.chat_template)
        if chats:
            prompt = chat.prompt(self._tokenizer, self._instruction, text)
        else:
            prompt = f"{self._instruction}\n\n{text}\n\nNew text:\n"
        given = self._tokenizer(prompt, add_special_tokens=not chats, return_tensors="pt")
        return given["input_ids"].to(self._model.device)


def whole(text: str, *, ended: bool) -> str:
    """Return the text without surrounding white space; if it was cut off, only its complete sentences, if any."""
    return (text if ended else chat.whole_sentences(text)).strip()

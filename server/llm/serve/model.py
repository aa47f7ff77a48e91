"""One checkpoint as a server has it: prompts by its chat template, an engine in batches, and answers as text."""

import secrets
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.models import chat, checkpoints
from common.validate import in_range
from server.llm.engines.base import Job
from server.llm.engines.loading import (
    EngineName,
    choose_device,
    choose_engine,
    context_length,
    load_engine,
    longest_prompt,
)
from server.llm.serve.batches import Batches, Reply
from server.llm.serve.body import ChatBody

_BATCH_TOKENS = 16384  # of transformers: prompts and answers of one batch


class ChatModel:
    """A causal model with a chat template, loaded.

    Args:
        model: Folder, GGUF file, name in `common/models/catalogue.yaml`, or name of a model in the local cache.
        engine: "transformers" or "openvino"; None chooses "openvino" where there is a GGUF file.
        device: Device of transformers; None uses the GPU, if there is one.
        top_p: For requests that name none; small models write nonsense with 1.

    Attributes:
        name: Name of the model in requests: the last part of its path.
        context: Maximum number of tokens of prompt and answer together.
        engine: The engine, which belongs to the server's thread once a job was submitted.

    Raises:
        ConfigError: The model or the device does not exist on this machine, cannot be loaded or has no chat template,
            or the engine's package is missing.
    """

    def __init__(
        self, model: str, *, engine: EngineName | None = None, device: str | None = None, top_p: float = 1.0
    ) -> None:
        in_range(0.01, 1, top_p=top_p)
        what = "the model to serve"
        folder = checkpoints.language_model(model, what=what)
        if engine is None and any(folder.glob("*.gguf")):
            engine = "openvino"
        self._engine_name = choose_engine(engine, folder, what)
        device = choose_device(self._engine_name, device, "--device")
        config: Any = checkpoints.configuration(folder, "causal")
        self._tokenizer: Any = checkpoints.tokenizer(folder)
        if not self._tokenizer.chat_template:
            raise ConfigError(
                what, expected="a chat template", got="none", where=folder, do="Choose the file of an instruct model"
            )
        self.name, self._top_p = Path(model).resolve().name, top_p
        self.context = context_length(config, self._tokenizer)
        self.engine = load_engine(
            self._engine_name,
            folder,
            name=self.name,
            device=device,
            dtype=checkpoints.own_dtype(config, device),
            batch_tokens=_BATCH_TOKENS,
        )
        self._batches = Batches(self.engine)

    def job(self, body: ChatBody) -> Job:
        """Return the engine's job for a request.

        Raises:
            ConfigError: The chat template does not accept the messages.
        """
        prompt = chat.prompt_of_turns(self._tokenizer, body.turns)
        if prompt is None:
            roles = ", ".join(turn["role"] for turn in body.turns)
            raise ConfigError("messages", expected="turns that the model's chat template accepts", got=roles)
        return Job(
            ids=tuple(self._tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"]),
            seed=secrets.randbits(63) if body.seed is None else body.seed,
            max_new_tokens=body.max_tokens,
            temperature=body.temperature,
            top_p=self._top_p if body.top_p is None else body.top_p,
            stop=body.stop,
        )

    def longest_prompt(self, max_tokens: int) -> int:
        """Return the maximum number of tokens of a prompt before an answer of `max_tokens`; 0 or less for none."""
        return longest_prompt(self._engine_name, self.context - max_tokens)

    def submit(self, job: Job) -> Reply:
        """Let the engine answer, together with what else waits (`Batches.submit`)."""
        return self._batches.submit(job)

    def answer(self, job: Job, ids: list[int]) -> tuple[str, str]:
        """Return an answer's text, without the text that stopped it, and the reason of its end: "stop" or "length"."""
        text = self._tokenizer.decode(ids, skip_special_tokens=True)
        before, stop, _ = text.partition(job.stop) if job.stop else (text, "", "")
        return before, "length" if len(ids) >= job.max_new_tokens and not stop else "stop"

"""One checkpoint as a server has it: prompts by its chat template, an engine in batches, and answers as text.

What arrives while the engine works waits, and is then one batch:

    submit -> waiting --- the engine is free, and no other job came for a moment ---> one call of the engine -> futures
                 |
                 cancelled: its client has left, and the engine never sees it
"""

import logging
import queue
import secrets
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from common.errors import CaucusError, ConfigError
from common.models import chat, checkpoints
from common.validate import in_range
from server.llm.engines.base import Continuations, Engine, Job
from server.llm.engines.loading import EngineName, ModelCheckpoint

log = logging.getLogger("caucus.llm")

MOST = 64
"""Maximum number of jobs in one batch; jobs that wait behind a batch wait for its longest text."""
_MOMENT_S = 0.02  # clients that were answered together ask again together, within milliseconds
_BATCH_TOKENS = 16384  # of transformers: prompts and answers of one batch

Reply = Future[list[int]]


class ChatModel:
    """A causal model with a chat template, loaded.

    Args:
        model, device: As in `server.llm.local.Local`.
        engine: "transformers" or "openvino"; None chooses "openvino" where there is a GGUF file.
        top_p: For requests that name none; small models write nonsense with 1.

    Attributes:
        name: Name of the model in requests: the last part of its path.
        engine: The engine, which belongs to `batches` once a job was submitted there.

    Raises:
        ConfigError: The model or the device does not exist on this machine, cannot be loaded or has no chat template,
            or the engine's package is missing.
    """

    def __init__(
        self, model: str, *, engine: EngineName | None = None, device: str | None = None, top_p: float = 1.0
    ) -> None:
        in_range(0.01, 1, top_p=top_p)
        what = "the model to serve"
        if engine is None and any(checkpoints.language_model(model, what=what).glob("*.gguf")):
            engine = "openvino"
        self.checkpoint = ModelCheckpoint.open(
            model, what=what, name=what, engine=engine, device=device, device_setting="--device"
        )
        self.checkpoint.require_chat_template(what, do="Choose the file of an instruct model")
        self.name, self._top_p = Path(model).resolve().name, top_p
        dtype = checkpoints.own_dtype(self.checkpoint.config, self.checkpoint.device)
        self.engine = self.checkpoint.load(name=self.name, dtype=dtype, batch_tokens=_BATCH_TOKENS)
        self.batches = Batches(self.engine)

    def job(
        self,
        turns: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float = 1.0,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Job:
        """Return the engine's job for the turns of a chat; without a seed, its draws are random.

        Raises:
            ConfigError: The chat template does not accept the turns.
        """
        prompt = chat.prompt_of_turns(self.checkpoint.tokenizer, turns)
        if prompt is None:
            roles = ", ".join(turn["role"] for turn in turns)
            raise ConfigError("messages", expected="turns that the model's chat template accepts", got=roles)
        return Job(
            ids=tuple(self.checkpoint.ids(prompt, add_special_tokens=False)),
            seed=secrets.randbits(63) if seed is None else seed,
            max_new_tokens=max_tokens,
            temperature=temperature,
            top_p=self._top_p if top_p is None else top_p,
        )


class Batches:
    """A thread that has an engine to itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: queue.SimpleQueue[tuple[Job, Reply]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="engine").start()

    def submit(self, job: Job) -> Reply:
        """Let a job of one continuation wait for the engine; return the future of its token ids.

        The future raises what the engine raised for its batch. Cancelling it takes a waiting job out.
        """
        reply = Reply()
        self._waiting.put((job, reply))
        return reply

    def _work(self) -> None:
        while True:
            batch = [(job, reply) for job, reply in self._next() if reply.set_running_or_notify_cancel()]
            if batch:
                self._sample(batch)

    def _next(self) -> list[tuple[Job, Reply]]:
        """Wait for a job; return it with those that wait behind it, or come within a moment of one another."""
        batch = [self._waiting.get()]
        while len(batch) < MOST:
            try:
                batch.append(self._waiting.get(timeout=_MOMENT_S))
            except queue.Empty:
                break
        return batch

    def _sample(self, batch: list[tuple[Job, Reply]]) -> None:
        def done(place: int, written: Continuations) -> None:
            batch[place][1].set_result(written[0])

        try:
            self._engine.sample([job for job, _ in batch], done)
        except Exception as error:  # noqa: BLE001 each reply raises it again
            # Only our own messages are sure to hold no prompt.
            log.warning("%d jobs failed: %s", len(batch), error if isinstance(error, CaucusError) else type(error))
            for _, reply in batch:
                if not reply.done():
                    reply.set_exception(error)

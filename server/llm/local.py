"""Language models from checkpoints in a folder, which run on this machine without an API key or a network.

A model is prompted in one of two ways. In a chat it receives the prompts of `render` in its chat template.
Alternatively, it completes a list of examples (`completion`), which small models, and models without a template, do
better.
The tokens come from one of two engines: transformers for any checkpoint on any device, or OpenVINO for GGUF files and
exported models on CPUs, which is several times as fast.
"""

import hashlib
import importlib.metadata
import logging
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from common.errors import ConfigError, ProviderError
from common.models import chat, checkpoints
from common.validate import in_range, integers, not_empty, one_of
from server.domain import Example
from server.llm import completion as completions
from server.llm.base import Arrived, Reply, Request, accepted
from server.llm.completion import Beginning, Completion
from server.llm.engines.base import Continuations, Engine, Job
from server.llm.engines.loading import EngineName, ModelCheckpoint
from server.llm.engines.openvino import LIKELIEST
from server.llm.parse import parse
from server.llm.render import Prompts, our_prompts, whole

log = logging.getLogger("caucus.llm")

_TOKENS_PER_WORD = 1.4
_ROOM = 1.5  # tokens of a completion, for each that its examples or the requested length let expect
_LONGEST_ANSWER, _AROUND_TEXT = 4, 100  # tokens of a chat's answer for each requested word, and around each text
_SHORTEST = 40  # tokens that every completion may have


class Local:
    """A model from one checkpoint.

    The weights are loaded at the first request whose reply is not in a cache.

    Args:
        name: Name in reports and candidates.
        model: Folder, GGUF file, name in `common/models/catalogue.yaml`, or name of a model in the local cache.
        engine: "transformers", or "openvino" for a GGUF file or a model exported with optimum-intel; None chooses
            "openvino" for a GGUF file without the files of transformers.
        completion: Settings of prompts that the model completes, one text per prompt; None uses chat messages instead.
        public_examples: Public texts that a completion may show.
        device: Device of transformers, as torch names it: "cpu", "cuda", "cuda:1"; None uses the GPU, if there is one.
            OpenVINO computes on CPUs only.
        dtype: Data type of transformers' weights: "float32", "bfloat16", "float16", or "auto" for the checkpoint's own
            type, unless this CPU would compute more slowly in that type (`checkpoints.own_dtype`).
        max_new_tokens: Maximum number of tokens in one answer, which has all `n` texts of a request in a chat, and one
            text in a completion.
        batch_tokens: Maximum number of tokens in one batch of transformers, prompts, answers and padding included; it
            bounds the memory.
        top_p: Total probability of the most probable tokens (with OpenVINO, of 1,000), from which each is sampled.
        local_files_only: If false, files missing from the cache are downloaded.
        prompts: Wordings of chat prompts; None for our own.

    Raises:
        ConfigError: The model or the device does not exist on this machine; the model has no tokenizer, cannot write
            text, has no chat template and no `completion`, or has a context too small for a prompt and
            `max_new_tokens`; or the engine's package or file is missing, or a GGUF file is damaged.
    """

    remote = False

    def __init__(
        self,
        *,
        name: str,
        model: str | Path,
        engine: EngineName | None = None,
        completion: Completion | None = None,
        public_examples: Sequence[Example] = (),
        device: str | None = None,
        dtype: Literal["float32", "bfloat16", "float16", "auto"] = "float32",
        max_new_tokens: int = 512,
        batch_tokens: int = 16384,
        top_p: float = 1.0,
        local_files_only: bool = True,
        prompts: Prompts | None = None,
    ) -> None:
        not_empty(name=name)
        one_of(f"dtype of {name}", dtype, among=("float32", "bfloat16", "float16", "auto"))
        integers(1, max_new_tokens=max_new_tokens, batch_tokens=batch_tokens)
        in_range(0.01, 1, top_p=top_p)
        self.name = name
        self.declines = completions.DECLINED if completion else frozenset[str]()
        self._checkpoint = ModelCheckpoint.open(
            model,
            what=f"language model {name}",
            name=name,
            engine=engine,
            device=device,
            device_setting=f"llm.models.{name}.device",
            local_files_only=local_files_only,
        )
        if not completion:
            do = "Choose an instruct model, or set completion, as in configs/llm/smollm2.yaml"
            self._checkpoint.require_chat_template(f"language model {name}", do=do)
        self._completion = completion
        self._prompts = prompts or our_prompts()
        self._public = tuple(completions.with_topics(public_examples))
        self._max_new_tokens, self._batch_tokens, self._top_p = max_new_tokens, batch_tokens, top_p
        config, device = self._checkpoint.config, self._checkpoint.device
        self._dtype = checkpoints.own_dtype(config, device) if dtype == "auto" else dtype
        if max_new_tokens >= self._checkpoint.context:
            raise ConfigError(
                f"max_new_tokens of {name}",
                expected=f"below the model's context of {self._checkpoint.context} tokens",
                got=max_new_tokens,
                do="Lower it, and leave room for a prompt",
            )
        self._characters = 0.0  # a token, once measured
        self._longest = self._checkpoint.longest_prompt(max_new_tokens)

    @cached_property
    def identity(self) -> str:
        """Digest of the weights, tokenizer, settings and public texts.

        The batch size and the device are not part of it: they change the computed numbers by rounding errors only. With
        OpenVINO the type of processor has a larger effect (`engines/openvino.py`).
        """
        settings: dict[str, object] = {"max_new_tokens": self._max_new_tokens, "top_p": self._top_p}
        if self._checkpoint.engine == "openvino":
            settings["engine"] = f"openvino-genai {importlib.metadata.version('openvino-genai')}"
            settings |= {"likeliest": LIKELIEST} if self._top_p < 1 else {}
        else:
            settings["dtype"] = self._dtype
        wording = self._prompts.identity
        if self._completion:
            wording = f"completion {completions.WORDING}"
            settings |= {"completion": self._completion.identity, "public": self._public}
        return f"local/{checkpoints.digest(self._checkpoint.folder, **settings)}/wording={wording}"

    def check(self) -> None:
        """Do nothing, since the constructor has checked the checkpoint."""

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """Generate the replies (`server.llm.base.Provider`). A prompt longer than the model's context counts as lost.

        Raises:
            ProviderError: A batch does not fit into memory, or the weights cannot be loaded.
        """
        requests = [accepted(request, self.declines) for request in requests]
        lost = Reply(texts=(), input_tokens=0, output_tokens=0, loss="too long")
        jobs = [self._job(request) for request in requests]
        replies: dict[int, Reply] = {place: lost for place, job in enumerate(jobs) if len(job.ids) > self._longest}
        if replies:
            log.warning(
                "%s: %d of %d prompts are longer than the %d tokens that an answer of %d leaves in its context, and "
                "are lost; show fewer or shorter exemplars, or lower max_new_tokens",
                self.name,
                len(replies),
                len(jobs),
                self._longest,
                self._max_new_tokens,
            )
            if arrived is not None:
                for place in replies:
                    arrived(place, lost)
        fitting = [place for place in range(len(jobs)) if place not in replies]

        def done(at: int, written: Continuations) -> None:
            place = fitting[at]
            replies[place] = self._reply(requests[place], jobs[place], written)
            if arrived is not None:
                arrived(place, replies[place])

        if fitting:
            self._engine.sample([jobs[place] for place in fitting], done)
        return [replies[place] for place in range(len(jobs))]

    def estimate(self, request: Request) -> tuple[int, int]:
        """Estimate input tokens from the first prompt's characters per token, and output tokens as 1.4 per word."""
        size = len(self._prompt(request))
        # Its own tokenizer says how many; a rehearsal has too many prompts, of made-up texts, to ask it about each.
        self._characters = self._characters or size / len(self._job(request).ids)
        read = size / self._characters
        most = self._max_new_tokens * (request.n if self._completion else 1)
        return round(read), min(round(request.expected_words * _TOKENS_PER_WORD), most)

    def _prompt(self, request: Request) -> str:
        """Return the words of the prompt, without those that a chat template adds."""
        if self._completion is None:
            return whole(self._prompts.render(request))
        return self._completion.beginning(request, self._public).prompt

    @cached_property
    def _engine(self) -> Engine:
        """The engine, loaded at the first request: a run that resumes from its cache never needs it."""
        return self._checkpoint.load(name=self.name, dtype=self._dtype, batch_tokens=self._batch_tokens)

    def _job(self, request: Request) -> Job:
        """Convert the request to a job for an engine."""
        seed = int.from_bytes(hashlib.sha256(request.canonical().encode()).digest()[:8], "big") >> 1
        if self._completion is None:
            return Job(
                ids=tuple(self._ids(request)),
                seed=seed,
                max_new_tokens=self._answer_room(request),
                temperature=request.temperature,
                top_p=self._top_p,
            )
        beginning = self._completion.beginning(request, self._public)
        return Job(
            ids=tuple(self._checkpoint.ids(beginning.prompt)),
            seed=seed,
            count=request.n,
            max_new_tokens=self._room(request, beginning),
            temperature=request.temperature * self._completion.temperature,
            top_p=self._top_p,
            stop=completions.STOP,
        )

    def _answer_room(self, request: Request) -> int:
        """Return the token limit of a chat's answer: far above the requested length, if one is requested."""
        if request.words is None:
            return self._max_new_tokens
        return min(request.n * (request.words * _LONGEST_ANSWER + _AROUND_TEXT), self._max_new_tokens)

    def _room(self, request: Request, beginning: Beginning) -> int:
        """Return the token limit of one completion, from the requested length or the longest example, with a margin."""
        words = request.words or beginning.longest or self._max_new_tokens
        return min(max(math.ceil(words * _TOKENS_PER_WORD * _ROOM), _SHORTEST), self._max_new_tokens)

    def _reply(self, request: Request, job: Job, written: Continuations) -> Reply:
        outputs = list(map(self._checkpoint.text, written))
        cut = [len(ids) >= job.max_new_tokens for ids in written]
        if self._completion is None:
            texts = parse(outputs[0], request.n, phrases=request.phrases, cut=any(cut))
        else:
            read = [
                self._completion.read(output, request, whole=completions.STOP in output or not broken)
                for output, broken in zip(outputs, cut, strict=True)
            ]
            texts = tuple(text for text in read if text is not None)
        return Reply(
            texts=texts,
            input_tokens=len(job.ids),
            output_tokens=sum(len(ids) for ids in written),
            loss="truncated" if any(cut) and len(texts) < request.n else None,
            prompt=self._prompt(request),
            raw=outputs[0],
        )

    def _ids(self, request: Request) -> list[int]:
        prompt_text = chat.prompt(self._checkpoint.tokenizer, *self._prompts.render(request))
        if prompt_text is None:
            raise ProviderError(
                f"the chat template of {self.name} fails",
                do="Choose a model whose template takes a user's message",
                where=self._checkpoint.folder,
            )
        return self._checkpoint.ids(prompt_text, add_special_tokens=False)

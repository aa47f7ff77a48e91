"""Passes of requests to the models, all of them at once; texts are cleaned, and losses counted.

Missing texts stop a run before a query that would be asked about what is left, and would cost epsilon.
"""

import itertools
import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from common.errors import ProviderError
from common.phrases import percent
from server.llm.base import Provider, Reply, Request, advice_on
from server.llm.clean import PLAIN, Cleaner
from server.llm.remote.provider import cancel_requests
from server.llm.use import Use, kinds_lost
from server.settings.schema import MOST_LOST

log = logging.getLogger("caucus.llm")

FINAL_AFTER: Mapping[str, int] = {
    "truncated": 4,
    "empty": 8,
    "unreadable": 8,
    "refused": 8,
    "refusals": 8,
    "duplicates": 16,
}
"""Kinds of loss that asking again cannot mend, each with the number of replies from which this is taken for certain."""

FEW = 3
"""Smallest number of missing texts that can stop a run."""

Text = tuple[str, str]
"""Its model, and the text."""
Unusable = list[tuple[str, Request, Reply]]
"""Replies without a usable text, each with its model and request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTexts:
    """The clean texts of one request, each with its model, and whether its last reply never came."""

    texts: Sequence[Text] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What became of an order or of a request.

    Attributes:
        kind: Kind of its prompts (`server.llm.base.PROMPTS`).
        wanted: Number of texts, or 1 for a request.
        missing: How many of these are missing after the last pass.
        failed: Whether some are missing because their last request failed.
    """

    kind: str
    wanted: int
    missing: int
    failed: bool


class HowToAsk(TypedDict, total=False):
    """How models are asked and their texts treated.

    Attributes:
        cleaner: Rules for the texts; without it, they stay as they are.
        run_texts: Texts that the run already has, before the call.
        progress: Called with each reply when it arrives.
        most_lost: Share of the texts, or requests, that may be lost (`server.settings.schema.Llm`).
        unusable: Receives the replies without a usable text, also if an error is raised.
    """

    cleaner: Cleaner
    run_texts: Iterable[str]
    progress: Callable[[Reply], object]
    most_lost: float
    unusable: Unusable


class Call:
    """The passes of one call of `generate` or `write`; for the arguments see `HowToAsk`.

    Attributes:
        use: Totals of requests and replies.
        passes: Number of passes in which a model was asked.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        *,
        cleaner: Cleaner = PLAIN,
        run_texts: Iterable[str] = (),
        progress: Callable[[Reply], object] = lambda _: None,
        most_lost: float = MOST_LOST,
        unusable: Unusable | None = None,
    ) -> None:
        self.use, self.passes = Use(), 0
        self._most_lost = most_lost
        self._providers, self._cleaner, self._progress = providers, cleaner, progress
        self._known = set(run_texts)
        self._unusable: Unusable = [] if unusable is None else unusable
        self._writers: dict[str, None] = {}
        self._idle: dict[str, Counter[str]] = {}
        self._stopped: set[str] = set()

    def ask(self, requests: Sequence[tuple[str, Request]]) -> list[WrittenTexts]:
        """Make one pass: ask all models at once, clean their texts, and count requests and replies.

        The requests to a model without any clean text in earlier passes go, in turn, to the models that have one.
        A model is not asked again after passes without any clean text, of which all replies are lost for reasons that
        asking again cannot mend (`FINAL_AFTER`).

        Args:
            requests: Pairs of a model's name and a request to it.

        Returns:
            The answer to each request, in order; an empty one if no model was asked.

        Raises:
            ProviderError: A model failed. The error of the first such model is raised once all models have finished.
        """
        requests = [(model, self._cleaner.marks.shown(request)) for model, request in requests]
        turn = itertools.cycle([model for model in self._writers if model not in self._stopped])
        sent: dict[int, tuple[str, Request]] = {}
        passed_on = Counter[str]()
        for place, (model, request) in enumerate(requests):
            writer = model if model in self._writers else next(turn, model)
            if writer not in self._stopped:
                sent[place] = (writer, request)
                passed_on[model] += request.n if writer != model else 0
        self.use.passed_on |= passed_on  # the larger number: a later pass requests the rest of the same texts
        self.passes += bool(sent)
        answers = [WrittenTexts()] * len(requests)
        lost: dict[str, Counter[str]] = {model: Counter() for model, _ in sent.values()}
        wrote = set()
        replies = _ask(self._providers, list(sent.values()), self._progress, self._unusable)
        for (place, (model, request)), reply in zip(sent.items(), replies, strict=True):
            if reply.loss is None and len(reply.texts) < request.n:
                reply = replace(reply, loss="short")  # noqa: PLW2901
            cleaned, changed = self._cleaner.clean(reply.texts, request, run_texts=self._known)
            self._known.update(cleaned)
            self.use.add(model, request, reply, changed)
            answers[place] = WrittenTexts(
                texts=[(model, text) for text in cleaned], failed=reply.loss == "failed" and not cleaned
            )
            if cleaned:
                wrote.add(model)
            else:
                self._unusable.append((model, request, reply))
                lost[model][next(iter(kinds_lost(reply, changed)), "unknown")] += 1
        for model, kinds in lost.items():
            self._idle[model] = Counter() if model in wrote else self._idle.get(model, Counter()) + kinds
            self._stop_if_hopeless(model, self._idle[model])
        self._writers |= dict.fromkeys(model for model, _ in sent.values() if model in wrote)
        return answers

    def refuse_failed(self, asked: Sequence[Asked]) -> None:
        """Raise `ProviderError` if texts are missing since a model did not answer, unless any number may be lost."""
        failed = sum(one.missing for one in asked if one.failed)
        if failed and self._most_lost < 1:
            raise ProviderError(
                "a language model left requests unanswered",
                expected="an answer to each request",
                got=f"none for {failed:,} of {sum(one.wanted for one in asked):,} texts; {self.use.losses_in_words}",
                do=self._advice,
            )

    def refuse_lost(self, asked: Sequence[Asked]) -> None:
        """Raise `ProviderError` if more than a share `most_lost` of the texts, or all of a kind of prompt, are missing.

        Fewer than `FEW` missing texts never stop a run, nor does `most_lost` = 1. A smaller loss is logged.
        """
        wanted, missing = Counter[str](), Counter[str]()
        for one in asked:
            wanted[one.kind] += one.wanted
            missing[one.kind] += one.missing
        gone = [kind for kind, count in missing.items() if count >= FEW and count == wanted[kind]]
        got = f"{missing.total():,} of {wanted.total():,} missing"
        if gone and len(wanted) > 1:
            got += f", and all for prompts of {', '.join(kind.replace('_', ' ') for kind in gone)}"
        most = self._most_lost
        if most < 1 and (gone or FEW <= missing.total() > most * wanted.total()):
            raise ProviderError(
                "language models wrote too few texts",
                expected=f"at most {percent(most, 0)} of the texts missing (llm.most_lost), and not all of one kind "
                "of prompt",
                got=f"{got}; {self.use.losses_in_words}",
                do=self._advice,
            )
        if missing.total():
            log.warning("texts are lost and the run goes on without them: %s; %s", got, self.use.losses_in_words)

    @property
    def _advice(self) -> str:
        again = "Resuming asks for the missing texts again; llm.most_lost=1 goes on without them"
        return ". ".join(part for part in (self.use.advice, again) if part)

    def _stop_if_hopeless(self, model: str, lost: Counter[str]) -> None:
        if lost and lost.total() >= max(FINAL_AFTER.get(kind, math.inf) for kind in lost):
            self._stopped.add(model)
            kind, _ = lost.most_common(1)[0]
            log.warning(
                "%s is not asked again for these texts, as none of its last %d replies had a usable one (%s): %s",
                model,
                lost.total(),
                ", ".join(lost),
                advice_on(kind, model),
            )


def _ask(
    providers: Mapping[str, Provider],
    requests: Sequence[tuple[str, Request]],
    progress: Callable[[Reply], object],
    unusable: Unusable,
) -> list[Reply]:
    """Send the requests and return the replies in order; if a model fails, `unusable` gets the replies without texts.

    Each remote model runs in its own thread; models on this machine run one after another. If a model fails, the others
    finish first, so that their paid replies reach the cache.

    Raises:
        ProviderError: A model failed; the error of the first one is raised.
    """
    lock = threading.Lock()
    replies: dict[int, Reply] = {}
    failures: dict[str, Exception] = {}
    empty: Unusable = []

    def ask(model: str) -> None:
        places = [place for place, (name, _) in enumerate(requests) if name == model]
        own_requests = [requests[place][1] for place in places]

        def arrived(at: int, reply: Reply) -> None:
            with lock:
                progress(reply)
                if not reply.texts:
                    empty.append((model, own_requests[at], reply))

        try:
            replies.update(zip(places, providers[model].generate(own_requests, arrived=arrived), strict=True))
        except Exception as error:  # noqa: BLE001 raised again below
            failures[model] = error

    models = list(dict.fromkeys(model for model, _ in requests))
    remote = [model for model in models if providers[model].remote]
    _ask_each(ask, [model for model in models if model not in remote], remote)
    if failures:
        unusable += empty
        raise next(iter(failures.values()))
    return [replies[place] for place in range(len(requests))]


def _ask_each(ask: Callable[[str], None], local: Sequence[str], remote: Sequence[str]) -> None:
    """Ask each remote model in its own thread and the others in turn; an interrupt cancels requests under way."""
    # Daemons, so that an interrupted run does not wait for requests under way.
    threads = [threading.Thread(target=ask, args=(model,), name=f"llm-{model}", daemon=True) for model in remote]
    for thread in threads:
        thread.start()
    try:
        for model in local:
            ask(model)
        for thread in threads:
            thread.join()
    except (KeyboardInterrupt, SystemExit):
        cancel_requests()
        raise

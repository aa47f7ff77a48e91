"""A method's tools in a real run: language models, the encoder, and the queries to the parties."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from common.errors import ProviderError
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.closed_set import Spec, make_query
from common.system.progress import logged_if_long
from server.documents.rounds import WORK, RoundQuery
from server.domain import Candidate, Task
from server.federation.ask import Federation
from server.federation.attempt import Answered
from server.llm.base import Provider, Reply, Request
from server.llm.cache import Cached
from server.llm.clean import PLAIN, Cleaner
from server.llm.generate import Generated, Written, generate, write_texts
from server.llm.orders import Order, RequestMaker
from server.llm.passes import Unusable
from server.llm.spending import Spending
from server.settings.schema import MOST_LOST
from server.vector_cache import RememberingEncoder

log = logging.getLogger("caucus.progress")

_LINE_EVERY = 30.0


class Meter:
    """Measures the seconds spent on each kind of work, and counts the queries asked, since the last reading."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(WORK, 0.0)
        self._queries: list[RoundQuery] = []

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Add the duration of the block to the time of this kind of work."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[kind] += time.monotonic() - started

    def count(self, plan: Plan, answered: Answered) -> None:
        """Add an answered query to those since the last reading."""
        planned = plan.query(answered.index)
        self._queries.append(
            RoundQuery(
                index=answered.index,
                name=planned.name,
                mechanism=planned.mechanism,
                scale=planned.scale / planned.spec.noise_grid,
                noise=noise_in(plan, planned, answered.survivors) if planned.summed else None,
                survivors=answered.survivors,
                parties=plan.parties,
            )
        )

    def seconds(self) -> dict[str, float]:
        """Return the seconds measured since the last call, keyed by kind of work."""
        seconds, self._seconds = self._seconds, dict.fromkeys(WORK, 0.0)
        return {kind: round(spent, 3) for kind, spent in seconds.items()}

    def queries(self) -> list[RoundQuery]:
        """Return the queries asked since the last call."""
        queries, self._queries = self._queries, []
        return queries


def noise_in(plan: Plan, planned: PlannedQuery, survivors: int) -> float:
    """Return the standard deviation of the noise in a sum over this number of survivors, in the answer's unit."""
    return planned.noise_deviation * plan.surplus(planned, survivors)


class RunTools:
    """The `server.method.Tools` of one run; `meter` records each query and the time of each call.

    Attributes:
        zero_shot: Texts of the first round that were requested zero-shot before any answer of the parties, with the
            requested labels. They show what the same models write without the hospitals.
    """

    def __init__(
        self,
        *,
        task: Task,
        plan: Plan,
        federation: Federation,
        encoder: Encoder,
        providers: Mapping[str, Provider],
        cleaner: Cleaner = PLAIN,
        texts_per_request: int,
        spending: Spending,
        experiment_seed: int,
        most_lost: float = MOST_LOST,
    ) -> None:
        self.task = task
        self.plan = plan
        self.models = tuple(providers)
        self.providers = providers
        self.spending = spending
        self.experiment_seed = experiment_seed
        self.meter = Meter()
        self.encoder = RememberingEncoder(encoder)
        self._federation = federation
        self._cleaner = cleaner
        self._texts_per_request = texts_per_request
        self._most_lost = most_lost
        self._unusable: Unusable = []  # since the last query
        self._planned = {query.name: query for query in plan.queries}
        self._run_texts: frozenset[str] = frozenset()
        self._survivors: dict[tuple[str, int], int] = {}
        self.zero_shot: tuple[Candidate, ...] = ()

    def start_round(self, candidates: Iterable[Candidate]) -> None:
        """Set the run's texts so far, so that the cleaner drops duplicates of them and prompts show their marks."""
        so_far = tuple(candidates)
        self._run_texts = frozenset(candidate.text for candidate in so_far)
        self._cleaner.marks.know(so_far)

    @contextmanager
    def asking_again_after_errors(self) -> Iterator[None]:
        """Have a resumed run ask again for the texts of a step that a model's error ends.

        Forgotten are the replies without a usable text since the last query: nothing has been asked about what was
        written instead of them.
        """
        self._unusable.clear()
        try:
            yield
        except ProviderError:
            for model, request, _ in self._unusable:
                if isinstance(provider := self.providers[model], Cached):
                    provider.forget(request)
            raise

    def _keep_unusable(self) -> None:
        """Make the replies without a usable text final, so that a repeated step asks the same query again."""
        for model, request, reply in self._unusable:
            if isinstance(provider := self.providers[model], Cached):
                provider.keep(request, reply)
        self._unusable.clear()

    def with_spans(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the candidates with the spans that their models marked."""
        return self._cleaner.marks.given(candidates)

    def generate(self, orders: Sequence[Order], make_request: RequestMaker, *, round_number: int) -> Generated:
        """Fill orders with texts; see `server/llm/generate.py`."""
        total, before_answers = sum(order.count for order in orders), round_number == 0 and not self._survivors
        with (
            self.meter.timed("generate"),
            _writing(f"round {round_number + 1} texts", total, self.spending) as arrived,
        ):
            generated = generate(
                self.providers,
                orders,
                make_request,
                round_number=round_number,
                texts_per_request=self._texts_per_request,
                experiment_seed=self.experiment_seed,
                cleaner=self._cleaner,
                run_texts=self._run_texts,
                progress=arrived,
                most_lost=self._most_lost,
                unusable=self._unusable,
            )
        if before_answers and generated.zero_shot:
            self.zero_shot += self.with_spans(generated.candidates)
        return generated

    def write(self, requests: Sequence[tuple[str, Request]]) -> Written:
        """Send each request to the model named with it; see `server/llm/generate.py`."""
        total = sum(request.n for _, request in requests)
        with self.meter.timed("generate"), _writing("texts", total, self.spending) as arrived:
            return write_texts(
                self.providers,
                requests,
                cleaner=self._cleaner,
                run_texts=self._run_texts,
                progress=arrived,
                most_lost=self._most_lost,
                unusable=self._unusable,
            )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embeddings of texts, (texts, dimensions) float32, unit norm."""
        with self.meter.timed("embed"):
            return self.encoder.encode(texts)

    def spec(self, name: str) -> Spec:
        """Return the specification of a planned query."""
        return self._planned[name].spec

    def ask(self, name: str, nth: int, **arrays: NDArray[Any]) -> NDArray[np.float64]:
        """Ask the parties a planned query, and return the answer in its unit (`server.method.Tools.ask`)."""
        with self.meter.timed("ask"):
            spec = self.spec(name)
            self._keep_unusable()
            answered = self._federation.ask(name, nth, make_query(spec, arrays))
            self.meter.count(self.plan, answered)
            self._survivors[name, nth] = answered.survivors
            return answered.values / spec.grid

    def noise(self, name: str, nth: int) -> float:
        """Return the standard deviation of the noise from all survivors in an answer to `ask`, in the answer's unit."""
        return noise_in(self.plan, self._planned[name], self._survivors[name, nth])


@contextmanager
def _writing(
    title: str, total: int, spending: Spending, *, now: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[Reply], None]]:
    """Show a progress bar of texts, with speed, replies without texts, and the cost so far if it is known.

    Without a terminal, the log has a line once the step is long, and another at each reply after `_LINE_EVERY` seconds.

    Yields:
        A function that adds an arrived reply.
    """
    started = last_line = now()
    done = fresh = tokens = unreadable = 0

    def cost() -> dict[str, str]:
        known = spending.cost()
        return {"cost": f"{known:.4g}"} if known else {}

    with (
        tqdm(total=total, desc=title, unit="text", leave=False, postfix=cost(), disable=None) as bar,
        logged_if_long(f"{title}: {total:,} to write") if bar.disable else nullcontext(),
    ):

        def arrived(reply: Reply) -> None:
            nonlocal last_line, done, fresh, tokens, unreadable
            done += len(reply.texts)
            unreadable += not reply.texts
            if reply.prompt:  # no reply of the cache, which comes at once
                fresh += len(reply.texts)
                tokens += reply.output_tokens
            seconds = now() - started
            speed = {"tokens/s": f"{tokens / seconds:.0f}"} if tokens and seconds else {}
            bar.set_postfix(speed | ({"unreadable": unreadable} if unreadable else {}) | cost(), refresh=False)
            bar.update(len(reply.texts))
            if bar.disable and now() - last_line >= _LINE_EVERY:
                last_line = now()
                facts = [f"{min(done, total):,} of {total:,} texts"]
                facts += [f"{number} {name}" for name, number in speed.items()]
                facts += [f"{unreadable:,} replies without texts"] * bool(unreadable)
                if total > done and 9 * fresh >= total - done:  # a batch's first text comes after all prompts are read
                    facts.append(f"about {tqdm.format_interval(seconds / fresh * (total - done))} left")
                log.info("%s: %s", title, ", ".join(facts))

        yield arrived

"""The tools that a method works with in a real run: language models, the encoder, the door to the parties."""

import time
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.queries.closed_set import make_query
from server.federation.ask import Answered, Federation
from server.llm.generate import generate, write
from server.llm.spending import Spending
from server.method import Tools
from server.parts import RunParts

KINDS_OF_WORK = ("generate", "embed", "ask")


class RememberingEncoder:
    """An encoder that embeds each text once in a run: D is voted on again in each round, held-out texts measured by."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Texts to (texts, dimensions) float32, unit norm."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        self._known |= dict(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts]) if texts else self._encoder.encode([])


class Meter:
    """Seconds by kind of work, and the queries asked, since the last look."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(KINDS_OF_WORK, 0.0)
        self._queries: list[dict[str, Any]] = []

    def timed(self, kind: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """That work, its seconds counted."""

        def measured(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            started = time.monotonic()
            try:
                return work(*args, **kwargs)
            finally:
                self._seconds[kind] += time.monotonic() - started

        return measured

    def asked(self, plan: Plan, answered: Answered) -> None:
        """Count one query."""
        planned = plan.query(answered.index)
        self._queries.append(
            {
                "index": answered.index,
                "name": planned.name,
                "mechanism": planned.mechanism,
                "scale": planned.scale / planned.spec.noise_grid,
                "survivors": answered.survivors,
                "parties": plan.parties,
            }
        )

    def seconds(self) -> dict[str, float]:
        """Seconds of each kind of work since the last call."""
        taken, self._seconds = self._seconds, dict.fromkeys(KINDS_OF_WORK, 0.0)
        return {kind: round(spent, 3) for kind, spent in taken.items()}

    def queries(self) -> list[dict[str, Any]]:
        """Queries asked since the last call."""
        taken, self._queries = self._queries, []
        return taken


def make_tools(
    setup: RunParts, federation: Federation, meter: Meter, embed: RememberingEncoder, held: Container[str]
) -> Tools:
    """The tools of one run, each metered."""
    specs = {query.name: query.spec for query in setup.plan.queries}

    def ask(name: str, nth: int, **arrays: NDArray[Any]) -> NDArray[np.float64]:
        answered = federation.ask(name, nth, make_query(specs[name], arrays))
        meter.asked(setup.plan, answered)
        return answered.values / specs[name].grid

    def bar(total: int, about: str) -> Any:  # noqa: ANN401
        return tqdm(total=total, desc=about, unit="text", leave=False, postfix=_spent(setup.spending))

    def told(shown: Any) -> Callable[[int], None]:  # noqa: ANN401
        def progress(texts: int) -> None:
            shown.set_postfix(_spent(setup.spending), refresh=False)
            shown.update(texts)

        return progress

    def write_texts(orders: Any, write: Any, *, round_number: int) -> Any:  # noqa: ANN401
        with bar(sum(order.count for order in orders), f"round {round_number + 1} texts") as shown:
            return generate(
                setup.providers,
                orders,
                write,
                round_number=round_number,
                texts_per_request=setup.method.texts_per_request,
                experiment_seed=setup.experiment_seed,
                cleaner=setup.cleaner,
                held=held,
                progress=told(shown),
            )

    def answer_requests(requests: Any) -> Any:  # noqa: ANN401
        with bar(sum(request.n for _, request in requests), "texts") as shown:
            return write(setup.providers, requests, cleaner=setup.cleaner, held=held, progress=told(shown))

    return Tools(
        task=setup.task,
        models=tuple(setup.providers),
        experiment_seed=setup.experiment_seed,
        generate=meter.timed("generate", write_texts),
        write=meter.timed("generate", answer_requests),
        embed=meter.timed("embed", embed),
        ask=meter.timed("ask", ask),
    )


def _spent(spending: Spending) -> dict[str, str]:
    """Beside the progress: the money so far, if any is known to be spent."""
    cost = spending.cost()
    return {"cost": f"{cost:.4g}"} if cost else {}

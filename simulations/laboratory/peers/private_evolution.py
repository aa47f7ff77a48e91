"""The library of private evolution (microsoft/DPSDA, package `pe`) beside a finished Aug-PE run of ours.

    PYTHONPATH=.:DPSDA python -m simulations.laboratory.peers.private_evolution RUN OUT.json [--draws 200] [--no-texts]

The library gets what our run had, through its own interfaces: the private records, the encoder, the language models
with our prompts, N, T, L, epsilon and delta. It is not installed with this project; PEERS.md says how it was run.

1. Votes: on one population, its histogram by each of its searches, and our parties' votes without noise.
2. Noise: the standard deviations that both programs calibrate for the same epsilon, delta and T.
3. Selection: many draws of noise and survivors from that population by both, which needs no language model.
4. Texts: a whole run of the library, measured as ours.

Votes without noise, and whatever is computed from them, are for a simulation alone.
"""

import argparse
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from client.contributions.votes import votes_of
from common import rng
from common.domain import Record
from common.privacy.samplers import discrete_gaussian
from common.queries.votes import Votes, VotesSpec
from server.domain import Candidate
from server.evaluation import small_model
from server.federation.ask import Federation
from server.llm.allocation import per_label
from server.llm.form_choice import in_chosen_forms
from server.llm.orders import even_orders
from server.methods.aug_pe import AugPe
from server.operators import survivors
from server.operators.variation import vary
from server.run_folder import TEXTS, ZERO_SHOT, read_candidates
from server.settings.compose import reloaded, simulated
from server.settings.parts import Parts, build_parts
from server.tools import RunTools
from simulations.federation.measured import with_records

Counts = NDArray[np.float64]

SEARCHES = (("sklearn", "l2"), ("sklearn", "cos_sim"), ("torch", "l2"), ("faiss", "l2"), ("faiss", "cos_sim"))
"""The library's searches, each with a distance; on unit vectors all mean the same neighbour."""
TEXT, LABEL = "PE.TEXT", "PE.LABEL_ID"
CLEAN, KEPT = "PE.CLEAN_HISTOGRAM", "PE.FROM_LAST_FLAG"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished Aug-PE run of ours, with the records that its parties had.

    Attributes:
        parts: What its settings name.
        method: Its method.
        tools: Its language models and encoder; there is no federation behind them.
        private: All records.
        test: Held-out records.
        candidates: Its first population, before any answer.
        texts: Its synthetic texts.
    """

    parts: Parts
    method: AugPe
    tools: RunTools
    private: Sequence[Record] = field(repr=False)
    test: Sequence[Record]
    candidates: Sequence[Candidate]
    texts: Sequence[Candidate]

    def vectors(self, texts: Sequence[Record | Candidate]) -> NDArray[np.float32]:
        """Return the texts' vectors under the run's encoder, (texts, dimensions) float32, unit norm."""
        return self.tools.embed([text.text for text in texts])

    def numbers(self, texts: Sequence[Record | Candidate]) -> NDArray[np.int32]:
        """Return the positions of the texts' labels in the task, (texts,) int32."""
        places = {label: number for number, label in enumerate(self.tools.task.labels)}
        return np.array([places[text.label] for text in texts], dtype=np.int32)

    def accuracy(self, texts: Sequence[Candidate]) -> float:
        """Return the accuracy on the test texts of logistic regression on the encoder's vectors."""
        evaluation = small_model.by_encoder(self.parts.evaluation)
        return float(small_model.score(texts, self.test, evaluation=evaluation, encoder=self.tools.encoder)["accuracy"])


def finished(folder: Path) -> Run:
    """Read a finished simulation of Aug-PE, without `look_ahead` and `smoothing`, which the comparison leaves out."""
    settings = simulated(reloaded(folder, []))
    parts = build_parts(settings)
    measured = with_records(settings, [])
    assert isinstance(parts.method, AugPe), "only a run of aug_pe can be compared"
    left_out = parts.method.look_ahead or parts.method.smoothing or parts.method.vocabulary
    assert not left_out, "these are not compared"
    task, seed = parts.source.task(), settings.experiment_seed
    tools = RunTools(
        task=task,
        plan=parts.plan,
        federation=cast("Federation", None),  # nothing is asked
        encoder=parts.encoder,
        providers=in_chosen_forms(parts.providers, task, parts.encoder, cleaner=parts.cleaner, experiment_seed=seed),
        cleaner=parts.cleaner,
        texts_per_request=parts.method.texts_per_request,
        spending=parts.spending,
        experiment_seed=seed,
    )
    return Run(
        parts=parts,
        method=parts.method,
        tools=tools,
        private=measured.private,
        test=measured.test,
        candidates=read_candidates(folder, ZERO_SHOT),
        texts=read_candidates(folder, TEXTS),
    )


def our_votes(run: Run, candidates: Sequence[Candidate]) -> Counts:
    """Return the sum of all parties' votes for each candidate, without noise."""
    spec = VotesSpec(top=1, furthest=False)
    query = Votes(spec=spec, vectors=run.vectors(candidates), labels=run.numbers(candidates))
    return votes_of(query, run.vectors(run.private), run.numbers(run.private)) / spec.grid


def our_noise(run: Run) -> float:
    """Return the standard deviation of the noise in a sum over all parties, in votes."""
    plan = run.parts.plan
    (planned,) = plan.queries
    return planned.noise_deviation * plan.surplus(planned, plan.parties)


def our_choice(run: Run, votes: Counts, draw: int) -> list[int]:
    """Return the survivors of one draw of all parties' shares of noise, as positions of the population."""
    plan = run.parts.plan
    (planned,) = plan.queries
    noised = votes * planned.spec.grid
    for _ in range(plan.parties if planned.scale else 0):
        noised = noised + discrete_gaussian(plan.share_sigma(planned), len(votes), rng.secure_bytes(32))
    sizes = per_label(np.array([run.method.samples]), len(run.tools.task.labels))[0]
    parents, _ = survivors.choose(
        noised / planned.spec.grid,
        run.numbers(run.candidates),
        [int(size) // run.method.expansion for size in sizes],
        select=run.method.select,
        threshold=run.method.threshold,
        rng=np.random.default_rng(draw),
        task=run.tools.task,
    )
    return [parent for of_label in parents for parent in of_label]


class Library:
    """The library's parts, set up as our run was; it must be importable as `pe`."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.modules: Callable[[str], Any] = importlib.import_module
        self.requested = self.unanswered = self.calls = 0
        self.counted = self.elsewhere = 0.0
        self.labels = list(run.tools.task.labels)
        self._counting: Any = None
        self.column_name = "PE.EMBEDDING.caucus"
        self.epsilon, self.delta = run.parts.plan.epsilon, run.parts.plan.delta

    def data(self, texts: Sequence[Record | Candidate]) -> Any:  # noqa: ANN401 the library's own class
        """Return texts as the library's data."""
        frame = {TEXT: [text.text for text in texts], LABEL: self.run.numbers(texts).tolist()}
        return self._data(frame, {"label_info": [{"name": label} for label in self.labels]})

    def compute_embedding(self, data: Any) -> Any:  # noqa: ANN401
        """Add our encoder's vectors: the library's interface `Embedding`."""
        vectors = list(self.run.tools.embed(data.data_frame[TEXT].tolist()))
        data.data_frame = data.data_frame.assign(**{self.column_name: vectors})
        return data

    def random_api(self, label_info: Any, num_samples: int) -> Any:  # noqa: ANN401
        """Write first texts of one label, by the requests of our run: the library's interface `API`."""
        orders = [
            order
            for order in even_orders(num_samples * len(self.labels), self.run.tools.task, self.run.tools.models)
            if order.label == label_info.name
        ]
        written = self.run.tools.generate(orders, self.run.method._writer(self.run.tools), round_number=0)  # noqa: SLF001
        self.requested += num_samples
        texts = [candidate.text for candidate in written.candidates]
        return self._data({TEXT: texts, LABEL: [0] * len(texts)}, {"label_info": [label_info]})

    def variation_api(self, syn_data: Any) -> Any:  # noqa: ANN401
        """Write one variation of each text; where the models wrote none, the text itself: the interface `API`."""
        texts, numbers = syn_data.data_frame[TEXT].tolist(), syn_data.data_frame[LABEL].tolist()
        names = [info.name for info in syn_data.metadata.label_info]
        model = self.run.tools.models[0]
        parents = [
            Candidate(text=text, label=names[number], model=model, round=0)
            for text, number in zip(texts, numbers, strict=True)
        ]
        method = self.run.method
        families = [(parent, 1) for parent in parents]
        written = vary(method.variation, families, self.run.tools, "pe", self.calls, temperature=method.temperature)
        self.calls += 1
        self.requested += len(parents)
        self.unanswered += sum(not replies for replies in written.texts)
        varied = [replies[0] if replies else text for text, replies in zip(texts, written.texts, strict=True)]
        return self._data({TEXT: varied, LABEL: numbers}, syn_data.metadata)

    def compute_histogram(self, priv_data: Any, syn_data: Any) -> Any:  # noqa: ANN401
        """Count by the library's histogram, and compare it with our votes: the library's interface `Histogram`."""
        private, counted = self._counting.compute_histogram(priv_data=priv_data, syn_data=syn_data)
        frame = counted.data_frame
        candidates = [
            Candidate(text=text, label=self.labels[number], model="pe", round=0)
            for text, number in zip(frame[TEXT], frame[LABEL], strict=True)
        ]
        votes = frame[CLEAN].to_numpy(dtype=np.float64)
        self.counted += votes.sum()
        self.elsewhere += np.abs(votes - our_votes(self.run, candidates)).sum() / 2
        return private, counted

    def votes(self, backend: str, mode: str) -> Counts:
        """Return the library's histogram without noise of the run's first population, label by label."""
        private, synthetic = self.data(self.run.private), self.data(self.run.candidates)
        histogram, counts = self._histogram(backend, mode), np.zeros(len(self.run.candidates))
        for number in range(len(self.labels)):
            _, counted = histogram.compute_histogram(private.filter_label_id(number), synthetic.filter_label_id(number))
            counts[counted.data_frame.index] = counted.data_frame[CLEAN]
        return counts

    def gaussian(self) -> Any:  # noqa: ANN401
        """Return the library's mechanism, calibrated for T answers."""
        mechanism = self.modules("pe.dp").Gaussian()
        mechanism.set_epsilon_and_delta(self.run.method.rounds, self.epsilon, self.delta, None)
        return mechanism

    def noise(self) -> float:
        """Return the standard deviation of the library's noise, measured on a million zeros."""
        counts = self._data({CLEAN: np.zeros(10**6)}, {})
        return float(self.gaussian().add_noise(counts).data_frame["PE.DP_HISTOGRAM"].std())

    def choice(self, mechanism: Any, votes: Counts) -> list[int]:  # noqa: ANN401
        """Return the survivors of one draw of the library's noise, as positions of the population."""
        population = self._population(_Echo())
        chosen: list[int] = []
        whole = self.data(self.run.candidates)
        whole.data_frame[CLEAN] = votes
        for number in range(len(self.labels)):
            noised = mechanism.add_noise(whole.filter_label_id(number))
            kept = len(noised.data_frame) // self.run.method.expansion
            following = population.next(noised, kept).data_frame
            chosen += following[following[KEPT] == 1]["PE.PARENT_SYN_DATA_INDEX"].tolist()
        return chosen

    def texts(self, backend: str = "sklearn") -> tuple[list[Candidate], list[Candidate]]:
        """Run the library from first to last text; return all of its texts, and those that the last votes chose."""
        runner = self.modules("pe.runner").PE(
            priv_data=self.data(self.run.private),
            population=self._population(self),
            histogram=self,
        )
        self._counting = self._histogram(backend, "l2")
        size, expansion = self.run.method.samples, self.run.method.expansion
        made = runner.run(
            num_samples_schedule=[size, *[size // expansion] * self.run.method.rounds],
            delta=self.delta,
            epsilon=self.epsilon,
            save_checkpoint=False,
            fraction_per_label_id=[1] * len(self.labels),
        ).data_frame
        candidates = [
            Candidate(text=text, label=self.labels[number], model="pe", round=0)
            for text, number in zip(made[TEXT], made[LABEL], strict=True)
        ]
        return candidates, [candidate for candidate, kept in zip(candidates, made[KEPT], strict=True) if kept == 1]

    def _data(self, frame: dict[str, Any], metadata: Any) -> Any:  # noqa: ANN401
        return self.modules("pe.data").Data(self.modules("pandas").DataFrame(frame), metadata)

    def _histogram(self, backend: str, mode: str) -> Any:  # noqa: ANN401
        module = self.modules("pe.histogram")
        return module.NearestNeighbors(embedding=self, mode=mode, lookahead_degree=0, backend=backend)

    def _population(self, api: object) -> Any:  # noqa: ANN401
        return self.modules("pe.population").PEPopulation(
            api=api,
            next_variation_api_fold=self.run.method.expansion - 1,
            keep_selected=True,
            selection_mode=self.run.method.select,
        )


class _Echo:
    """An `API` whose variations are the texts themselves."""

    def variation_api(self, syn_data: Any) -> Any:  # noqa: ANN401
        return type(syn_data)(syn_data.data_frame.copy(), syn_data.metadata)


def of_draws(run: Run, votes: Counts, draws: int, choose: Callable[[int], list[int]]) -> dict[str, NDArray[np.float64]]:
    """Return for each draw the number of survivors, the share of records that voted for them, and the accuracy."""
    rows = []
    for draw in range(draws):
        chosen = choose(draw)
        accuracy = run.accuracy([run.candidates[at] for at in chosen])
        rows.append((len(chosen), votes[sorted(set(chosen))].sum() / votes.sum(), accuracy))
    return dict(zip(("survivors", "votes", "accuracy"), np.array(rows).T, strict=True))


def difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> dict[str, float]:
    """Return two means, and the difference of the second from the first with half of its 95 % interval."""
    half = 1.96 * np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    return {
        "ours": float(first.mean()),
        "library": float(second.mean()),
        "difference": float(second.mean() - first.mean()),
        "interval": float(half),
    }


def compared(run: Run, *, draws: int, texts: bool) -> dict[str, Any]:
    """Compare the library with the run, as the module says; return the figures, ready for JSON."""
    library, votes = Library(run), our_votes(run, run.candidates)
    figures: dict[str, Any] = {"records": len(run.private), "population": len(votes), "votes": float(votes.sum())}
    figures["votes elsewhere"] = {
        f"{backend}, {mode}": float(np.abs(library.votes(backend, mode) - votes).sum() / 2)
        for backend, mode in SEARCHES
    }
    figures["noise"] = {"ours": our_noise(run), "library": library.noise()}
    if draws:
        mechanism = library.gaussian()
        ours = of_draws(run, votes, draws, partial(our_choice, run, votes))
        theirs = of_draws(run, votes, draws, lambda _: library.choice(mechanism, votes))
        figures["selection"] = {name: difference(ours[name], theirs[name]) for name in ours}
    figures["ours"] = {"accuracy": run.accuracy(run.texts), "texts": len(run.texts)}
    if texts:
        made, kept = library.texts()
        figures["library"] = {
            "accuracy": run.accuracy(made),
            "texts": len(made),
            "accuracy of survivors": run.accuracy(kept),
            "survivors": len(kept),
            "requested": library.requested,
            "unanswered": library.unanswered,
            "votes": library.counted,
            "votes elsewhere": library.elsewhere,
        }
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a finished simulation with method=aug_pe")
    parser.add_argument("out", type=Path, help="file for the figures")
    parser.add_argument("--draws", type=int, default=200, help="draws of noise; 0: none")
    parser.add_argument("--no-texts", action="store_true", help="no run of the library with language models")
    options = parser.parse_args(arguments)
    figures = compared(finished(options.run), draws=options.draws, texts=not options.no_texts)
    options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

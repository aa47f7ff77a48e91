"""The components of the private-evolution library, set up like a run of ours through the library's own interfaces.

The library (package `pe`) is not installed with this project, so its modules are imported only when they are used, and
its objects have no types here.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.domain import Record
from server.domain import Candidate
from server.llm.base import Request
from server.llm.orders import Order, even_orders
from server.llm.requests import by_example
from server.operators.variation import vary
from simulations.laboratory.peers.our_run import Counts, OurRun, our_votes

SEARCHES = (("sklearn", "l2"), ("sklearn", "cos_sim"), ("torch", "l2"), ("faiss", "l2"), ("faiss", "cos_sim"))
"""The library's search backends, each with a distance; on unit vectors, all of them should find the same neighbour."""
TEXT, LABEL = "PE.TEXT", "PE.LABEL_ID"
CLEAN, KEPT = "PE.CLEAN_HISTOGRAM", "PE.FROM_LAST_FLAG"


class Library:
    """The components of the library, set up like our run. The library must be importable as `pe`."""

    def __init__(self, run: OurRun) -> None:
        self.run = run
        self.modules: Callable[[str], Any] = importlib.import_module
        self.requested = self.unanswered = self.calls = 0
        self.counted = self.elsewhere = 0.0
        self.labels = list(run.tools.task.labels)
        self._counting: Any = None
        self.column_name = "PE.EMBEDDING.caucus"
        self.epsilon, self.delta = run.parts.plan.epsilon, run.parts.plan.delta

    def data(self, texts: Sequence[Record | Candidate]) -> Any:
        """Return texts with their labels as the library's type `Data`."""
        frame = {TEXT: [text.text for text in texts], LABEL: self.run.numbers(texts).tolist()}
        return self._data(frame, {"label_info": [{"name": label} for label in self.labels]})

    def compute_embedding(self, data: Any) -> Any:
        """Add our encoder's vectors to the data, as the library's interface `Embedding` requires."""
        vectors = list(self.run.tools.embed(data.data_frame[TEXT].tolist()))
        data.data_frame = data.data_frame.assign(**{self.column_name: vectors})
        return data

    def random_api(self, label_info: Any, num_samples: int) -> Any:
        """Return the first texts of one label, written with the requests of our run (the library's interface `API`)."""
        orders = [
            order
            for order in even_orders(num_samples * len(self.labels), self.run.tools.task, self.run.tools.models)
            if order.label == label_info.name
        ]
        written = self.run.tools.generate(orders, self._request, round_number=0)
        self.requested += int(num_samples)
        texts = [candidate.text for candidate in written.candidates]
        return self._data({TEXT: texts, LABEL: [0] * len(texts)}, {"label_info": [label_info]})

    def variation_api(self, syn_data: Any) -> Any:
        """Return one variation of each text, or the text itself if the models wrote no variation (interface `API`)."""
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

    def compute_histogram(self, priv_data: Any, syn_data: Any) -> Any:
        """Return the library's histogram; add its difference from our votes to a total (interface `Histogram`)."""
        private, counted = self._counting.compute_histogram(priv_data=priv_data, syn_data=syn_data)
        frame = counted.data_frame
        candidates = [
            Candidate(text=text, label=self.labels[number], model="pe", round=0)
            for text, number in zip(frame[TEXT], frame[LABEL], strict=True)
        ]
        votes = frame[CLEAN].to_numpy(dtype=np.float64)
        self.counted += float(votes.sum())
        self.elsewhere += float(np.abs(votes - our_votes(self.run, candidates)).sum() / 2)
        return private, counted

    def votes(self, backend: str, mode: str) -> Counts:
        """Return the library's histogram of the run's first population, without noise, counted label by label."""
        private, synthetic = self.data(self.run.private), self.data(self.run.candidates)
        histogram, counts = self._histogram(backend, mode), np.zeros(len(self.run.candidates))
        for number in range(len(self.labels)):
            _, counted = histogram.compute_histogram(private.filter_label_id(number), synthetic.filter_label_id(number))
            counts[counted.data_frame.index] = counted.data_frame[CLEAN]
        return counts

    def gaussian(self) -> Any:
        """Return the library's Gaussian mechanism, calibrated for the run's T answers, epsilon and delta."""
        mechanism = self.modules("pe.dp").Gaussian()
        mechanism.set_epsilon_and_delta(self.run.method.rounds, self.epsilon, self.delta, None)
        return mechanism

    def noise(self) -> float:
        """Return the standard deviation of the library's noise, in units of votes."""
        calibrate = self.modules("pe.dp.gaussian").get_noise_multiplier
        return float(calibrate(epsilon=self.epsilon, num_steps=self.run.method.rounds, delta=self.delta))

    def choice(self, mechanism: Any, votes: Counts) -> list[int]:
        """Return the survivors of one draw of the library's noise, as indices into the first population."""
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
        """Run the library from start to end; return all of its texts, and the texts chosen by the last votes."""
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

    def _request(self, order: Order, texts: int, generator: np.random.Generator) -> Request:
        method = self.run.method
        return by_example(
            self.run.tools.task,
            order.label,
            texts=texts,
            rng=generator,
            temperature=method.temperature,
            words=method.words,
        )

    def _data(self, frame: dict[str, Any], metadata: Any) -> Any:
        return self.modules("pe.data").Data(self.modules("pandas").DataFrame(frame), metadata)

    def _histogram(self, backend: str, mode: str) -> Any:
        module = self.modules("pe.histogram")
        return module.NearestNeighbors(embedding=self, mode=mode, lookahead_degree=0, backend=backend)

    def _population(self, api: object) -> Any:
        return self.modules("pe.population").PEPopulation(
            api=api,
            next_variation_api_fold=self.run.method.expansion - 1,
            keep_selected=True,
            selection_mode=self.run.method.select,
        )


class _Echo:
    """An `API` that returns each text unchanged as its variation."""

    def variation_api(self, syn_data: Any) -> Any:
        return type(syn_data)(syn_data.data_frame.copy(), syn_data.metadata)

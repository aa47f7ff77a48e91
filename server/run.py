"""The loop. Read this first.

    plan -> open -> for each round: step, save -> close -> evaluate, report

The run folder is the product. It is complete, or `run.json` says "partial" and `--resume` goes on from the last whole
step: texts that models have written come from the reply cache, answers that parties have given from the checkpoint.

    config.yaml       what was asked for                    (written by the entry point)
    synthetic.jsonl   text, label, model, round, weight (1 unless the method weighs its texts)
    rounds.jsonl      one line a round: counts, weights, FID, seconds, tokens
    privacy.json      the guarantee and what it does not cover
    metrics.json      the small model trained on synthetic texts, tested on real ones; the chosen groups of figures
    map.json          two coordinates of each synthetic text
    report.html       all of it on one page; report.json: the same for programs
    tensorboard/      figures by round, with `tracking: tensorboard`
    state/            what resuming needs
"""

import json
import logging
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from common.domain import Candidate, Record, Task
from common.errors import CheckpointError
from common.ledger.ledger import Ledger
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.privacy import accountant
from common.queries.closed_set import asked
from common.queries.texts import TextSpec
from common.secagg.identity import Roster
from common.system.files import write_atomic
from server import evaluate, federated, measures, projection, rounds
from server.ask import Answered, Federation
from server.checkpoint import Checkpoint
from server.llm.base import Provider
from server.llm.clean import Cleaner
from server.llm.generate import PLAIN, generate, write
from server.llm.spending import Spending
from server.methods.base import Method, State, Tools
from server.network import Network
from server.plain import for_json
from server.planning import describe
from server.report import write_report
from server.tracking import track

log = logging.getLogger("caucus.run")

KINDS_OF_WORK = ("generate", "embed", "ask")
VERSIONS = ("caucus", "flwr", "torch", "sentence-transformers", "dp-accounting", "numpy", "cryptography")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """All parts of one run, built by an entry point.

    Attributes:
        run: Identity of the run, unique among all runs of these parties.
        folder: The run folder.
        method: What to run.
        plan: The agreed privacy plan.
        network: How parcels reach the parties.
        providers: Language models by name.
        encoder: The encoder that the parties run as well.
        task: What is public about the data.
        held_out: Real texts for evaluation that are no party's records; may be empty.
        experiment_seed: For prompts and sampling; never for noise.
        simulation: Whether parties and coordinator are one machine.
        labels_from_records: Whether the labels were taken from private records, without noise.
        roster: The parties' identities, where the plan names their digest.
        retries: How often a query that failed is asked anew before the run ends.
        evaluation: Which small model says how good the texts are.
        cleaner: What is done to the models' texts.
        spending: What the models are paid.
        tracking: "tensorboard", or None.
    """

    run: str
    folder: Path
    method: Method
    plan: Plan
    network: Network
    providers: Mapping[str, Provider]
    encoder: Encoder
    task: Task
    held_out: Sequence[Record] = field(repr=False)
    experiment_seed: int
    simulation: bool
    labels_from_records: bool = False
    roster: Roster | None = None
    retries: int = 0
    evaluation: evaluate.Evaluation = field(default_factory=evaluate.Evaluation)
    cleaner: Cleaner = PLAIN
    spending: Spending = field(default_factory=Spending)
    tracking: str | None = None


def run(setup: Setup) -> State:
    """Run to the end, or from where the folder stands.

    Returns:
        The last state; everything else is in the folder.
    """
    checkpoint = Checkpoint(setup.folder / "state")
    ledger = Ledger(setup.folder / "state" / "ledger.db")
    federation = Federation(
        network=setup.network,
        plan=setup.plan,
        run=setup.run,
        checkpoint=checkpoint,
        ledger=ledger,
        roster=setup.roster,
        retries=setup.retries,
    )
    meter = _Meter()
    held: set[str] = set()
    embed = _Remembering(setup.encoder)
    tools = _tools(setup, federation, meter, embed, held)
    held_out = embed([record.text for record in setup.held_out])
    saved = _saved(checkpoint, setup)
    state = State.from_dict(saved["state"]) if saved else setup.method.start(tools)
    started = time.monotonic() - (saved["seconds"] if saved else 0.0)

    def save(*, status: str) -> None:
        seconds = time.monotonic() - started
        checkpoint.save(_identity(setup) | {"seconds": seconds, "state": state.to_dict()})
        _write(setup, state, ledger=ledger, status=status, seconds=seconds)

    save(status="partial")

    if state.round < setup.method.rounds:
        for provider in setup.providers.values():
            provider.check()
    asks = bool(setup.plan.queries)
    if asks:
        federation.open()
    while state.round < setup.method.rounds:
        held.clear()
        held.update(candidate.text for candidate in state.candidates)
        state = setup.method.step(state, tools)
        report = state.rounds[-1]
        fid = evaluate.fid_or_none(tools.embed([candidate.text for candidate in state.candidates]), held_out)
        report |= {"fid": fid, "seconds": meter.seconds(), "queries": meter.queries()}
        report["paid"] = rounds.paid(setup.spending, before=state.rounds[:-1])
        report["epsilon"] = accountant.epsilon(ledger.releases(setup.run), setup.plan.delta)
        save(status="partial")
        track(setup.tracking, setup.folder, state.round, report)
        log.info("round %d of %d: %d candidates, FID %s", state.round, setup.method.rounds, len(state.candidates), fid)
    counted = _federated(setup, federation, tools, state) if federated.planned(setup.plan) else {}
    if asks:
        federation.close()

    metrics = evaluate.metrics(state.candidates, setup.held_out, setup.evaluation, setup.encoder) | counted
    metrics |= measures.of_texts(
        measures.Measured(
            candidates=state.candidates,
            test=setup.held_out,
            evaluation=setup.evaluation,
            encoder=setup.encoder,
            experiment_seed=setup.experiment_seed,
            embed=tools.embed,
        )
    )
    if paid := rounds.paid(setup.spending):
        metrics["paid"] = paid
    write_json(setup.folder / "metrics.json", metrics)
    track(setup.tracking, setup.folder, state.round + 1, metrics)
    vectors = tools.embed([candidate.text for candidate in state.candidates])
    write_json(setup.folder / projection.SYNTHETIC, projection.synthetic_map(vectors))
    save(status="complete")
    write_report(setup.folder)
    return state


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically."""
    write_atomic(path, json.dumps(for_json(value), ensure_ascii=False, indent=2).encode())


def read_candidates(folder: Path) -> list[Candidate]:
    """The texts of a run folder; none where there is no `synthetic.jsonl`."""
    path = folder / "synthetic.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return [Candidate(**json.loads(line)) for line in lines if line]


def _federated(setup: Setup, federation: Federation, tools: Tools, state: State) -> dict[str, Any]:
    vectors = tools.embed([candidate.text for candidate in state.candidates])
    question = federated.question(vectors, state.candidates, setup.plan)
    return {"federated": federated.measured(setup.plan, federation.ask(federated.NAME, 0, question))}


def _identity(setup: Setup) -> dict[str, Any]:
    """What a run keeps from its first step to its last, whatever a configuration says later."""
    return {"run": setup.run, "plan": setup.plan.digest().hex(), "models": list(setup.providers)}


def _saved(checkpoint: Checkpoint, setup: Setup) -> dict[str, Any] | None:
    """The state to go on from, or None for a new run."""
    saved = checkpoint.load()
    if saved is None:
        return None
    for what, value in _identity(setup).items():
        if saved[what] != value:
            raise CheckpointError(
                {"run": "run", "plan": "privacy plan", "models": "language models"}[what],
                expected="as this run was started",
                got="another",
                where=setup.folder,
                do="Resume with the same configuration, or start a new run",
            )
    return saved


def _tools(setup: Setup, federation: Federation, meter: "_Meter", embed: "_Remembering", held: Container[str]) -> Tools:
    specs = {query.name: query.spec for query in setup.plan.queries}

    def ask(name: str, nth: int, **arrays: NDArray[Any]) -> NDArray[np.float64]:
        answered = federation.ask(name, nth, asked(specs[name], arrays))
        meter.asked(setup.plan, answered)
        # Bytes of texts are no votes: a grid there is that of the choice between them.
        return answered.values / (1 if isinstance(specs[name], TextSpec) else specs[name].grid)

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


def _write(setup: Setup, state: State, *, ledger: Ledger, status: str, seconds: float) -> None:
    _write_lines(setup.folder / "synthetic.jsonl", map(asdict, state.candidates))
    _write_lines(setup.folder / "rounds.jsonl", state.rounds)
    privacy = describe(
        setup.plan,
        ledger=ledger,
        run=setup.run,
        simulation=setup.simulation,
        labels_from_records=setup.labels_from_records,
    )
    write_json(setup.folder / "privacy.json", privacy)
    write_json(
        setup.folder / "run.json",
        {
            "run": setup.run,
            "status": status,
            "method": setup.method.name,
            "task": setup.task.name,
            "parties": setup.plan.parties,
            "seconds": round(seconds, 3),
            "versions": {name: version(name) for name in VERSIONS},
        },
    )


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    write_atomic(path, "".join(json.dumps(for_json(row), ensure_ascii=False) + "\n" for row in rows).encode())


def _spent(spending: Spending) -> dict[str, str]:
    """Beside the progress: the money so far, if any is known to be spent."""
    cost = spending.cost()
    return {"cost": f"{cost:.4g}"} if cost else {}


class _Remembering:
    """An encoder that embeds each text once in a run: D is voted on again in each round, held-out texts measured by."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        self._known |= dict(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts]) if texts else self._encoder.encode([])


class _Meter:
    """Seconds by kind of work, and the queries asked, since the last look."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(KINDS_OF_WORK, 0.0)
        self._queries: list[dict[str, Any]] = []

    def timed(self, kind: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            started = time.monotonic()
            try:
                return work(*args, **kwargs)
            finally:
                self._seconds[kind] += time.monotonic() - started

        return measured

    def asked(self, plan: Plan, answered: Answered) -> None:
        planned = plan.query(answered.index)
        self._queries.append(
            {
                "index": answered.index,
                "name": planned.name,
                "mechanism": planned.mechanism,
                "scale": planned.scale / planned.spec.grid,
                "survivors": answered.survivors,
                "parties": plan.parties,
            }
        )

    def seconds(self) -> dict[str, float]:
        taken, self._seconds = self._seconds, dict.fromkeys(KINDS_OF_WORK, 0.0)
        return {kind: round(spent, 3) for kind, spent in taken.items()}

    def queries(self) -> list[dict[str, Any]]:
        taken, self._queries = self._queries, []
        return taken

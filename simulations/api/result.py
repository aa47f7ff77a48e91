"""The result of a run, loaded from its folder, for Python and notebooks."""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from common.domain import is_one_population
from common.errors import CheckpointError
from common.system.files import text_of
from server.documents.class_sums import TrainedClassifier
from server.documents.codec import strict, with_infinities
from server.documents.files import split
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary
from server.domain import Candidate, has_label_sets, number_from_one
from server.evaluation.text_classifier import TextClassifier
from server.prepare.build import build
from server.prepare.compose import load_settings
from server.report.dataset_card import MARKED
from server.run_folder import read_candidates
from simulations.sweeps.runs import TABLE

_TEXTS = ("text", "label", "model", "round", "weight")
_HEIGHT = 800


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a run: an HTML page that a notebook displays.

    Attributes:
        path: Path of `report.html`.
    """

    path: Path

    def _repr_html_(self) -> str | None:
        """Return the page in a frame, so that its script cannot access the notebook; None if there is no page yet."""
        if not self.path.is_file():
            return None
        page = html.escape(self.path.read_text(encoding="utf-8"))
        style = f"width: 100%; height: {_HEIGHT}px; border: 0"
        return f'<iframe title="report" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a run: the content of its run folder at the time of loading.

    Attributes:
        folder: The run folder.
        status: "complete"; "partial" for a run that can be resumed and lacks its last figures; "refused" for a complete
            run with texts that disclose private records, or that could not be tested for that.
        texts: The synthetic texts, with the columns text, label, model, round (from 1; 0 before any vote) and weight.
            Methods that estimate labels add the column `probabilities.LABEL` for each label; a task with types of spans
            adds `spans`, a list of mappings, and a task with sections has `sections` in place of labels.
        metrics: `metrics.json`: accuracy and all other figures; empty for a partial run.
        privacy: `privacy.json`: the guarantee, what was spent, and what is not covered.
        rounds: A row for each round, from 1, with columns such as `candidates`, `fid`, `epsilon` and `tokens.output`.
        report: The HTML report of the run; a notebook displays it.
    """

    folder: Path
    status: str
    texts: pd.DataFrame = field(repr=False)
    metrics: dict[str, Any] = field(repr=False)
    privacy: dict[str, Any] = field(repr=False)
    rounds: pd.DataFrame = field(repr=False)
    report: Report = field(repr=False)

    @classmethod
    def load(cls, folder: str | Path) -> "Result":
        """Return the result of the run in this folder, no matter how the run was started.

        Raises:
            CheckpointError: The folder is not a run folder.
        """
        path = Path(folder).resolve()
        if not (path / RunSummary.FILE).is_file():
            do = f"Of a sweep, load one of its runs or {TABLE}" if (path / TABLE).is_file() else None
            raise CheckpointError("run folder", expected=f"one with a {RunSummary.FILE}", got="none", where=path, do=do)
        lines = split(text_of(path / RoundReport.FILE))
        reports, texts = number_from_one([RoundReport.parse(line) for line in lines], read_candidates(path))
        rounds = pd.json_normalize([report.to_json() for report in reports], max_level=1)
        rounds.index = pd.RangeIndex(1, len(rounds) + 1, name="round")
        return cls(
            folder=path,
            status=RunSummary.load(path).status,
            texts=_table(texts),
            metrics=_json(path / Metrics.FILE),
            privacy=_json(path / Privacy.FILE),
            rounds=rounds.drop(columns="round", errors="ignore"),
            report=Report(path / "report.html"),
        )

    @property
    def classifier(self) -> TextClassifier:
        """The classifier made from the class sums that a run released; it has scikit-learn's `predict` and `score`.

        Raises:
            ConfigError: The method's released statistics do not form a classifier, or the run is partial.
        """
        return TextClassifier.load(self.folder / TrainedClassifier.FILE, build(load_settings(self.folder).embedding))


def _table(texts: Sequence[Candidate]) -> pd.DataFrame:
    table = pd.DataFrame(texts, columns=_TEXTS)
    if has_label_sets(texts):
        table["label"] = pd.Series([list(text.labels) for text in texts], dtype=object)
        table = table.rename(columns={"label": "labels"})
    if is_one_population({text.label for text in texts}):
        table = table.drop(columns="label")
    for column in MARKED:
        marked = [getattr(text, column) for text in texts]
        if any(of_text is not None for of_text in marked):
            table[column] = [None if of_text is None else strict(of_text) for of_text in marked]
    if "sections" in table:
        table = table.drop(columns="labels")
    if not any(text.probabilities for text in texts):
        return table
    return table.join(pd.DataFrame([text.probabilities or {} for text in texts]).add_prefix("probabilities."))


def _json(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = with_infinities(json.loads(text_of(path) or "{}"))
    return read

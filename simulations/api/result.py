"""What a run left in its folder, for Python and notebooks."""

import html
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from common.errors import CheckpointError
from common.system.files import text_of
from server.run_folder import from_round_1

_TEXTS = ("text", "label", "model", "round", "weight")
_HEIGHT = 800


@dataclass(frozen=True, slots=True)
class Report:
    """The page of a run; a notebook shows it in place.

    Attributes:
        path: Of `report.html`.
    """

    path: Path

    def _repr_html_(self) -> str:
        """The page in a frame of its own, whose script cannot reach the notebook."""
        page = html.escape(self.path.read_text(encoding="utf-8"))
        style = f"width: 100%; height: {_HEIGHT}px; border: 0"
        return f'<iframe title="report" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The files of a run folder, read once.

    Attributes:
        folder: The run folder.
        status: "complete", or "partial": then the run can be resumed, and its last figures are missing.
        texts: The synthetic texts: columns text, label, model, round (from 1; 0 before any vote), weight.
        metrics: `metrics.json`: accuracy and all other figures; empty in a partial run.
        privacy: `privacy.json`: the guarantee, what was spent, what is not covered.
        rounds: A row for each round, from 1, with columns such as `candidates`, `fid`, `epsilon` and `tokens.output`.
        report: The page, which a notebook shows in place.
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
        """Read the folder of a run that was started in any way.

        Raises:
            CheckpointError: It is no run folder.
        """
        path = Path(folder).resolve()
        if not (path / "run.json").is_file():
            raise CheckpointError("run folder", expected="one with a run.json", got="none", where=path)
        done, texts = from_round_1(_lines(path / "rounds.jsonl"), _lines(path / "synthetic.jsonl"))
        rounds = pd.json_normalize(done, max_level=1)
        rounds.index = pd.RangeIndex(1, len(rounds) + 1, name="round")
        return cls(
            folder=path,
            status=_json(path / "run.json")["status"],
            texts=pd.DataFrame(texts, columns=_TEXTS),
            metrics=_json(path / "metrics.json"),
            privacy=_json(path / "privacy.json"),
            rounds=rounds.drop(columns="round", errors="ignore"),
            report=Report(path / "report.html"),
        )


def with_infinities(value: Any) -> Any:  # noqa: ANN401 any JSON value
    """JSON as our files have it, with the numbers that they write as text: the inverse of `for_json`."""
    match value:
        case dict():
            return {key: with_infinities(inner) for key, inner in value.items()}
        case list():
            return [with_infinities(inner) for inner in value]
        case "inf" | "-inf":
            return float(value)
        case _:
            return value


def _json(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = with_infinities(json.loads(text_of(path) or "{}"))
    return read


def _lines(path: Path) -> list[dict[str, Any]]:
    # Not splitlines: a JSON string may hold the other separators of Unicode as they are.
    return [json.loads(line) for line in text_of(path).split("\n") if line]

"""One self-contained page about a run, for a data-protection officer and for whoever uses the texts."""

import base64
import hashlib
import json
import math
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jinja2

from common.errors import DataError
from server.report_page import PAGE
from server.statement import not_covered, show_delta, show_epsilon, statement

_T = TypeVar("_T")
Row = Mapping[str, Any]

_EXAMPLES = 5
"""Texts of each label that stand in the page itself; the rest is reached by its search."""

_WIDTH, _HEIGHT = 420, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 12, 34


def write_report(run: pathlib.Path) -> pathlib.Path:
    """Write `report.html` from the other files of a run folder, complete or partial.

    Args:
        run: The run folder. A file that is not there, or cannot be read, is named in the page.

    Returns:
        Path of the page, which replaces an earlier one in one step.

    Raises:
        DataError: `run` is not a folder.
    """
    if not run.is_dir():
        raise DataError("run folder", expected="a folder", got="none", where=run, do="Name a folder that a run wrote.")
    page = _environment().from_string(PAGE).render(_view(run))
    target = run / "report.html"
    part = run / f".report.html.{os.getpid()}"
    try:
        # A model may return half of a surrogate pair, which no encoding holds.
        part.write_text(page, encoding="utf-8", errors="replace")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # `tojson` writes <, > and & as escapes, so that no text can close the script element that holds it.
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.filters |= {
        "epsilon": show_epsilon,
        "delta": show_delta,
        "number": _number,
        "percent": lambda share: f"{100 * share:.1f} %",
        "duration": _duration,
        "sha256": lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode(),
    }
    return environment


def _view(run: pathlib.Path) -> dict[str, object]:
    """Everything that the template shows; what is missing is None or empty."""
    problems: list[str] = []
    ended = _read(run / "run.json", json.loads, problems)
    privacy = _read(run / "privacy.json", json.loads, problems)
    metrics = _read(run / "metrics.json", json.loads, problems)
    rounds: list[Row] = _read(run / "rounds.jsonl", _lines, problems) or []
    rows: list[Row] = _read(run / "synthetic.jsonl", _lines, problems) or []
    config = _read(run / "config.yaml", str, problems)
    if privacy is not None:
        privacy = {"statement": statement(privacy), "not_covered": not_covered(privacy)} | privacy
    return {
        "run": ended,
        "partial": _why_partial(ended, privacy),
        "problems": problems,
        "privacy": privacy,
        "unprotected": privacy is not None and math.isinf(float(privacy["epsilon"])),
        "metrics": metrics,
        "rounds": rounds,
        "cost": _cost(ended, rounds),
        "plots": [plot for plot in (_weights_plot(rounds), _fid_plot(rounds)) if plot is not None],
        "samples": _columns(rows),
        "examples": _examples(rows),
        "config": config,
    }


def _read(path: pathlib.Path, parse: Callable[[str], _T], problems: list[str]) -> _T | None:
    """Parse a file, or note in `problems` why that cannot be done; never what stands in it."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problems.append(f"{path.name} is missing")
    except json.JSONDecodeError:
        problems.append(f"{path.name} is not valid JSON")
    except UnicodeDecodeError:
        problems.append(f"{path.name} is not UTF-8")
    return None


def _lines(text: str) -> list[Row]:
    # Not splitlines: JSON allows U+2028 and its like inside a text.
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _why_partial(ended: Row | None, privacy: Row | None) -> str | None:
    """Say in one sentence why a run is partial; None for a complete one."""
    if ended is not None and ended["status"] == "complete":
        return None
    why = "The run did not reach its end." if ended is None else "The run stopped before its end."
    why += f" {ended['reason']}" if ended and ended.get("reason") else ""
    if privacy is not None:
        spent = privacy["spent"]
        why += f" {spent['queries_asked']} of {spent['queries_planned']} planned private queries were asked."
    return why


def _cost(ended: Row | None, rounds: Sequence[Row]) -> dict[str, Any]:
    """Model calls, tokens, what was paid (None: at an unknown price) and seconds.

    Seconds are the wall time of a run that ended, else the sum over its rounds.
    """
    return {
        "calls": sum(entry["calls"] for entry in rounds),
        "input": sum(entry["tokens"]["input"] for entry in rounds),
        "output": sum(entry["tokens"]["output"] for entry in rounds),
        "money": [part["cost"] for entry in rounds for part in entry.get("paid", {}).values()],
        "seconds": ended["seconds"] if ended else sum(sum(entry["seconds"].values()) for entry in rounds),
    }


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Every text once; labels and models as positions in a list, which halves the page for short texts."""
    labels = {name: at for at, name in enumerate(dict.fromkeys(row["label"] for row in rows))}
    models = {name: at for at, name in enumerate(dict.fromkeys(row["model"] for row in rows))}
    return {
        "labels": list(labels),
        "models": list(models),
        "rows": [[row["text"], labels[row["label"]], models[row["model"]], row["round"]] for row in rows],
    }


def _examples(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """For each label the number of its texts and a few of them, spread evenly over the run."""
    by_label: dict[str, list[Row]] = {}
    for row in rows:
        by_label.setdefault(row["label"], []).append(row)
    shown = {label: min(_EXAMPLES, len(some)) for label, some in by_label.items()}
    return {
        label: {"total": len(some), "rows": [some[at * len(some) // shown[label]] for at in range(shown[label])]}
        for label, some in by_label.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """One line: values by round (None where there is none) and the same as points of the drawing."""

    name: str
    values: tuple[float | None, ...]
    points: tuple[tuple[float, float], ...]
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plot:
    """A line plot over rounds, ready to be drawn; coordinates are user units of its view box."""

    key: str
    title: str
    note: str
    summary: str
    rounds: tuple[int, ...]
    series: tuple[_Series, ...]
    x_ticks: tuple[tuple[float, int], ...]
    y_ticks: tuple[tuple[float, str], ...]
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _WIDTH - _RIGHT
    bottom: int = _HEIGHT - _BOTTOM


def _weights_plot(rounds: Sequence[Row]) -> _Plot | None:
    """None for a method that does not weigh models."""
    models = dict.fromkeys(model for entry in rounds for model in entry.get("weights", {}))
    return _plot(
        "weights",
        "Weight of each model",
        "The share of a round's texts that each model was asked for. It follows the noised votes of the round before.",
        [entry["round"] for entry in rounds],
        {model: [entry.get("weights", {}).get(model) for entry in rounds] for model in models},
    )


def _fid_plot(rounds: Sequence[Row]) -> _Plot | None:
    return _plot(
        "fid",
        "Distance to real texts (FID)",
        "Fréchet distance between the embeddings of the round's synthetic texts and of the test records. Lower is "
        "nearer. Computed without noise from the test records.",
        [entry["round"] for entry in rounds],
        {"FID": [entry["fid"] for entry in rounds]},
    )


def _plot(key: str, title: str, note: str, rounds: Sequence[int], lines: Mapping[str, Sequence[Any]]) -> _Plot | None:
    """Lay out lines over rounds, the y axis from 0; None where there is nothing to draw."""
    clean = {
        name: tuple(value if value is not None and math.isfinite(value) else None for value in values)
        for name, values in lines.items()
    }
    known = [value for values in clean.values() for value in values if value is not None]
    if not known:
        return None
    ticks = _ticks(max(known))
    first, last, top = rounds[0], rounds[-1], ticks[-1]

    def x(number: int) -> float:
        middle = 0.5 if first == last else (number - first) / (last - first)
        return round(_LEFT + 8 + middle * (_WIDTH - _LEFT - _RIGHT - 16), 1)

    def y(value: float) -> float:
        return round(_HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM), 1)

    series = []
    for name, values in clean.items():
        spots = [None if value is None else (x(number), y(value)) for number, value in zip(rounds, values, strict=True)]
        points = tuple(spot for spot in spots if spot is not None)
        series.append(_Series(name=name, values=values, points=points, path=_path(spots)))
    every = math.ceil(len(rounds) / 10)
    return _Plot(
        key=key,
        title=title,
        note=note,
        summary=f"Line plot of {title} over rounds {first} to {last}. {_summary(clean)}",
        rounds=tuple(rounds),
        series=tuple(series),
        x_ticks=tuple((x(number), number) for number in rounds[::every]),
        y_ticks=tuple((y(value), f"{value:g}") for value in ticks),
    )


def _ticks(top: float) -> list[float]:
    """Round numbers from 0 to the first one not below `top`, four to eight of them."""
    if top <= 0:
        return [0.0, 1.0]
    unit = 10.0 ** math.floor(math.log10(top))
    step = next(unit * part for part in (0.2, 0.5, 1.0, 2.0) if top / (unit * part) <= 6)
    return [float(f"{at * step:.6g}") for at in range(math.ceil(top / step - 1e-9) + 1)]


def _path(spots: Sequence[tuple[float, float] | None]) -> str:
    """Join points by lines; a missing one leaves a gap."""
    joined = zip([None, *spots], spots, strict=False)
    return "".join(f"{'L' if before else 'M'}{spot[0]} {spot[1]}" for before, spot in joined if spot)


def _summary(lines: Mapping[str, Sequence[float | None]]) -> str:
    parts = []
    for name, values in lines.items():
        known = [value for value in values if value is not None]
        if known:
            parts.append(f"{name}: first {known[0]:.3g}, last {known[-1]:.3g}.")
    return " ".join(parts)


def _number(value: float | None) -> str:
    """Whole numbers with separators, others with four digits."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) or not math.isfinite(value) else f"{value:,.4g}"


def _duration(seconds: float) -> str:
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"

"""The rows of an experiment (`configs/experiment/`): the overrides of each row, and the paper's figures.

    rows:
      No votes:
        set: [method=fusegen]
      WASP epsilon $epsilon:
        each: {epsilon: [4, 1]}
        set: [method=wasp, privacy.epsilon=$epsilon]
        paper: [[89.5, 61.2], [89.4, 60.9]]
        against: {no votes: No votes}

`each` repeats a row for each value, which replaces `$epsilon` in the row's texts. `paper` then has one list of the
paper's figures for each value, or null if there are no figures. If `each` has several lists of values, they must have
the same length, and values at the same index belong together. If `each` stands beside `rows`, it repeats the whole
table. A row without `set` is not run, and has only the paper's figures. `against` is explained in `table.py`.
"""

from collections.abc import Iterator, Mapping
from string import Template
from typing import Any

from common.errors import ConfigError


def experiment_rows(experiment: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return all rows in the order of the table, keyed by name, with their `set`, `paper` and `against`, if any.

    Raises:
        ConfigError: Two lists of `each` differ in length, or `paper` has a different number of lists of figures.
    """
    experiment = experiment or {}
    return dict(
        _filled((name, row), values)
        for values in _repetitions("experiment", experiment)
        for written, repeated in experiment.get("rows", {}).items()
        for name, row in _repeated(written, repeated)
    )


def run_names(experiment: Mapping[str, Any] | None) -> list[str]:
    """Return the names of the rows that are run."""
    return [name for name, row in experiment_rows(experiment).items() if "set" in row]


def _repeated(name: str, row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a row's name and content, once for each repetition that `each` defines, with its values filled in."""
    if "each" not in row:
        yield name, dict(row)
        return
    repetitions = _repetitions(name, row)
    papers = row.get("paper", [None] * len(repetitions))
    if len(papers) != len(repetitions):
        raise ConfigError(f"{name}: paper", expected=f"{len(repetitions)} lists of figures", got=len(papers))
    shared = {key: value for key, value in row.items() if key not in ("each", "paper")}
    for values, paper in zip(repetitions, papers, strict=True):
        yield _filled((name, shared if paper is None else shared | {"paper": paper}), values)


def _repetitions(name: str, group: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a list of repetitions, each a dictionary of values; without `each`, the list has one empty dictionary."""
    columns = group.get("each", {})
    lengths = {len(column) for column in columns.values()} or {1}
    if len(lengths) > 1:
        raise ConfigError(f"{name}: each", expected="columns of one length", got=sorted(lengths))
    return [{key: column[at] for key, column in columns.items()} for at in range(lengths.pop())]


def _filled(written: Any, values: Mapping[str, Any]) -> Any:
    """Return `written` with `$name` replaced by the value of that name in all of its texts."""
    if isinstance(written, str):
        return Template(written).safe_substitute(values)
    if isinstance(written, Mapping):
        return {key: _filled(value, values) for key, value in written.items()}
    if isinstance(written, (list, tuple)):
        return type(written)(_filled(value, values) for value in written)
    return written

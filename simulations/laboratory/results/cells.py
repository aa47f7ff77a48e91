"""Cells: the runs that claims need, each made only once even if several claims share it.

A cell consists of a data set, overrides and an experiment seed. Its key is a digest of these, so a changed setting
makes a new cell, and the published file omits results that no claim needs any more.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import yaml

from common.domain import FORMER_NAMES
from common.errors import ConfigError
from common.validate import one_of
from simulations.laboratory.results.claims import Claim, merge_overrides

HERE = Path(__file__).resolve().parent
WITHOUT_EPSILON = ("method=fusegen", "method=only_private", "method=private_exemplars", "method=rupta")
"""Overrides that choose a method on which epsilon has no effect, so that one run serves for all values of epsilon."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One run that the claims need.

    Attributes:
        data: Name of the data set.
        overrides: Overrides of the row and epsilon, without those of the preset and the data set.
        seed: Experiment seed.
    """

    data: str
    overrides: tuple[str, ...]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A choice of the claims that are measured, and of the seeds and data sets of their runs.

    Attributes:
        name: The preset's name.
        model: The language model, as the pages name it.
        base: Overrides of every run.
        of_data: Overrides for each data set.
        small: Whether only claims that are `small` or computed are measured.
        seeds: Maximum number of seeds for each claim; None keeps the claims' own.
        data: Data sets that replace the claims' own; None keeps the claims' own.
        more: Overrides that replace those of some rows, keyed by their claim's name or the override of their method.
    """

    name: str
    model: str
    base: tuple[str, ...]
    of_data: Mapping[str, tuple[str, ...]]
    small: bool = False
    seeds: int | None = None
    data: Sequence[str] | None = None
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def claims(self, claims: Sequence[Claim]) -> list[Claim]:
        """Return the claims that the preset measures."""
        return [claim for claim in claims if not self.small or claim.small or claim.computed]

    def data_sets(self, claim: Claim) -> Sequence[str]:
        """Return the data sets on which a claim is measured.

        Raises:
            ConfigError: The claim names a data set that the presets do not have.
        """
        for data in claim.data:
            one_of(f"claims.{claim.name}.data", data, among=self.of_data)
        return claim.data if self.data is None else self.data

    def cells(self, claim: Claim) -> dict[tuple[str, float | None], list[Cell]]:
        """Return the cells for each row and epsilon (None if rows set it), in the order of data sets and seeds."""
        seeds = range(claim.seeds if self.seeds is None else min(self.seeds, claim.seeds))
        rows = {
            row: merge_overrides(overrides, *(self.more.get(key, ()) for key in (claim.name, *overrides)))
            for row, overrides in claim.rows.items()
        }
        return {
            (row, epsilon): [
                Cell(data, with_epsilon(overrides, epsilon), seed) for data in self.data_sets(claim) for seed in seeds
            ]
            for row, overrides in rows.items()
            for epsilon in claim.epsilons or (None,)
        }

    def overrides(self, cell: Cell) -> tuple[str, ...]:
        """Return all overrides of a cell, without those of the base that an override with `~` removes.

        The placeholders {data}, {work} and {here} stand for folders.
        """
        of_cell = (*cell.overrides, f"experiment_seed={cell.seed}")
        every = merge_overrides(self.base, self.of_data[cell.data], of_cell)
        return tuple(override for override in every if not override.startswith("~"))

    def key(self, cell: Cell) -> str:
        """Return a digest of all overrides of a cell, independent of their order, with methods' former names."""
        settings = (override.lstrip("+").partition("=") for override in self.overrides(cell))
        former = sorted(name + sign + FORMER_NAMES.get(value, value) for name, sign, value in settings)
        content = json.dumps(former, ensure_ascii=False)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def preset(name: str, path: Path = HERE / "presets.yaml") -> Preset:
    """Return a preset, read from the file.

    Raises:
        ConfigError: There is no preset with this name.
    """
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if name not in content["presets"]:
        raise ConfigError("PRESET", expected=f"one of {', '.join(content['presets'])}", got=name)
    chosen = dict(content["presets"][name])
    return Preset(
        name=name,
        base=merge_overrides(content["base"], chosen.pop("base", ())),
        of_data={data: tuple(overrides) for data, overrides in content["data"].items()},
        **chosen,
    )


def with_epsilon(overrides: Sequence[str], epsilon: float | None) -> tuple[str, ...]:
    """Return a row's overrides with this epsilon, or unchanged if the row sets its own epsilon or needs none."""
    fixed = any(override in WITHOUT_EPSILON or override.startswith("privacy.epsilon=") for override in overrides)
    if epsilon is None or fixed:
        return tuple(overrides)
    return (*overrides, "privacy.epsilon=" + ("inf" if math.isinf(epsilon) else f"{epsilon:g}"))


def cells_in_order(chosen: Preset, claims: Iterable[Claim]) -> list[Cell]:
    """Return the cells of all claims, each once: claim after claim, so that some are whole soon, with papers in turn.

    Runs of one paper begin alike. Two of them at the same time would both write the texts of their first round, which
    the later one can take from the cache. Only the last runs, of the paper with the most, are side by side.
    """
    turns: Counter[str] = Counter()
    needed: dict[str, tuple[int, Cell]] = {}
    for claim in claims:
        for cell in chain.from_iterable(chosen.cells(claim).values()):
            # Two claims may write the same overrides in another order.
            if (key := chosen.key(cell)) not in needed:
                turns[claim.paper] += 1
                needed[key] = (turns[claim.paper], cell)
    return [cell for _, cell in sorted(needed.values(), key=lambda each: each[0])]

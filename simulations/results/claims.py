"""Claims: what a paper says, and which difference between two settings of this program shows it.

The files `claims/*.yaml`, one for each paper, have a `paper`, a `base` of overrides, and `claims` by name. Their fields
are those of `Claim`; a field that does not exist is refused. A row that claims of several papers compare with has
`shared` in place of overrides: they are those of its name in `rows.yaml`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from common.errors import ConfigError
from simulations.results import computed

FOLDER = Path(__file__).parent / "claims"
ROWS = Path(__file__).parent / "rows.yaml"
LINES = Path(__file__).parent / "figure.yaml"
RECORDS = ", M = "
"""In the name of a line: before the number of its records."""
HIGHER, LOWER, WITHIN = "higher", "lower", "within"
HOLDS, WITHOUT_PRIVACY, DOES_NOT_SHOW, REFUTED = "holds", "holds without privacy only", "does not show", "refuted"
VERDICTS = (HOLDS, WITHOUT_PRIVACY, DOES_NOT_SHOW, REFUTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim of a paper.

    Attributes:
        name: Identifier, unique over all papers.
        paper: The paper.
        claim: The claim, in one sentence.
        where: Table, figure or section of the paper.
        published: The paper's figures.
        rows: Overrides of each row, by its name, in the order to show; none where the figures are computed.
        computed: Name of the function in `computed.py` that gives a figure for each row, without a run.
        compare: The row that the claim favours, and the one beside it.
        expects: Whether the figure of the favoured row is higher, lower, or within a margin of the other's.
        margin: Largest difference that still counts as none, where `expects` is within.
        figure: Figure of `metrics.json`, dotted; or "accuracy", "fid" of the last round, "texts" or "seconds".
        epsilons: Values of epsilon at which every row is run; none where the rows set it.
        data: Data sets.
        seeds: Number of experiment seeds.
        small: Whether the small preset has it.
        why: By verdict, its explanation.
    """

    name: str
    paper: str
    claim: str
    where: str
    published: str
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    computed: str | None = None
    compare: tuple[str, str]
    expects: str = HIGHER
    margin: float = 0.0
    figure: str = "utility_encoder.accuracy"
    epsilons: tuple[float, ...] = (4.0, math.inf)
    data: tuple[str, ...] = ("banking10",)
    seeds: int = 5
    small: bool = False
    why: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ConfigError: One of them is not possible.
        """
        if bool(self.rows) == bool(self.computed):
            raise ConfigError(f"claim {self.name}", expected="either rows or computed", got="both or neither")
        if self.computed is not None and self.computed not in computed.FUNCTIONS:
            raise ConfigError(
                f"claim {self.name}: computed", expected=f"one of {', '.join(computed.FUNCTIONS)}", got=self.computed
            )
        if self.rows and (unknown := [name for name in self.compare if name not in self.rows]):
            raise ConfigError(f"claim {self.name}: compare", expected="two of its rows", got=", ".join(unknown))
        if unknown := [verdict for verdict in self.why if verdict not in VERDICTS]:
            raise ConfigError(f"claim {self.name}: why", expected=f"some of {VERDICTS}", got=", ".join(unknown))
        if self.seeds < 1:
            raise ConfigError(f"claim {self.name}: seeds", expected="1 or more", got=self.seeds)


def read_claims(folder: Path = FOLDER) -> list[Claim]:
    """All claims, in the order of the files' names.

    Raises:
        ConfigError: A file is no such YAML, has another field than `Claim`, or repeats a name.
    """
    shared = yaml.safe_load(ROWS.read_text(encoding="utf-8"))
    claims: dict[str, Claim] = {}
    for path in sorted(folder.glob("*.yaml")):
        for claim in _of_file(path, shared):
            if claim.name in claims:
                raise ConfigError(f"claim {claim.name}", expected="each name once", got="a second one", where=path)
            claims[claim.name] = claim
    return list(claims.values())


def read_lines(path: Path = LINES) -> list[Claim]:
    """The lines of the README's figure, each as a claim with a single row, named after the line and its records.

    Raises:
        ConfigError: The file is no such YAML.
    """
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    try:
        return [
            Claim(
                name=name if records is None else f"{name}{RECORDS}{records}",
                paper="",
                claim="",
                where="",
                published="",
                rows={name: settled(overrides)},
                compare=(name, name),
                figure=content["figure"],
                epsilons=tuple(map(float, content["epsilons"])),
                data=(content["data"],),
                seeds=content["seeds"],
            )
            for name, by_records in content["lines"].items()
            for records, overrides in by_records.items()
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError("file of the figure", expected="its lines", got=error, where=path) from error


def settled(*lists: Sequence[str]) -> tuple[str, ...]:
    """Overrides in order, of which a later one replaces an earlier one of the same setting.

    A list that chooses another method than one before it drops the settings `method.*` of that list.
    """
    kept: dict[str, str] = {}
    of_the_method: list[str] = []
    for overrides in lists:
        own = {_key(override): override for override in overrides}
        if "method" in own:
            if kept.get("method") not in {None, own["method"]}:
                kept = {key: override for key, override in kept.items() if key not in of_the_method}
            of_the_method = [key for key in own if key.startswith("method.")]
        kept = {key: override for key, override in kept.items() if key not in own} | own
    return tuple(kept.values())


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")


def _of_file(path: Path, shared: Mapping[str, Sequence[str]]) -> list[Claim]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    try:
        base, paper = tuple(content.get("base", ())), content["paper"]
        return [_claim(name, paper, base, shared, dict(fields)) for name, fields in content["claims"].items()]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError("file of claims", expected="the fields of Claim", got=error, where=path) from error


def _claim(
    name: str, paper: str, base: Sequence[str], shared: Mapping[str, Sequence[str]], fields: dict[str, Any]
) -> Claim:
    expects = fields.pop("expects", HIGHER)
    if isinstance(expects, dict):
        fields["margin"] = float(expects[WITHIN])
        expects = WITHIN
    if expects not in {HIGHER, LOWER, WITHIN}:
        raise ConfigError(f"claim {name}: expects", expected="higher, lower or {within: MARGIN}", got=expects)
    rows = {
        str(row): settled(base, shared[row] if overrides == "shared" else overrides)
        for row, overrides in fields.pop("rows", {}).items()
    }
    favoured, other = map(str, fields.pop("compare"))
    if "epsilons" in fields:
        fields["epsilons"] = tuple(map(float, fields["epsilons"] or ()))
    if "data" in fields:
        fields["data"] = tuple(fields["data"])
    return Claim(name=name, paper=paper, rows=rows, compare=(favoured, other), expects=expects, **fields)

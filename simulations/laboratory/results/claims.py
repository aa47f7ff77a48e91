"""Claims: statements from papers, each with the difference between two settings of this program that tests it.

Each file `claims/*.yaml` is about one paper and has the keys `paper`, `base` (overrides) and `claims`, keyed by name. A
claim's fields are those of `Claim`; any other field is rejected. A row that claims of several papers share has the
value `shared` in place of its overrides, which are in `rows.yaml` under the row's name.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from common.errors import ConfigError
from common.system.yaml_file import YamlFile, add_location
from common.validate import at_least, check_type, integers, known_keys, one_of
from server.settings.sections import name_of
from simulations.laboratory.results import computed

FOLDER = Path(__file__).parent / "claims"
ROWS = Path(__file__).parent / "rows.yaml"
LINES = Path(__file__).parent / "picture.yaml"
RECORDS = ", M = "
"""Separator in the name of a line of the picture, followed by the number of private records."""
HIGHER, LOWER, WITHIN = "higher", "lower", "within"
HOLDS, WITHOUT_PRIVACY, DOES_NOT_SHOW, REFUTED = "holds", "holds without privacy only", "does not show", "refuted"
NOT_RUN = "not all run"
"""Verdict on a claim of which not all runs have ended: whoever looks after each seed finds differences by chance."""
VERDICTS = (HOLDS, WITHOUT_PRIVACY, DOES_NOT_SHOW, REFUTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim of a paper.

    Attributes:
        name: Identifier, unique over all papers.
        paper: The paper.
        claim: The claim, in one sentence.
        where: Table, figure or section of the paper.
        published: The paper's figures. Only readers of the file see them, as those of `why`.
        rows: Overrides of each row, keyed by its name, in the order of the page; empty if the figures are computed.
        computed: Name of the function in `computed.py` that returns a figure for each row, without a run.
        compare: The row that the claim favours, and the row that it is compared with.
        expects: What is claimed about the figure of the favoured row: "higher" or "lower" than that of the other row,
            or "within" a margin of it.
        margin: Largest difference at which the two figures still count as equal, if `expects` is "within".
        figure: Dotted name of a figure in `metrics.json`; or "accuracy", "fid" (of the last round) or "seconds".
        epsilons: Values of epsilon at which every row is run; empty if the rows set their own.
        data: Names of the data sets.
        seeds: Number of experiment seeds.
        small: Whether the small preset includes the claim.
        ours: Whether it is this project's own: no paper claims it, or none of such data.
        why: Explanations, keyed by the verdict that they explain.
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
    ours: bool = False
    why: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ConfigError: A value is not allowed.
        """
        section = f"claims.{self.name}"
        if bool(self.rows) == bool(self.computed):
            raise ConfigError(section, expected="either rows or computed", got="both or neither")
        if self.computed is not None:
            one_of(f"{section}.computed", self.computed, among=computed.FUNCTIONS)
        for row in self.compare if self.rows else ():
            one_of(f"{section}.compare", row, among=self.rows)
        for reached in self.why:
            one_of(f"{section}.why", reached, among=VERDICTS)
        one_of(f"{section}.expects", self.expects, among=(HIGHER, LOWER, WITHIN))
        at_least(0, section=section, margin=self.margin)
        integers(1, section=section, seeds=self.seeds)
        if not all(epsilon > 0 for epsilon in self.epsilons):
            raise ConfigError(f"{section}.epsilons", expected="numbers > 0", got=self.epsilons)


def read_claims(folder: Path = FOLDER) -> list[Claim]:
    """Return all claims, in the order of the files' names.

    Raises:
        ConfigError: A file is not YAML of this form, has a field that `Claim` lacks, or repeats a name.
    """
    shared = YamlFile.load(ROWS).values
    claims: dict[str, Claim] = {}
    for path in sorted(folder.glob("*.yaml")):
        for claim in _of_file(path, shared):
            if claim.name in claims:
                raise ConfigError(f"claims.{claim.name}", expected="each name once", got="a second one", where=path)
            claims[claim.name] = claim
    return list(claims.values())


def read_lines(path: Path = LINES) -> list[Claim]:
    """Return the lines of the README's picture, each as a claim with one row, named after the line and its records.

    Raises:
        ConfigError: The file is not YAML of this kind.
    """
    content = YamlFile.load(path).values
    try:
        return [
            Claim(
                name=name if records is None else f"{name}{RECORDS}{records}",
                paper="",
                claim="",
                where="",
                published="",
                rows={name: merge_overrides(overrides)},
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
        raise ConfigError("file of the picture", expected="its lines", got=error, where=path) from error


def merge_overrides(*lists: Sequence[str]) -> tuple[str, ...]:
    """Return the effective overrides: a later override replaces an earlier override of the same setting.

    If a list chooses a different method from an earlier list, the settings `method.*` of the earlier list are dropped.
    """
    kept: dict[str, str] = {}
    of_the_method: list[str] = []
    for overrides in lists:
        by_setting = {name_of(override): override for override in overrides}
        if "method" in by_setting:
            if kept.get("method") not in {None, by_setting["method"]}:
                kept = {key: override for key, override in kept.items() if key not in of_the_method}
            of_the_method = [key for key in by_setting if key.startswith("method.")]
        kept = {key: override for key, override in kept.items() if key not in by_setting} | by_setting
    return tuple(kept.values())


def _of_file(path: Path, shared: Mapping[str, Sequence[str]]) -> list[Claim]:
    file = YamlFile.load(path)
    with add_location(file.where):
        content = known_keys("", file.values, among=("paper", "base", "claims"), required=("paper", "claims"))
        check_type("paper", content["paper"], str)
        base = content.get("base", [])
        check_type("base", base, tuple[str, ...])
        if not isinstance(content["claims"], Mapping):
            raise ConfigError("claims", expected="claims by name", got=content["claims"])
        return [_claim(str(name), content["paper"], base, shared, values) for name, values in content["claims"].items()]


def _claim(name: str, paper: str, base: Sequence[str], shared: Mapping[str, Sequence[str]], values: object) -> Claim:
    section = f"claims.{name}"
    fields = dict(known_keys(section, values, among=_KINDS, required=("claim", "where", "published", "compare")))
    for key, value in fields.items():
        check_type(f"{section}.{key}", value, _KINDS[key])
    if not isinstance(fields.get("expects", HIGHER), str):
        fields["margin"] = known_keys(f"{section}.expects", fields["expects"], among=(WITHIN,), required=(WITHIN,))[
            WITHIN
        ]
        fields["expects"] = WITHIN
    if len(fields["compare"]) != 2:
        raise ConfigError(f"{section}.compare", expected="two of its rows", got=len(fields["compare"]))
    rows = fields.pop("rows", {})
    if not isinstance(rows, Mapping):
        raise ConfigError(f"{section}.rows", expected="a list of overrides by row", got=rows)
    rows = {str(row): shared.get(row) if overrides == "shared" else overrides for row, overrides in rows.items()}
    for row, overrides in rows.items():
        check_type(f"{section}.rows.{row}", overrides, tuple[str, ...])
    if "epsilons" in fields:
        fields["epsilons"] = tuple(map(float, fields["epsilons"] or ()))
    fields |= {key: tuple(fields[key]) for key in ("compare", "data") if key in fields}
    return Claim(
        name=name,
        paper=paper,
        rows={row: merge_overrides(base, overrides) for row, overrides in rows.items()},
        **fields,
    )


_KINDS: Mapping[str, Any] = {
    name: kind for name, kind in get_type_hints(Claim).items() if name not in {"name", "paper", "margin"}
} | {"rows": Mapping, "expects": Mapping, "epsilons": tuple[float, ...] | None, "why": Mapping}
"""Types of a claim's fields in its file. For a mapping, `check_type` accepts all values; they are checked elsewhere."""

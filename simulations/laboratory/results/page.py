"""The page of results: one row for each claim, and the picture."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.system.files import write_atomic
from simulations.laboratory.results.claims import NOT_RUN, VERDICTS, WITHIN
from simulations.laboratory.results.correction import standing_verdicts
from simulations.laboratory.results.findings import Difference, EarlierFinding, Finding, RowFigure
from simulations.laboratory.results.picture import FILE as PICTURE
from simulations.laboratory.results.picture import draw
from simulations.sweeps.render import markdown_row

PAGE = "README.md"
POINTS = 100
"""Percentage points of an accuracy, or another fraction, of 1."""
_SHARES = ("accuracy", "macro_f1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """All that the page shows.

    Attributes:
        preset: Name of the preset.
        about: Text about how the claims were measured, in Markdown.
        findings: The finding on each claim, in the order of the page.
        lines: The finding on each line of the picture.
        earlier: What an earlier version found; None if nothing is compared with it.
        planned: Number of runs that the claims need.
        measured: Number of these runs that were made and did not fail.
        core_hours: Hours of these runs.
    """

    preset: str
    about: str
    findings: Sequence[Finding]
    lines: Sequence[Finding]
    earlier: EarlierFinding | None
    planned: int
    measured: int
    core_hours: float

    @property
    def failures(self) -> list[str]:
        """The distinct reasons why runs failed."""
        return sorted({failure for finding in (*self.findings, *self.lines) for failure in finding.failures})


def render(content: Content) -> str:
    """Return the page in Markdown."""
    papers = dict.fromkeys(finding.claim.paper for finding in content.findings)
    of_papers = {paper: [one for one in content.findings if one.claim.paper == paper] for paper in papers}
    stands = {name: stays for of_paper in of_papers.values() for name, stays in standing_verdicts(of_paper).items()}
    parts = [
        "# What holds of the papers' claims, and of ours, by real models\n",
        f"Written by `make results PRESET={content.preset}` (the runs of one claim: `CLAIM=NAME`); do not edit.",
        f"{content.measured} of {content.planned} runs, {content.core_hours} hours of runs, two at a time.\n",
        f"{_counted(content.findings, stands)}\n",
        *_changed(content.findings, content.earlier),
        content.about + "\n",
    ]
    if draw(content.lines) is not None:
        parts.append(f"![Accuracy against ε, by method and number of records]({PICTURE})\n")
    for paper, of_paper in of_papers.items():
        parts.append(f"## {paper}\n")
        parts.append("| claim | published | ours | verdict, and why |\n|---|---|---|---|")
        parts.append("".join(_row(one, stands.get(one.claim.name, True)) for one in of_paper))
    if content.failures:
        parts.append("## Failed runs\n")
        parts.append("\n".join(f"- {failure}" for failure in content.failures) + "\n")
    return "\n".join(parts)


def write_page(folder: Path, content: Content) -> None:
    """Write the page and its picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / PAGE, render(content).encode())
    if (picture := draw(content.lines)) is not None:
        write_atomic(folder / PICTURE, picture.encode())


def _counted(findings: Sequence[Finding], stands: Mapping[str, bool]) -> str:
    """Return a table with the number of claims for each verdict, and how many of these stand after the correction."""
    together = standing_verdicts(findings)
    of = {
        "of papers": [one for one in findings if not one.claim.ours],
        "of this project": [one for one in findings if one.claim.ours],
    }
    rows = [markdown_row(("claims", *(f"{whose} ({len(group)})" for whose, group in of.items()))), "|---" * 3 + "|\n"]
    for verdict in (*VERDICTS, NOT_RUN):
        reached = [[one.claim.name for one in group if one.verdict == verdict] for group in of.values()]
        if any(reached):
            rows.append(markdown_row((verdict, *(_standing(names, stands, together) for names in reached))))
    return "".join(rows) + (
        "\nIn brackets: verdicts by runs that stand after Holm's correction "
        "(`simulations/laboratory/results/correction.py`) among the claims of each section, and among all of this "
        "page. What does not stand in its section is marked: alone it would count, among so many it may be chance. A "
        "computed figure, and a difference that is the same in all pairs, need no test."
    )


def _standing(names: Sequence[str], *corrections: Mapping[str, bool]) -> str:
    """Return the number of claims, and of those that stand after each correction if any of them is tested by runs."""
    if not any(name in corrections[0] for name in names):
        return str(len(names))
    return f"{len(names)} ({', '.join(str(sum(kept.get(name, False) for name in names)) for kept in corrections)})"


def _changed(findings: Sequence[Finding], earlier: EarlierFinding | None) -> list[str]:
    """Return a section with the claims whose verdict is another one than in an earlier version; empty without one."""
    if earlier is None:
        return []
    both = [
        (earlier.findings[one.claim.name], one)
        for one in findings
        if one.claim.name in earlier.findings and one.data and one.verdict != NOT_RUN
    ]
    changed = [(old, one) for old, one in both if _bare_verdict(one) != _bare_verdict(old)]
    rows = [
        f"**Since version {earlier.version}** {len(changed)} of {len(both)} verdicts that both have are others now"
        + (", for the reasons below:\n\n| claim | before | now |\n|---|---|---|\n" if changed else ".\n")
    ]
    for old, one in changed:
        before = "<br>".join([_bare_verdict(old), *_differences(old)])
        rows.append(markdown_row((f"`{one.claim.name}`", before, _bare_verdict(one))))
    return ["".join(rows)]


def _row(finding: Finding, stands: bool) -> str:
    claim = finding.claim
    data_sets = [", ".join(finding.data)] if finding.data else []
    cells = (
        f"{claim.claim} ({claim.where}; `{claim.name}`)",
        claim.published,
        "<br>".join([*data_sets, *_figures(finding), *_differences(finding)]),
        _verdict(finding, stands),
    )
    return markdown_row(cells)


def _verdict(finding: Finding, stands: bool) -> str:
    alone = "" if stands else ", not after the correction"
    return f"**{_bare_verdict(finding)}**{alone}" + (f": {finding.why}" if finding.why else "")


def _bare_verdict(finding: Finding) -> str:
    start = f" from ε = {finding.from_epsilon:g}" if finding.from_epsilon is not None else ""
    return f"{finding.verdict}{start}"


def _figures(finding: Finding) -> list[str]:
    """Return one line for each epsilon, with the rows' means ± standard deviations."""
    figures, claim = finding.figures, finding.claim
    lines = []
    for epsilon in dict.fromkeys(figure.epsilon for figure in figures):
        rows = [figure for figure in figures if figure.epsilon == epsilon]
        shown = ", ".join(f"{figure.row}: {_spread(figure, claim.figure)}" for figure in rows)
        lines.append(_at(epsilon) + shown)
    return lines


def _differences(finding: Finding) -> list[str]:
    claim = finding.claim
    favoured, other = claim.compare
    about = f"{favoured} less {other}"
    if claim.expects == WITHIN:
        about += f" (within {_number(claim.margin, claim.figure)})"
    return [f"{_at(one.epsilon)}*{about}: {_signed(one, claim.figure)}*" for one in finding.differences]


def _spread(figure: RowFigure, name: str) -> str:
    if figure.mean is None:
        return "not run"
    text = _number(figure.mean, name)
    if figure.deviation is not None:
        text += f" ± {_number(figure.deviation, name)}"
    if figure.worst is not None:
        text += f", worst label {_number(figure.worst, name)}"
    return text + ("" if figure.runs == figure.planned else f" ({figure.runs} of {figure.planned} runs)")


def _signed(one: Difference, name: str) -> str:
    text = f"{_scaled(one.mean, name):+.1f}" if name.endswith(_SHARES) else f"{one.mean:+.3g}"
    if one.pairs == 0:
        return text
    if one.interval is None:
        return f"{text}, one pair"
    low, high = one.interval
    return f"{text} [{_number(low, name)}, {_number(high, name)}], {one.pairs} pairs"


def _number(value: float, name: str) -> str:
    return f"{_scaled(value, name):.1f}" if name.endswith(_SHARES) else f"{value:.3g}"


def _scaled(value: float, name: str) -> float:
    return POINTS * value if name.endswith(_SHARES) else value


def _at(epsilon: float | None) -> str:
    return "" if epsilon is None else f"ε = {'∞' if math.isinf(epsilon) else f'{epsilon:g}'}: "

"""The page of results: one row for each claim, and the picture."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.system.files import write_atomic
from simulations.laboratory.results.claims import NOT_RUN, VERDICTS, WITHIN
from simulations.laboratory.results.correction import standing_verdicts
from simulations.laboratory.results.findings import Difference, EarlierFinding, Finding
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
    before = _before(content.findings, content.earlier)
    parts = [
        "# The papers' claims and our claims, measured\n",
        _counted(content.findings, stands),
        f"{content.measured} of {content.planned} runs, {content.core_hours} hours of runs, two at a time.",
        f"`make results PRESET={content.preset}` writes this page (do not edit it). `CLAIM=NAME` measures one claim.\n",
    ]
    if content.earlier is not None:
        changed = sum(one.label != before.get(one.claim.name, one.label) for one in content.findings)
        parts.append(
            f"Since version {content.earlier.version}, {changed} of {len(before)} verdicts changed. Rows show both.\n"
        )
    parts.append(content.about + "\n")
    if draw(content.lines) is not None:
        parts.append(f"![Accuracy against ε, by method and number of records]({PICTURE})\n")
    for paper, of_paper in of_papers.items():
        data = dict.fromkeys(name for one in of_paper for name in one.data)
        parts.append(f"## {paper}\n\nData: {', '.join(data)}.\n")
        parts.append("| claim | where | difference | verdict |\n|---|---|---|---|")
        parts.append("".join(_row(one, stands.get(one.claim.name, True), before) for one in of_paper))
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
    """Return a table with the number of claims for each verdict, and how many of these stand after each correction."""
    together = standing_verdicts(findings)
    groups = [[one for one in findings if one.claim.ours == ours] for ours in (False, True)]
    rows = [f"| claims | of papers ({len(groups[0])}) | of this project ({len(groups[1])}) |\n|---|---|---|\n"]
    for verdict in (*VERDICTS, NOT_RUN):
        reached = [[one.claim.name for one in group if one.verdict == verdict] for group in groups]
        if any(reached):
            rows.append(markdown_row((verdict, *(_standing(names, stands, together) for names in reached))))
    return "".join(rows)


def _standing(names: Sequence[str], *corrections: Mapping[str, bool]) -> str:
    """Return the number of claims, and of those that stand after each correction if any of them is tested by runs."""
    if not any(name in corrections[0] for name in names):
        return str(len(names))
    return f"{len(names)} ({', '.join(str(sum(kept.get(name, False) for name in names)) for kept in corrections)})"


def _before(findings: Sequence[Finding], earlier: EarlierFinding | None) -> dict[str, str]:
    """Return an earlier version's labels of the findings that come from runs, keyed by the claim's name."""
    labels = {} if earlier is None else earlier.labels
    names = [one.claim.name for one in findings if one.data and one.verdict != NOT_RUN]
    return {name: labels[name] for name in names if name in labels}


def _row(finding: Finding, stands: bool, before: Mapping[str, str]) -> str:
    claim = finding.claim
    verdict = f"**{finding.label}**" + ("" if stands else ", not after the correction")
    if (old := before.get(claim.name, finding.label)) != finding.label:
        verdict += f" (before: {old})"
    lines = "<br>".join(_differences(finding))
    return markdown_row((f"{claim.claim} (`{claim.name}`)", claim.where, lines, verdict))


def _differences(finding: Finding) -> list[str]:
    """Return one line for each epsilon: both rows' means, and their difference with its interval; then the margin."""
    claim, lines = finding.claim, []
    means = {(one.row, one.epsilon): one.mean for one in finding.figures if one.mean is not None}
    for one in finding.differences:
        favoured, other = (_number(means[row, one.epsilon], claim.figure) for row in claim.compare)
        at = "" if one.epsilon is None else f"ε={'∞' if math.isinf(one.epsilon) else f'{one.epsilon:g}'}: "
        lines.append(f"{at}{favoured} against {other}: {_signed(one, claim.figure)}")
    return [*lines, f"margin {_number(claim.margin, claim.figure)}"] if claim.expects == WITHIN else lines


def _signed(one: Difference, name: str) -> str:
    text = f"{POINTS * one.mean:+.1f}" if name.endswith(_SHARES) else f"{one.mean:+.3g}"
    if one.pairs and one.interval:
        text += f" [{_number(one.interval[0], name)}, {_number(one.interval[1], name)}]"
    return f"{text} ({one.pairs})" if one.pairs else text


def _number(value: float, name: str) -> str:
    return f"{POINTS * value:.1f}" if name.endswith(_SHARES) else f"{value:.3g}"

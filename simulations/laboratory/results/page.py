"""The pages of results: a summary with the pictures, and a page for each paper with one row for each claim."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import ConfigError
from common.system.files import write_atomic
from simulations.laboratory.results.cells import HERE
from simulations.laboratory.results.claims import FOLDER, NOT_RUN, VERDICTS, WITHIN
from simulations.laboratory.results.correction import standing_verdicts
from simulations.laboratory.results.findings import Difference, Finding
from simulations.laboratory.results.picture import draw
from simulations.sweeps.render import markdown_row

PAGE = "README.md"
POINTS = 100
"""Percentage points of an accuracy, or another fraction, of 1."""
_SHARES = ("accuracy", "macro_f1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured with the language model of one preset.

    Attributes:
        preset: Name of the preset.
        model: The language model, as the pages name it.
        findings: The finding on each claim, in the order of the pages.
        lines: The finding on each line of the picture.
        planned: Number of runs that the claims need.
        measured: Number of these runs that were made and did not fail.
        core_hours: Hours of these runs.
    """

    preset: str
    model: str
    findings: Sequence[Finding]
    lines: Sequence[Finding]
    planned: int
    measured: int
    core_hours: float

    @property
    def picture(self) -> str:
        """Name of the picture's file."""
        return f"accuracy_{self.preset}.svg"

    @property
    def failures(self) -> list[str]:
        """The distinct reasons why runs failed."""
        return sorted({failure for finding in (*self.findings, *self.lines) for failure in finding.failures})

    @property
    def papers(self) -> dict[str, list[Finding]]:
        """The findings on the claims of each paper."""
        papers = dict.fromkeys(finding.claim.paper for finding in self.findings)
        return {paper: [one for one in self.findings if one.claim.paper == paper] for paper in papers}

    @property
    def stands(self) -> dict[str, bool]:
        """Whether each verdict stands after the correction among the claims of its paper, keyed by the claim's name."""
        return {name: stays for found in self.papers.values() for name, stays in standing_verdicts(found).items()}


def render(models: Sequence[Measured], page: str) -> str:
    """Return a page in Markdown with its marked parts made again: the verdicts by model, and the list of papers' pages.

    Args:
        models: What was measured, with one or more language models, on the same claims.
        page: The page, with each part between two comments.
    """
    verdicts = [_counted(models)]
    verdicts += [
        f"{one.model}: {one.measured} of {one.planned} runs, {one.core_hours} hours of runs, two at a time "
        f"(`make results PRESET={one.preset}`).\n"
        for one in models
    ]
    papers = [
        f"![Accuracy against ε with {one.model}, by method and number of records]({one.picture})\n"
        for one in models
        if draw(one.lines, one.model) is not None
    ]
    papers.append("## Claim by claim\n")
    papers.append("".join(f"- [{paper}]({_file(paper)}): {len(found)}\n" for paper, found in models[0].papers.items()))
    if failures := [failure for one in models for failure in one.failures]:
        papers.append("## Failed runs\n")
        papers.append("\n".join(f"- {failure}" for failure in failures) + "\n")
    return _with_part(_with_part(page, "verdicts", "\n".join(verdicts)), "papers", "\n".join(papers))


def render_paper(models: Sequence[Measured], paper: str) -> str:
    """Return the page of a paper in Markdown: a row for each claim, and a column for each model that was run on any."""
    models = [model for model in models if any(one.verdict != NOT_RUN for one in model.papers[paper])] or models
    found = [{one.claim.name: one for one in model.papers[paper]} for model in models]
    claims = [one.claim for one in models[0].papers[paper]]
    data = dict.fromkeys(name for one in found[0].values() for name in one.data)
    stands = [model.stands for model in models]
    heads = "".join(f" {model.model} |" for model in models)
    parts = [
        f"# {paper}\n",
        f"Data: {', '.join(data)}. [How to read the table](../{PAGE}#how-to-read-the-tables).\n",
        f"| claim | where |{heads}\n|---|---|{'---|' * len(models)}",
    ]
    rows = [
        markdown_row(
            (
                f"{claim.claim} (`{claim.name}`)",
                claim.where,
                *(_cell(each[claim.name], standing) for each, standing in zip(found, stands, strict=True)),
            )
        )
        for claim in claims
    ]
    return "\n".join([*parts, "".join(rows)])


def write_pages(folder: Path, models: Sequence[Measured]) -> None:
    """Write the pages and pictures; the text about our own measurements only into our own folder."""
    (folder / FOLDER.name).mkdir(parents=True, exist_ok=True)
    page = (HERE / PAGE).read_text(encoding="utf-8")
    if folder.resolve() != HERE:
        page = _with_part(page, "ours", "")
    write_atomic(folder / PAGE, render(models, page).encode())
    for paper in models[0].papers:
        write_atomic(folder / _file(paper), render_paper(models, paper).encode())
    for one in models:
        if (picture := draw(one.lines, one.model)) is not None:
            write_atomic(folder / one.picture, picture.encode())


def _with_part(page: str, name: str, part: str) -> str:
    """Return the page with this text between the two comments that mark the part; raise ConfigError without these."""
    before, start, rest = page.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->\n")
    if not end:
        raise ConfigError(PAGE, expected=f"the comments that mark its part {name}", got="none", where=HERE / PAGE)
    return f"{before}{start}{part}{end}{after}"


def _file(paper: str) -> str:
    """Return the path of a paper's page: its name without authors and year."""
    return f"{FOLDER.name}/{re.sub('[^a-z]+', '_', paper.partition(' (')[0].lower())}.md"


def _counted(models: Sequence[Measured]) -> str:
    """Return a table with the number of claims for each verdict, and how many of these stand after each correction."""
    heads, columns = [], []
    for model in models:
        corrections = (model.stands, standing_verdicts(model.findings))
        for ours, whose in ((False, "papers"), (True, "this project")):
            group = [one for one in model.findings if one.claim.ours == ours]
            heads.append(f"{model.model}, of {whose} ({len(group)})")
            columns.append(
                {
                    verdict: _standing([one.claim.name for one in group if one.verdict == verdict], *corrections)
                    for verdict in (*VERDICTS, NOT_RUN)
                }
            )
    rows = [markdown_row(("claims", *heads)), "|---" * (len(heads) + 1) + "|\n"]
    for verdict in (*VERDICTS, NOT_RUN):
        counts = [column[verdict] for column in columns]
        if set(counts) != {"0"}:
            rows.append(markdown_row((verdict, *counts)))
    return "".join(rows)


def _standing(names: Sequence[str], *corrections: Mapping[str, bool]) -> str:
    """Return the number of claims, and of those that stand after each correction if any of them is tested by runs."""
    if not any(name in corrections[0] for name in names):
        return str(len(names))
    return f"{len(names)} ({', '.join(str(sum(kept.get(name, False) for name in names)) for kept in corrections)})"


def _cell(finding: Finding, stands: Mapping[str, bool]) -> str:
    """Return the verdict, then a line for each epsilon."""
    verdict = f"**{finding.label}**" + ("" if stands.get(finding.claim.name, True) else ", not after the correction")
    return "<br>".join((verdict, *_differences(finding))) if finding.verdict != NOT_RUN else NOT_RUN


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

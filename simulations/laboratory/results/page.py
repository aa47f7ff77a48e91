"""The page of findings: one row for each claim, from `findings.json` alone, which contains every number on the page."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.system.files import write_atomic
from simulations.laboratory.results.claims import NOT_RUN, VERDICTS, WITHIN
from simulations.laboratory.results.correction import stand
from simulations.laboratory.results.picture import FILE as PICTURE
from simulations.laboratory.results.picture import draw
from simulations.sweeps.render import markdown_row

FINDINGS = "findings.json"
PAGE = "README.md"
POINTS = 100
"""Percentage points of an accuracy, or another fraction, of 1."""
_SHARES = ("accuracy", "macro_f1")


def render(content: Mapping[str, Any]) -> str:
    """Return the page in Markdown.

    Args:
        content: Content of `findings.json`.
    """
    findings: Sequence[Mapping[str, Any]] = content["findings"]
    papers = dict.fromkeys(finding["claim"]["paper"] for finding in findings)
    of_papers = {paper: [one for one in findings if one["claim"]["paper"] == paper] for paper in papers}
    stands = {name: stays for of_paper in of_papers.values() for name, stays in stand(of_paper).items()}
    parts = [
        "# What holds of the papers' claims, and of ours, by real models\n",
        f"Written by `make results PRESET={content['preset']}`; do not edit. {_runs(content)}.\n",
        f"{_counted(findings, stands)}\n",
        *_not_again(findings),
        *_changed(findings, stands, content["earlier"]),
        content["about"] + "\n",
    ]
    if draw(content["picture"]) is not None:
        parts.append(f"![Accuracy against ε, by method and number of records]({PICTURE})\n")
    for paper, of_paper in of_papers.items():
        parts.append(f"## {paper}\n")
        parts.append("| claim | published | ours | verdict, and why | command |\n|---|---|---|---|---|")
        parts.append("".join(_row(one, stands.get(one["claim"]["name"], True), content["preset"]) for one in of_paper))
    if content["failures"]:
        parts.append("## Failed runs\n")
        parts.append("\n".join(f"- {failure}" for failure in content["failures"]) + "\n")
    return "\n".join(parts)


def write(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the numbers, the page and its picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)
    write_atomic(folder / FINDINGS, f"{text}\n".encode())
    read_again = json.loads(text)
    write_atomic(folder / PAGE, render(read_again).encode())
    if (picture := draw(read_again["picture"])) is not None:
        write_atomic(folder / PICTURE, picture.encode())


def _runs(content: Mapping[str, Any]) -> str:
    runs = content["runs"]
    return f"{runs['measured']} of {runs['planned']} runs, {content['core_hours']} hours of runs, two at a time"


def _counted(findings: Sequence[Mapping[str, Any]], stands: Mapping[str, bool]) -> str:
    """Return a table with the number of claims for each verdict, and how many of these stand after the correction."""
    together = stand(findings)
    of = {
        "of papers": [one for one in findings if not one["claim"]["ours"]],
        "of this project": [one for one in findings if one["claim"]["ours"]],
    }
    rows = [markdown_row(("claims", *(f"{whose} ({len(group)})" for whose, group in of.items()))), "|---" * 3 + "|\n"]
    for verdict in (*VERDICTS, NOT_RUN):
        reached = [[one["claim"]["name"] for one in group if one["verdict"] == verdict] for group in of.values()]
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


def _not_again(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence with the number of findings that are still of an earlier version; empty if there are none."""
    old = dict.fromkeys(one["version"] for one in findings if one["version"] is not None)
    now = sum(map(_again, findings))
    if not old:
        return []
    others = f"those marked {' and '.join(map(_mark, old))} are of that one, as not all of their runs were made again"
    return [f"**{now} of {len(findings)} claims were measured by the present version**; {others}.\n"]


def _again(finding: Mapping[str, Any]) -> bool:
    """Return whether the present version has measured this claim by runs, all of which have ended."""
    return bool(finding["data"]) and finding["version"] is None and finding["verdict"] != NOT_RUN


def _changed(
    findings: Sequence[Mapping[str, Any]], stands: Mapping[str, bool], earlier: Mapping[str, Any] | None
) -> list[str]:
    """Return a section with the claims whose verdict is another one than in an earlier version; empty without one."""
    if earlier is None:
        return []
    before = earlier["findings"]
    both = [one for one in findings if one["claim"]["name"] in before and _again(one)]
    changed = [one for one in both if _bare_verdict(one) != _bare_verdict(before[one["claim"]["name"]])]
    rows = [
        f"**Since version {earlier['version']}** {len(changed)} of {len(both)} verdicts that both have are others now"
        + (":\n\n| claim | before | now, and why |\n|---|---|---|\n" if changed else ".\n")
    ]
    for one in changed:
        claim, old = one["claim"], before[one["claim"]["name"]]
        cells = (
            f"{claim['claim']} ({claim['paper']})",
            "<br>".join([_bare_verdict(old), *_differences(old | {"claim": claim})]),
            "<br>".join([_verdict(one, stands.get(claim["name"], True)), *_differences(one)]),
        )
        rows.append(markdown_row(cells))
    return ["".join(rows)]


def _row(finding: Mapping[str, Any], stands: bool, preset: str) -> str:
    claim = finding["claim"]
    cells = (
        f"{claim['claim']} ({claim['where']})",
        claim["published"],
        "<br>".join([*_measured_on(finding), *_figures(finding), *_differences(finding)]),
        _verdict(finding, stands),
        f"`make results PRESET={preset} CLAIM={claim['name']}`",
    )
    return markdown_row(cells)


def _verdict(finding: Mapping[str, Any], stands: bool) -> str:
    alone = "" if stands else ", not after the correction"
    return f"**{_bare_verdict(finding)}**{alone}" + (f": {finding['why']}" if finding["why"] else "")


def _bare_verdict(finding: Mapping[str, Any]) -> str:
    start = f" from ε = {finding['from_epsilon']:g}" if finding["from_epsilon"] is not None else ""
    return f"{finding['verdict']}{start}"


def _measured_on(finding: Mapping[str, Any]) -> list[str]:
    """Return a line with the data sets, and with the version if it is an earlier one; none for computed figures."""
    mark = [] if finding["version"] is None else [_mark(finding["version"])]
    return [", ".join([*finding["data"], *mark])] if finding["data"] else mark


def _mark(version: str) -> str:
    return f"*v{version}*"


def _figures(finding: Mapping[str, Any]) -> list[str]:
    """Return one line for each epsilon, with the rows' means ± standard deviations."""
    figures, claim = finding["figures"], finding["claim"]
    lines = []
    for epsilon in dict.fromkeys(figure["epsilon"] for figure in figures):
        rows = [figure for figure in figures if figure["epsilon"] == epsilon]
        shown = ", ".join(f"{figure['row']}: {_spread(figure, claim['figure'])}" for figure in rows)
        lines.append(_at(epsilon) + shown)
    return lines


def _differences(finding: Mapping[str, Any]) -> list[str]:
    claim = finding["claim"]
    favoured, other = claim["compare"]
    about = f"{favoured} less {other}"
    if claim["expects"] == WITHIN:
        about += f" (within {_number(claim['margin'], claim['figure'])})"
    return [f"{_at(one['epsilon'])}*{about}: {_signed(one, claim['figure'])}*" for one in finding["differences"]]


def _spread(figure: Mapping[str, Any], name: str) -> str:
    if figure["mean"] is None:
        return "not run"
    text = _number(figure["mean"], name)
    if figure["deviation"] is not None:
        text += f" ± {_number(figure['deviation'], name)}"
    if figure.get("worst") is not None:
        text += f", worst label {_number(figure['worst'], name)}"
    return text + ("" if figure["runs"] == figure["planned"] else f" ({figure['runs']} of {figure['planned']} runs)")


def _signed(one: Mapping[str, Any], name: str) -> str:
    text = f"{_scaled(one['mean'], name):+.1f}" if name.endswith(_SHARES) else f"{one['mean']:+.3g}"
    if one["pairs"] == 0:
        return text
    if one["interval"] is None:
        return f"{text}, one pair"
    low, high = one["interval"]
    return f"{text} [{_number(low, name)}, {_number(high, name)}], {one['pairs']} pairs"


def _number(value: float, name: str) -> str:
    return f"{_scaled(value, name):.1f}" if name.endswith(_SHARES) else f"{value:.3g}"


def _scaled(value: float, name: str) -> float:
    return POINTS * value if name.endswith(_SHARES) else value


def _at(epsilon: float | str | None) -> str:
    return "" if epsilon is None else f"ε = {'∞' if epsilon == 'inf' else f'{epsilon:g}'}: "

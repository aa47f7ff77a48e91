"""The report of a run or a sweep: one page for people (`report.html`) and one file for programs (`report.json`).

    facts.py          all files of a run folder, read once, in JSON's types: `report.json`
    metric_groups.py  the figures of `metrics.json` in groups
    votes.py          distribution of the noised votes
    weaknesses.py     what is poor about a run, and what to change
    plots.py          layout of lines, bars and dots
    run_plots.py      the plots of one run
    sweep.py          comparison of several runs
    write.py          templates to files
    tensorboard.py    the figures of each round as event files
    templates/        page, comparison, pieces, style and script, as Python modules: Flower's bundle carries no other
                      suitable type of file

Nothing is computed from records here: a page shows only what is in the run folder. A page loads nothing, and no text on
it can become markup.
"""

from server.report.weaknesses import Weakness, read_weaknesses
from server.report.write import write_report

__all__ = ["Weakness", "read_weaknesses", "write_report"]

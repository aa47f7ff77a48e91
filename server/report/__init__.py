"""What a run or a sweep was, on one page for people and in one file for programs.

    facts.py      what is so: everything that a run folder says, read once, in JSON's types; `report.json`
    measured.py   the figures of `metrics.json`, whatever there are, in groups
    votes.py      how the noised votes are distributed
    plots.py      lines, bars and dots, laid out
    figures.py    which plots a run has
    sweep.py      several runs, compared
    write.py      templates to files
    tensorboard.py  the figures of each round as event files
    templates/    page, comparison, pieces, style and script:
                  the templates: Python modules, because Flower's bundle carries no file of any type that suits them

Nothing is computed from records here: what was not in the run folder is not on the page. A page loads nothing, and no
text on it can become markup.
"""

from server.report.write import write_report

__all__ = ["write_report"]

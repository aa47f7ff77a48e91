"""Claims made in papers, each tested by paired runs of this program: `make results`.

claims/*.yaml      what a paper claims and publishes, rows (settings) whose difference tests it, reasons of verdicts
rows.yaml          rows that claims of several papers compare with
picture.yaml       lines of the page's pictures
presets.yaml       what all runs have in common; data sets; language model and claims of each preset
claims.py          reads and checks claims and lines
cells.py           the runs that claims need, each once
data_sets.py       where the data sets are, and files made from them
execution.py       runs what is missing, in two processes
runs.py            what the runs measured, as far as the page needs it: full.jsonl, chat.jsonl
computed.py        figures of claims that need no runs
findings.py        differences, intervals and verdicts
correction.py      which verdicts stand after a correction for their number
page.py            README.md, and claims/*.md with a row for each claim
picture.py         the page's pictures: accuracy_*.svg
contamination.py   whether a model has seen the records of a set: SMALL_MODEL.md
__main__.py        all of it
"""

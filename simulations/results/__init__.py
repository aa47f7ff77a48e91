"""Claims of the papers, each measured by paired runs of this program: `make results`.

claims/*.yaml      what a paper claims, and the rows (settings) whose difference shows it
presets.yaml       what all runs have in common; data sets; which claims the small preset has
claims.py          reads and checks these files
cells.py           the runs that claims need, each once, and what they measured: runs.jsonl
execution.py       runs what is missing, in two processes
findings.py        differences, intervals and verdicts: findings.json
page.py            README.md: one row for each claim
__main__.py        all of it
"""

"""A run's guarantee in words: everything that is said of it is said here, of the fields of `privacy.json` alone.

    case.py         which of four guarantees a run has
    rounding.py     ε, δ and what follows from them as people read them, rounded toward more loss
    statement.py    in paragraphs: `privacy.json`, and in full on the page
    not_covered.py  what it leaves open: `privacy.json`, the page
    sides.py        what it means for readers and insiders: the first screen of the page, `report.json`
    cost.py         in one line: the terminal

A hospital decides by the plan and its own files (`client/deploy/approve.py`); what both sides say is said once, in
`common/plan/words.py`.
"""

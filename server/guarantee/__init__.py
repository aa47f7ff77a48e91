"""A run's guarantee in words: every sentence about it is written here, from the fields of `privacy.json` alone.

    case.py         which of four guarantees a run has
    rounding.py     ε, δ and what follows from them as people read them, rounded toward more loss
    statement.py    in paragraphs: `privacy.json`, and in full on the page; its cost in one line: the terminal
    not_covered.py  what it leaves open: `privacy.json`, the page
    sides.py        what it means for readers and insiders: the first screen of the page, `report.json`

A hospital decides by the plan and its own files (`client/deploy/approve.py`); sentences that both sides use are
in `common/plan/words.py`.
"""

"""A run's guarantee in words: every sentence about it is written here, from the fields of `privacy.json` alone.

    case.py         which of four guarantees a run has
    rounding.py     ε, δ and figures derived from them, in the form for readers, rounded toward more loss
    statement.py    the guarantee in paragraphs and what it does not cover, for `privacy.json` and the page; its cost in
                    a line for the terminal
    sides.py        what the guarantee means for readers and insiders, for the top of the page and `report.json`

A hospital decides on the basis of the plan and its own files (`client/approval`); sentences that both sides
use are in `common/plan/words.py`, and most sentences on what the guarantee does not cover are in
`common/plan/not_covered.py`.
"""

"""A run's guarantee in words: every sentence about it is written here, from the fields of `privacy.json` alone.

    case.py         which of four guarantees a run has
    messages.py     filling in of sentences, and the form of figures in them
    english.yaml    the sentences; a further language is a file with the same names
    words.py        the facts that the sentences name, and what is made of the sentences: statement and limits for
                    `privacy.json`, the card for the report and `report.json`, the cost in a line for the terminal

A hospital decides on the basis of the plan and its own files (`client/approval`); sentences that both sides
use are in `common/plan/english.yaml`, and so are most limits of the guarantee.
"""

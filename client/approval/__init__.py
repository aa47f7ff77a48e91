"""A hospital's approval of a plan: what a person sees before deciding, and the stored decision.

entries.py    the stored decisions, by a person or by the limits; the service looks them up at each question
amounts.py    this hospital's own figures: its lifetime budget, its records, and what it has answered
fit.py        whether the limits allow a plan, and the largest epsilon that they would allow
questions.py  what a query asks, in words
changes.py    what has changed since the last approved plan of the same name
facts.py      all facts about one plan; those about its guarantee are of `common/plan/facts.py`
standing.py   what has become of a plan, in sentences: its run's end, the limits' refusal, the answers given
sheet.py      the facts in sentences, for the terminal and for the page (`client/page/plans.py`)
*.yaml        the sentences, in three languages; those of both sides are beside `common/plan/facts.py`
command.py    `caucus-party approve`
"""

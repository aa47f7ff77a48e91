"""The queries that a party can be asked, one per module, with specification, sensitivity proof and wire format.

Such a module is called the page of its query: `page.py` defines what it contains, and `closed_set.py` lists all pages.
To add a query that is a sum over the parties:

1. Write its page in this package. It has a specification (`Spec`) and the query (`Query`) with its arrays, their dtypes
   and their checks. The docstring of the specification proves the sensitivity.
2. Write its contribution, which is a function of query and records, in `client/contributions`, and enter it in
   `contribute.CONTRIBUTIONS`.
3. Enter the pair of specification and query in `closed_set.QUERIES`.
4. State the question in words, in each language of the hospital's sheet (`asks` in `client/approval/english.yaml`).
5. Say how long an answer takes (`common/schedule.py`), which sums honest hospitals can have
   (`server/federation/plausible.py`), and what signal to expect (`server/planning/expected.py`).

The test of its sensitivity belongs in `tests/properties/test_sensitivity.py`. A query that is answered inside the party
is handled in `client/answer.py` instead of by a contribution. Parties answer a new kind only if their limits name it:
see the lists of kinds in `configs/client.yaml` and `configs/simulation.yaml`.
"""

"""The coordinator's page: runs, hospitals, and the plan of a new run, computed by the same code as the commands.

No private text can appear on the page, since the coordinator has none, and a run's log and errors quote none. Released
texts appear in the reports, which the browser opens in a sandbox.
"""

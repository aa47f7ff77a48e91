"""The coordinator's page: runs, hospitals, and the plan of a new run, made by the code of the commands.

No private text can appear on the page: the coordinator has none, and a run's log and errors quote none. Released texts
appear in the reports, which a browser opens in a sandbox.
"""

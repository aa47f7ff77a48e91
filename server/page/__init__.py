"""The coordinator's page: runs, hospitals, and the plan of a new run, by the code of the commands.

No private text can be on it: the coordinator has none, and a run's log and errors quote none. Texts that were released
stand in the reports, which a browser opens in a sandbox.
"""

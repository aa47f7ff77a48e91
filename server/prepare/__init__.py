"""The steps from overrides to built objects, before any private data is accessed.

`compose.py` lets Hydra compose YAML and overrides; `server/settings/reading.py` converts the result to typed settings;
`automatic.py` replaces `auto` by numbers; `build.py` builds an object, `components.py` builds all of a run's.
`misprints.py` reports in one line what is wrong, and `model_checks.py` tries each model. Only this package handles
Hydra's containers.
"""

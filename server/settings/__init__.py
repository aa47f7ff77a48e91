"""Settings of a run: their definitions (`schema.py`, `methods.py`), and the steps from overrides to built objects.

An override passes through these modules: `compose.py` lets Hydra compose YAML and overrides; `reading.py` converts the
result to typed, frozen `schema.Settings`, which every other package reads; `automatic.py` replaces `auto` by numbers;
`build.py` builds the objects. `misprints.py` reports in one line what is wrong. Only this package handles Hydra's
containers.

The schema is registered with Hydra as plain values, not as structured configs, for which OmegaConf would make frozen
dataclasses read-only, silently convert text to numbers, and report errors in its own words, without the bounds. Hydra
therefore gets only the defaults, and names, types and bounds are checked in one place, in our code.
"""

"""Settings of a run: their definitions (`schema.py`, `methods.py`), and the way from an override to an object.

An override passes through these modules: `compose.py` lets Hydra compose YAML and overrides; `reading.py` makes typed,
frozen `schema.Settings` of that, which every other package reads; `automatic.py` puts numbers in place of `auto`;
`build.py` makes the objects. `misprints.py` says in one line what is wrong. Only this package sees Hydra's containers.

Why the schema is registered with Hydra as plain values and not as structured configs: OmegaConf would make frozen
dataclasses read-only, silently convert text to numbers, and report errors in its own words, which name no bounds. So
Hydra gets only the defaults, and names, kinds and bounds are checked in one place, in our code.
"""

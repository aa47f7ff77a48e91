"""Settings of a run: names, defaults, units and bounds, as typed, frozen classes, which every other package reads.

The schema is registered with Hydra as plain values, not as structured configs, for which OmegaConf would make frozen
dataclasses read-only, silently convert text to numbers, and report errors in its own words, without the bounds. Hydra
therefore gets only the defaults, and names, types and bounds are checked in one place, in our code.
"""

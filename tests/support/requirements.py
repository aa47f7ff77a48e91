"""Requirements in pyproject.toml, and the requirements of these packages in this environment."""

import tomllib
from functools import cache
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [
    requirement
    for lines in (PROJECT["dependencies"], *EXTRAS.values())
    for requirement in map(Requirement, lines)
    if requirement.name != PROJECT["name"]
]
"""All requirements on other distributions, each wherever it stands."""


def brought(requirements):
    """Return the canonical names of the distributions that these requirements and their extras name."""
    names = set()
    for requirement in map(Requirement, requirements):
        ours = requirement.name == PROJECT["name"]
        names |= set() if ours else {canonicalize_name(requirement.name)}
        for extra in requirement.extras:
            names |= brought(EXTRAS[extra] if ours else extra_of(requirement.name, extra))
    return names


@cache
def extra_of(distribution, extra):
    return [line for line in requires(distribution) if extra in line.partition("extra == ")[2]]


def everything(names):
    """Return the names of these distributions and of all that they require, directly or not, in this environment."""
    closure, left = set(), set(names)
    while left:
        name = left.pop()
        closure.add(name)
        needed = (Requirement(line) for line in requires(name) or [])
        left |= {
            canonicalize_name(requirement.name)
            for requirement in needed
            if not requirement.marker or requirement.marker.evaluate({"extra": ""})
        } - closure
    return closure

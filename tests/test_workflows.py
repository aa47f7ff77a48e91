"""Workflows, hooks and updates of the repository are YAML and name what exists; what runs them is elsewhere."""

import re

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from tests.support.requirements import PROJECT, ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")}


def jobs():
    return [(name, job) for workflow in WORKFLOWS.values() for name, job in workflow["jobs"].items()]


def steps(key):
    return [step[key] for _, job in jobs() for step in job["steps"] if key in step]


@pytest.mark.parametrize("name", ["test", "nightly", "package", "advisories"])
def test_a_workflow_may_read_alone_and_each_job_ends(name):
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow[True]  # `on`, as YAML reads it
    assert all(job["timeout-minutes"] <= 360 for job in workflow["jobs"].values())


def test_every_target_that_is_made_exists():
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    made = {target for run in steps("run") for target in re.findall(r"\bmake ([a-z-]+)", run)}
    made |= {target for _, job in jobs() for target in job.get("strategy", {}).get("matrix", {}).get("target", [])}
    assert {"test", "demo", "test-slow", "test-deployment", "test-lowest", "test-containers"} <= made <= targets


def test_every_week_the_lock_is_compared_with_advisories():
    """Without resolving: what pip-audit cannot look up is an error, and no package of another name is installed."""
    assert WORKFLOWS["advisories"][True]["schedule"]
    (audit,) = [run for run in steps("run") if run.startswith("pip-audit ")]
    options = {"--strict", "--disable-pip", "--require-hashes"}
    assert set(audit.split()[1:]) == options | {"--requirement", "constraints.txt"}


def test_the_tests_run_on_every_version_of_python_that_is_allowed():
    allowed = [f"3.{minor}" for minor in range(9, 20) if f"3.{minor}" in SpecifierSet(PROJECT["requires-python"])]
    assert WORKFLOWS["test"]["jobs"]["test"]["strategy"]["matrix"]["python"] == allowed

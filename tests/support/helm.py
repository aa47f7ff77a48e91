"""Helm, from the package `helm-python-sdk`, in a separate process since it loads Go's runtime."""

import json
import subprocess
import sys
from pathlib import Path

import configs

CHART = Path(configs.__file__).parent / "deployment" / "helm"

_CODE = """
import json, sys, helm_python as helm
path, values, verb = json.load(sys.stdin)
try:
    if verb == "lint":
        said = helm.lint(path, values, strict=True)["messages"]
    else:
        with helm.Chart.load(path) as chart:
            chart.validate_schema(values)
            said = chart.render(values, name="mary", namespace="caucus")
    print(json.dumps({"said": said}))
except helm.HelmError as error:
    print(json.dumps({"error": str(error)}))
"""


class HelmError(Exception):
    """Error raised for values that Helm rejects."""


def _helm(values, verb):
    request = json.dumps([str(CHART), values, verb])
    ended = subprocess.run([sys.executable, "-c", _CODE], input=request, capture_output=True, text=True, check=True)
    answer = json.loads(ended.stdout)
    if "error" in answer:
        raise HelmError(answer["error"])
    return answer["said"]


def rendered(values):
    """Return the manifests of a release named mary, as texts keyed by the template's name."""
    return {name.rpartition("/")[2]: text for name, text in _helm(values, "render").items()}


def lint(values):
    """Return the findings of `helm lint --strict`, without its advice."""
    return [finding["error"] for finding in _helm(values, "lint") if finding["severity"] > 1]

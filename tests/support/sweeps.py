"""Run folders in the state in which a sweep leaves them."""

import json

from server.prepare.compose import FILE, write_yaml
from tests.support.documents import privacy_json, summary_json


def run(
    folder, number, row, accuracy=None, *, experiment=None, epsilon=4.0, status="complete", traffic=None, seed=None
):
    """Write the files of one run that a table reads; `accuracy` is None for a run that measured nothing."""
    path = folder / str(number)
    config = {"row": row, "experiment_seed": number if seed is None else seed} | (
        {"experiment": experiment} if experiment else {}
    )
    write_yaml(config, path / FILE)
    files = {
        "run": summary_json(status=status),
        "privacy": privacy_json(epsilon=epsilon, planned_epsilon=epsilon),
        "metrics": {"synthetic": {"accuracy": accuracy}, "real_private": {"accuracy": 0.99}} if accuracy else {},
        **({"traffic": traffic} if traffic else {}),
    }
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return path

"""Small sets of synthetic and real texts of two classes, and settings, for tests of figures."""

import json

import numpy as np

from common.domain import Record
from server.documents.codec import strict
from server.documents.metrics import Figure, Metrics
from server.domain import Candidate
from server.evaluation.small_model import Evaluation
from server.settings.evaluation import METRICS, Training
from tests.support.federations import ENCODER

FAST = Training(epochs=1, width=16, layers=1, vocabulary=300, length=16)
WORDS = ("harbour", "lantern", "meadow", "copper", "violin", "thunder", "pebble", "orchard", "saddle", "window")


def text(label, i):
    return f"{'apple' if label == 'a' else 'berry'} {WORDS[i % 10]} by the {WORDS[(3 * i + 1) % 7]} {i}"


def candidates(count=40):
    return [Candidate(text=text("ab"[i % 2], i), label="ab"[i % 2], model="m", round=0) for i in range(count)]


def records(start, count=40):
    return [Record(text("ab"[i % 2], i + start), "ab"[i % 2]) for i in range(count)]


def measured_parts(*, settings=None, **changes):
    """Return arguments for `Measured`."""
    chosen = {"metrics": METRICS, "language_model": FAST, "texts": 40, "shadows": 1} | (settings or {})
    return (
        {"candidates": candidates(), "test": records(104), "encoder": ENCODER}
        | changes
        | {"evaluation": Evaluation(**chosen)}
    )


def as_read(groups):
    """Return groups of figures as they are read from their file."""
    return Metrics(content=json.loads(json.dumps(strict(groups))))


def figures(group):
    return {name: value for name, value in group.items() if isinstance(value, Figure)}


def assert_whole(groups):
    """Assert that each figure has rows and a finite value within its interval, and that each group has a definition."""
    for group in groups.values():
        assert group["definition"]
        for name, figure in figures(group).items():
            assert np.isfinite(figure.value), (name, figure)
            assert figure.rows > 0
            low, high = figure.interval or (figure.value, figure.value)
            assert low <= figure.value <= high

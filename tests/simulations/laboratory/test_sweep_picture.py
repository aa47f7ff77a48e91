import json
import xml.etree.ElementTree as ET

import pytest

from common.errors import CheckpointError
from simulations.laboratory.sweep_picture import main
from tests.support.sweeps import run

SVG = "{http://www.w3.org/2000/svg}"


def measured(folder, rows):
    """Write runs of rows: accuracy on vectors, and that of the released numbers, if there is one."""
    for number, (row, accuracy, numbers) in enumerate(rows):
        path = run(folder, number, row, accuracy=accuracy / 2)
        metrics = json.loads((path / "metrics.json").read_text())
        metrics["utility_encoder"] = {"definition": "d", "accuracy": {"value": accuracy}}
        if numbers:
            metrics["released_classifier"] = {"definition": "d", "accuracy": {"value": numbers}}
        (path / "metrics.json").write_text(json.dumps(metrics))
    return folder


def test_two_plots_with_every_row_as_a_line_and_the_numbers_alone_beside_the_texts(tmp_path):
    rows = [("No votes", 0.6, None), ("No votes", 0.7, None)]
    rows += [(f"Census epsilon {epsilon}", 0.7 + at / 10, 0.9) for at, epsilon in enumerate(("1", "inf"))]
    measured(tmp_path / "sweep", rows)
    main([str(tmp_path / "sweep"), str(tmp_path / "p.svg"), "--note", "two seeds"])
    texts = [element.text for element in ET.parse(tmp_path / "p.svg").iter(f"{SVG}text")]
    assert {"No votes", "Census", "Census, numbers alone", "1", "∞", "two seeds"} <= set(texts)
    assert [text for text in texts if text.startswith("Accuracy on real texts")] == [
        "Accuracy on real texts, %: on the encoder's vectors",
        "Accuracy on real texts, %: on TF-IDF",
    ]


def test_a_sweep_without_an_epsilon_is_refused(tmp_path):
    measured(tmp_path / "sweep", [("No votes", 0.6, None)])
    with pytest.raises(CheckpointError, match="runs with accuracies, by epsilon"):
        main([str(tmp_path / "sweep"), str(tmp_path / "p.svg")])

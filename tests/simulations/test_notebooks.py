"""The notebook runs from its first cell to its last, and is committed without what it printed."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from simulations import Result

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "simulations" / "notebooks" / "first_steps.ipynb"


@pytest.fixture
def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_it_is_committed_without_outputs(notebook):
    nbformat.validate(notebook)
    assert [(cell.outputs, cell.execution_count) for cell in code(notebook)] == [([], None)] * len(code(notebook))


@pytest.mark.slow
@pytest.mark.filterwarnings("default:.*(zmq|TCP|jupyter|event loop)")
def test_it_runs_as_it_is_from_data_to_report(notebook, tmp_path, monkeypatch):
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{os.environ.get('PYTHONPATH', '')}")
    work = tmp_path / "work"
    work.mkdir()
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(work)}}).execute()

    outputs = [output.data for cell in code(notebook) for output in cell.outputs if output.output_type != "stream"]
    assert not any(output.output_type == "error" for cell in code(notebook) for output in cell.outputs)
    assert "nearest and furthest votes" in outputs[1]["text/html"]
    assert "synthetic" in outputs[-3]["text/plain"]
    assert outputs[-1]["text/html"].startswith('<iframe title="report" sandbox="allow-scripts"')
    (folder,) = (work / "runs").glob("*/*-wasp")
    result = Result.load(folder)
    assert result.status == "complete"
    assert 130 < len(result.texts) <= 150  # under noise a text that is written twice may be lost
    assert result.privacy["spent"]["queries_asked"] == 2

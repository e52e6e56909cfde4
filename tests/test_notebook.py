"""The example notebook runs from top to bottom, and still says what its stored outputs say."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "examples" / "quickstart.ipynb"


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    return [
        output.text for cell in notebook.cells for output in cell.get("outputs", ()) if output.output_type == "stream"
    ]


def pictures(notebook: nbformat.NotebookNode) -> int:
    return sum("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ()))


def test_the_notebook_runs_and_shows_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)
    again = nbformat.read(NOTEBOOK, as_version=4)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    NotebookClient(again, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert printed(again) == printed(stored)
    assert pictures(again) == pictures(stored) == 2

"""The README's numbers about speed are those that were measured last."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_readme_says_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.section import BEGIN, END, section

    results = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    told = (ROOT / "README.md").read_text().partition(BEGIN)[2].partition(END)[0]
    assert told == section(results), f"write it anew with: {Path(sys.executable).name} -m benchmarks.section"


def test_every_demanded_ratio_was_reached() -> None:
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    assert [claim for claim in results["claims"] if not claim["holds"]] == []

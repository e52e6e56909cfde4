"""What every test shares: one thread, no network, and the command line called in this very process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

# Before numpy and torch are imported, and for the commands that tests start: two workers share two cores.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", HF_HUB_OFFLINE="1")

import pytest

TESTS = Path(__file__).parent
for folder in (TESTS, TESTS / "draw"):  # where the helpers are that tests of several folders read figures with
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from commands import Ran  # noqa: E402


@pytest.fixture
def posviz(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs `posviz ...` in this process: what `main` does, without the seconds that importing torch takes."""

    def run(*words: object) -> Ran:
        from posviz.cli import main

        monkeypatch.setattr(sys, "argv", ["posviz", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), said.out, said.err)

    return run

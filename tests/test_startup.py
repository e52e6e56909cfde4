"""What a process of ours sets for itself, and leaves alone in a process of somebody else."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from posviz.draw.style import paper_style
from posviz.startup import AFTERWARDS, be_brisk, settle

LET_GO = """
import gc, weakref
from matplotlib.figure import Figure
from posviz.draw.style import paper_style
from posviz.startup import be_brisk

be_brisk()
alive = weakref.WeakSet()
most = 0
for _ in range(40):
    with paper_style():
        figure = Figure()
        figure.subplots(4, 6)
        alive.add(figure)
    del figure
    most = max(most, len(alive))
print(most)
"""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_garbage_is_looked_for_once_drawing_begins() -> None:
    be_brisk()
    assert gc.get_threshold() > AFTERWARDS
    with paper_style():
        assert gc.get_threshold() == AFTERWARDS
        assert gc.get_freeze_count() > 0


def test_somebody_elses_process_keeps_its_settings() -> None:
    gc.set_threshold(123, 4, 5)
    settle()
    assert gc.get_threshold() == (123, 4, 5)
    assert gc.get_freeze_count() == 0


def test_figures_do_not_pile_up() -> None:
    ran = subprocess.run([sys.executable, "-c", LET_GO], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 20

"""Time and memory over the length of the sequence, plotted: run as a program on the results, because it draws."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.claims import LENGTHS, LONG, long_name
from posviz.draw.curves import several_colours
from posviz.draw.style import paper_style

HEADS = 12
DASHES = {"rope": (0, (5, 2)), "cable": (0, (5, 2))}


def draw(results: dict[str, Any]) -> Figure:
    """Two panels over the length: seconds, and peak memory with what the whole stack alone would take."""
    measured = results["measured"]
    with paper_style():
        figure = Figure(figsize=(9, 3.6), dpi=150, layout="constrained")
        seconds, memory = figure.subplots(1, 2)
        for method, colour in zip(LONG, several_colours(len(LONG)), strict=True):
            runs = [measured[long_name(method, length)] for length in LENGTHS]
            style: dict[str, Any] = {"color": colour, "label": method, "marker": "o", "markersize": 3.5}
            style["linestyle"] = DASHES.get(method, "-")
            seconds.plot(LENGTHS, [run["seconds"] for run in runs], **style)
            memory.plot(LENGTHS, [run["peak_bytes"] / 1e9 for run in runs], **style)
        whole = [4e-9 * HEADS * length**2 for length in LENGTHS]
        memory.plot(LENGTHS, whole, color="#888888", linestyle=":", label="the whole stack")
        _finish(seconds, "time of posviz render (s)")
        _finish(memory, "peak memory (GB)")
        memory.legend(frameon=False, fontsize=8)
    return figure


def _finish(axes: Any, label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
    axes.minorticks_off()
    axes.set_xlabel("positions")
    axes.set_ylabel(label)
    axes.grid(True, color="#d9d9d9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def main(results: Path, out: Path) -> None:
    with paper_style():
        draw(json.loads(results.read_text())).savefig(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

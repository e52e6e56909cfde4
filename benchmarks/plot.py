"""Both curves of the scale benchmark as a figure; run as a program, because the measuring process stays light."""

from __future__ import annotations

import json
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.scale import LENGTHS

HERE = Path(__file__).parent
HEADS, BYTES = 12, 4


def main() -> None:
    curves = json.loads((HERE / "results.json").read_text(encoding="utf-8"))["scale"]
    figure = Figure(figsize=(10, 4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    time, memory = figure.subplots(1, 2)
    for method, curve in curves.items():
        time.plot(LENGTHS, curve["seconds"], marker="o", label=method)
        memory.plot(LENGTHS, curve["megabytes"], marker="o", label=method)
    naive = [HEADS * length**2 * BYTES / 1e6 for length in LENGTHS]
    memory.plot(LENGTHS, naive, color="grey", linestyle="--", label="scores of all heads")
    for axes, title, unit in ((time, "Time of a render", "seconds"), (memory, "Peak memory", "megabytes")):
        axes.set(title=title, xlabel="positions", ylabel=unit, xscale="log", yscale="log")
        axes.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS], minor=False)
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(HERE / "scale.png")


if __name__ == "__main__":
    main()

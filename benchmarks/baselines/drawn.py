"""Twelve heatmaps on a prepared layout: the floor of every figure here."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def draw(values: np.ndarray, out: str) -> None:
    """Twelve panels with colour bars, at the size and resolution of posviz's own figure."""
    figure = Figure(figsize=(12, 16), dpi=185)
    FigureCanvasAgg(figure)
    future = np.triu(np.ones(values.shape[1:], dtype=bool), 1)
    for head, panel in enumerate(values):
        row, column = divmod(head, 3)
        left, bottom = (column + 0.1) / 3, (3 - row + 0.1) / 4
        axes = figure.add_axes((left, bottom, 0.7 / 3, 0.7 / 4))
        picture = axes.imshow(np.ma.array(panel, mask=future))
        axes.set_title(f"Head {head + 1}")
        figure.colorbar(picture, cax=figure.add_axes((left + 0.72 / 3, bottom, 0.03 / 3, 0.7 / 4)))
    figure.savefig(out)

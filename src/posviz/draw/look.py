"""Look: what a person may choose about a figure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from posviz.draw import style
from posviz.errors import OutputError, unknown_name

SCALES = ("head", "shared")


@dataclass(frozen=True)
class Look:
    """How a stack is drawn. The defaults are the look of the paper's figures."""

    scale: str = "head"  # the colours' range: each head's own, or one for all
    cmap: str | None = None
    diverging: bool = False  # zero has the middle colour
    log: bool = False  # logarithmic colours; of signed values, linear next to zero
    dpi: float | None = None  # at least this; raised until cells are whole pixels
    title: str | None = None

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise OutputError(unknown_name("scale", self.scale, SCALES))
        if self.dpi is not None and not (math.isfinite(self.dpi) and self.dpi > 0):
            raise OutputError(f"a resolution of {self.dpi} dots per inch; expected a number above 0")
        if self.cmap is not None:
            from matplotlib import colormaps

            if self.cmap not in colormaps:
                plain = [name for name in colormaps if not name.endswith("_r")]
                raise OutputError(unknown_name("colour map", self.cmap, plain))

    @property
    def cmap_name(self) -> str:
        """The colour map to draw with."""
        return self.cmap or (style.DIVERGING_CMAP if self.diverging else style.CMAP)

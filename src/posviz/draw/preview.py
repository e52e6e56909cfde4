"""A small picture of a heatmap for a terminal: two pixels in each character, in 24-bit colour."""

from __future__ import annotations

import numpy as np

from posviz.errors import OutputError

# Viridis at seventeen even steps; what lies between is mixed, so that a preview needs no matplotlib.
STEPS = (
    "440154 47186a 472c7b 424085 3a528b 32628d 2c728e 26818e 20908c "
    "1e9f88 28ae7f 3ebc73 5ec961 83d34b addc30 d7e219 fde724"
)
VIRIDIS = np.array([tuple(bytes.fromhex(step)) for step in STEPS.split()])
UPPER, LOWER, RESET = "▀", "▄", "\x1b[0m"

Colour = tuple[int, int, int]


def preview(values: np.ndarray, width: int = 64) -> str:
    """A matrix as lines of half blocks, at most `width` characters wide; blank where it is not finite."""
    if values.ndim != 2 or not values.size:
        raise OutputError(f"a preview of shape {values.shape}; expected a matrix of queries and keys")
    if width < 1:
        raise OutputError(f"a preview {width} characters wide; expected 1 or more")
    columns = min(width, values.shape[1])
    rows = max(1, round(columns * values.shape[0] / values.shape[1]))
    shares = _shares(_averaged(_averaged(values, rows, 0), columns, 1))
    pixels = [[_colour(share) for share in line] for line in shares]
    pixels += [[None] * columns] * (rows % 2)
    return "\n".join(_line(upper, lower) for upper, lower in zip(pixels[::2], pixels[1::2], strict=True))


def _averaged(values: np.ndarray, parts: int, axis: int) -> np.ndarray:
    """The mean of what is finite in each of so many equal parts of an axis; NaN where nothing is."""
    starts = np.arange(parts) * values.shape[axis] // parts
    seen = np.isfinite(values)
    total = np.add.reduceat(np.where(seen, values, 0).astype(np.float64), starts, axis=axis)
    count = np.add.reduceat(seen.astype(np.int64), starts, axis=axis)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _shares(values: np.ndarray) -> np.ndarray:
    """Values from 0, the least, to 1, the greatest; a constant is in the middle."""
    seen = values[np.isfinite(values)]
    if not seen.size:
        return values
    low, high = seen.min(), seen.max()
    return (values - low) / (high - low) if high > low else np.where(np.isfinite(values), 0.5, np.nan)


def _colour(share: float) -> Colour | None:
    if np.isnan(share):
        return None
    at = share * (len(VIRIDIS) - 1)
    below = min(int(at), len(VIRIDIS) - 2)
    red, green, blue = np.rint(VIRIDIS[below] + (at - below) * (VIRIDIS[below + 1] - VIRIDIS[below])).astype(int)
    return int(red), int(green), int(blue)


def _line(upper: list[Colour | None], lower: list[Colour | None]) -> str:
    """One line of characters; a colour is only named where it changes."""
    text, last = [], ""
    for above, below in zip(upper, lower, strict=True):
        if above is not None:
            code, character = (_code(48, below) if below is not None else RESET) + _code(38, above), UPPER
        elif below is not None:
            code, character = RESET + _code(38, below), LOWER
        else:
            code, character = RESET, " "
        text.append(character if code == last else code + character)
        last = code
    return "".join(text).removeprefix(RESET).rstrip().removesuffix(RESET) + RESET


def _code(ground: int, colour: Colour) -> str:
    red, green, blue = colour
    return f"\x1b[{ground};2;{red};{green};{blue}m"

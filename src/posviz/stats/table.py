"""The heads' numbers as plain aligned text: one head a line, ranked by any number, or several sources side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from posviz.errors import PosvizError, unknown_name

Row = Mapping[str, Any]  # what HeadStats.to_json gives, and what a caller adds to it

COLUMNS = ("head", "min", "max", "mean", "uniformity", "reach50", "reach90", "entropy", "sink", "previous", "fit")
COMPARED = ("uniformity", "reach50", "reach90", "entropy", "sink", "previous", "slope")
WIDTH = 100  # of a comparison, in characters; what does not fit beside goes below
SHORT = {"slope": "fit.linear.slope"}  # names that people use for a number further down
VARIANCE = ("content", "position")
SHARES = ("sink", "previous", *VARIANCE)
COUNTED_UP = ("head", "layer")  # ranked from the least; every other number from the greatest
GAP = "  "


def format_table(rows: Sequence[Row], columns: Sequence[str] | None = None, sort: str | None = None) -> str:
    """One line per head. `sort` names a number, or the beginning of its name; `-name` puts the least first.

    Columns left out are the usual ones, with the layer when there is more than one, and the shares of the scores'
    variance when they are known.
    """
    if not rows:
        raise PosvizError("there are no heads to list; expected at least one")
    columns = _usual_columns(rows) if columns is None else [find_name(rows[0], name) for name in columns]
    if sort is not None:
        rows = ranked(rows, sort)
    lines = [[_title(name) for name in columns], *([_cell(row, name) for name in columns] for row in rows)]
    return _aligned(lines, left={n for n, name in enumerate(columns) if _is_text(rows[0], name)})


def _usual_columns(rows: Sequence[Row]) -> list[str]:
    layer = ["layer"] if len({row.get("layer") for row in rows}) > 1 else []
    shares = [name for name in VARIANCE if name in rows[0]]
    return [*layer, *COLUMNS[:-1], *shares, COLUMNS[-1]]


def format_comparison(
    sides: Sequence[tuple[str, Sequence[Row]]], columns: Sequence[str] = COMPARED, width: int = WIDTH
) -> str:
    """Several sources head by head: under each number one column per source, labelled above."""
    if len({tuple(row["head"] for row in rows) for _, rows in sides}) != 1 or not sides[0][1]:
        found = ", ".join(f"{label} has {numbered(row['head'] for row in rows)}" for label, rows in sides) or "nothing"
        raise PosvizError(f"heads differ: {found}; expected the same heads everywhere: choose common ones with --heads")
    names = [find_name(sides[0][1][0], name) for name in columns]
    heads = _block("", [["head"], *([str(row["head"])] for row in sides[0][1])])
    blocks = []
    for name in names:
        cells = ([_cell(rows[at], name) for _, rows in sides] for at in range(len(sides[0][1])))
        blocks.append(_block(_title(name), [[label for label, _ in sides], *cells]))
    return _packed(heads, blocks, width)


def numbered(heads: Iterable[int]) -> str:
    """Heads in words: `heads 1 to 12`, `heads 2, 5`."""
    numbers = list(heads)
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"heads {numbers[0]} to {numbers[-1]}"
    return f"head{'s' if len(numbers) != 1 else ''} {', '.join(map(str, numbers)) or 'none'}"


def ranked(rows: Sequence[Row], sort: str) -> list[Row]:
    """The rows in the order of one number; those without it come last."""
    name = find_name(rows[0], sort.removeprefix("-"))
    if _is_text(rows[0], name):
        raise PosvizError(f"{name} is not a number; sort by one of: {', '.join(_numbers(rows[0]))}")
    sign = 1 if (name in COUNTED_UP) != sort.startswith("-") else -1
    return sorted(rows, key=lambda row: math.inf if (x := value_of(row, name)) is None else sign * x)


def find_name(row: Row, name: str) -> str:
    """The number or text that a name, a short name, a path such as `fit.log.p` or a beginning of one stands for."""
    name = SHORT.get(name, name)
    if name in row or ("." in name and _has(row, name)):
        return name
    for known in (*_numbers(row), *row):
        if name and known.startswith(name):
            return SHORT.get(known, known)
    raise PosvizError(unknown_name("number", name, [*_numbers(row), "fit"]))


def _title(name: str) -> str:
    return next((short for short, path in SHORT.items() if path == name), name)


def value_of(row: Row, name: str) -> Any:
    """What a row holds under a name or a path; None where a part of the path is missing."""
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _has(row: Row, path: str) -> bool:
    parent, _, last = path.rpartition(".")
    holder = value_of(row, parent)
    return isinstance(holder, Mapping) and last in holder


def _numbers(row: Row) -> list[str]:
    """The names that rows can be ranked by."""
    texts = ("method", "quantity", "note")
    return [*(n for n, v in row.items() if n not in texts and not isinstance(v, (Mapping, str, list))), *SHORT]


def _is_text(row: Row, name: str) -> bool:
    return isinstance(value_of(row, name), (str, Mapping, list))


def _cell(row: Row, name: str) -> str:
    value = value_of(row, name)
    if value is None:
        return "-"
    if name == "fit":
        return describe_fit(value)
    if isinstance(value, float):
        return format_number(value, name)
    return str(value)


def format_number(value: float, name: str) -> str:
    """A number with as many digits as its kind deserves."""
    if name == "uniformity":  # never rounded up: 1.0000 is said of a Toeplitz matrix alone
        return f"{math.floor((value + 1e-6) * 1e4) / 1e4:.4f}"
    if name in SHARES:
        return f"{value:.3f}"
    return f"{value:.4g}"


def describe_fit(fit: Mapping[str, Any]) -> str:
    """The best law in a few words: `log p=0.52 a=1.3 R2=0.998`."""
    law = fit[fit["best"]]
    numbers = f"m={law['slope']:.4g}" if fit["best"] == "linear" else f"p={law['p']:.4g} a={law['a']:.4g}"
    return f"{fit['best']} {numbers} R2={law['r2']:.4f}"


def _aligned(lines: Sequence[Sequence[str]], left: set[int]) -> str:
    """Columns as wide as their widest cell: numbers to the right, the columns in `left` to the left."""
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]

    def padded(line: Sequence[str]) -> str:
        cells = zip(line, widths, strict=True)
        return GAP.join(cell.ljust(w) if n in left else cell.rjust(w) for n, (cell, w) in enumerate(cells))

    return "\n".join(padded(line).rstrip() for line in lines)


def _block(title: str, lines: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns under a title, every line as long as the longest."""
    block = _aligned(lines, left=set()).split("\n")
    width = max(len(line) for line in (title, *block))
    return [title.center(width), *(line.rjust(width) for line in block)]


def _packed(first: list[str], blocks: Sequence[list[str]], width: int) -> str:
    """Blocks beside each other up to a width, then below; each strip begins with the first block."""
    strips = [[first]]
    for block in blocks:
        used = sum(len(part[0]) + 2 * len(GAP) for part in strips[-1])
        if len(strips[-1]) > 1 and used + len(block[0]) > width:
            strips.append([first])
        strips[-1].append(block)
    joined = ("\n".join((2 * GAP).join(line).rstrip() for line in zip(*strip, strict=True)) for strip in strips)
    return "\n\n".join(joined)

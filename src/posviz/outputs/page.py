"""HTML: one file that shows the grid in any browser, with every value under the pointer. It loads nothing.

The values are stored once, as float32: the cells that are not masked, byte planes apart (which is what compresses),
deflated, in base64. The page unpacks and colours them, so a value shown is the value itself.
"""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from posviz.draw import style
from posviz.draw.look import Look
from posviz.errors import OutputError
from posviz.outputs import recipes
from posviz.outputs.atomic import replacing
from posviz.stack import HeadStack

_RECIPE = re.compile(r'<script type="application/json" id="recipe">(.*?)</script>', re.DOTALL)


def save_page(stack: HeadStack, path: Path, look: Look, recipe: Mapping[str, Any]) -> Path:
    """Write the page of a stack."""
    path = Path(path)
    if not stack.values.size:
        raise OutputError(f"nothing to draw: a stack of shape {stack.values.shape}")
    title = look.title or _title(stack)
    page = Template(_part("page.html")).substitute(
        title=html.escape(title),
        creator=html.escape(recipes.CREATOR),
        facts="\n".join(f"<div><dt>{name}</dt><dd>{html.escape(what)}</dd></div>" for name, what in _facts(stack)),
        command=html.escape(str(recipe.get("command_line") or "")),
        style=_part("page.css"),
        script=_part("page_values.js") + _part("page_colours.js") + _part("page.js"),
        about=_in_script(json.dumps(_about(stack, look), allow_nan=False)),
        recipe=_in_script(recipes.to_text(recipe)),
        values=pack(stack.values),
    )
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return path


def read(path: Path) -> str | None:
    found = _RECIPE.search(path.read_text(encoding="utf-8", errors="replace"))
    return found[1] if found else None


def pack(values: np.ndarray) -> str:
    """Which cells are masked, a bit each, then the others' bytes: all first bytes, all second ones, and so on."""
    masked = np.isnan(values)
    planes = values[~masked].astype("<f4").view(np.uint8).reshape(-1, 4).T
    return base64.b64encode(zlib.compress(np.packbits(masked).tobytes() + planes.tobytes(), 6)).decode("ascii")


def _about(stack: HeadStack, look: Look) -> dict[str, Any]:
    """What the page needs to know beside the values."""
    heads, rows, columns = stack.values.shape
    above_zero = np.where(stack.values > 0, stack.values, np.inf).min(axis=(1, 2))
    asked = (look.cmap_name, look.diverging)
    offered = dict.fromkeys([(style.CMAP, False), (style.DIVERGING_CMAP, True), asked])  # in this order, each once
    return {
        "heads": stack.heads,
        "shape": [heads, rows, columns],
        "cell": stack.cell,
        "lengths": [stack.seq_len, stack.key_len],
        "reduced": str(stack.meta.get("reduce", "")) if stack.cell > 1 else "",
        "tokens": stack.tokens,
        "limits": _numbers(stack.limits()),
        "leastPositive": _numbers(above_zero),
        "maps": [{"name": name, "centred": centred, "table": _table(name)} for name, centred in offered],
        "chosen": list(offered).index(asked),
        "scale": look.scale,
        "log": look.log,
        "logDecades": style.LOG_DECADES,
        "linearShare": style.LINEAR_SHARE,
    }


def _numbers(array: np.ndarray) -> Any:
    """Nested lists with None for what is no finite number, which JSON cannot say."""
    found = array.astype(object)
    found[~np.isfinite(array)] = None
    return found.tolist()


def _table(name: str) -> str:
    """A colour map as 256 colours of six hexadecimal digits."""
    from matplotlib import colormaps

    return colormaps[name](np.linspace(0, 1, 256), bytes=True)[:, :3].tobytes().hex()


def _title(stack: HeadStack) -> str:
    method = str(stack.meta.get("title") or stack.meta.get("method") or "Attention heads")
    return f"{method}, layer {stack.meta['layer']}" if "layer" in stack.meta else method


def _facts(stack: HeadStack) -> list[tuple[str, str]]:
    meta = stack.meta
    layer = f"{meta.get('layer')} of {meta['n_layers']}" if meta.get("n_layers") else meta.get("layer")
    same = stack.seq_len == stack.key_len
    facts = {
        "Checkpoint": meta.get("source"),
        "Method": meta.get("method"),
        "Layer": layer,
        "Shows": meta.get("quantity"),
        "Positions": stack.seq_len if same else f"{stack.seq_len} queries, {stack.key_len} keys",
    }
    return [(name, str(what)) for name, what in facts.items() if what is not None]


def _in_script(text: str) -> str:
    """JSON that cannot end the element it stands in."""
    return text.replace("<", "\\u003c")


def _part(name: str) -> str:
    return files("posviz.outputs").joinpath(name).read_text(encoding="utf-8")

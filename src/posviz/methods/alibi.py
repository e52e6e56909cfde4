"""ALiBi: a straight line over distance, one slope per head."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from posviz.methods.base import Array, DistanceMethod, Found


def slopes(n_head: int, convention: str) -> list[float]:
    """The slope of each head.

    `geometric` is `2 ** (-8h/H)` for every H. `interleaved`, for an H that is no power of two, takes the slopes of
    the nearest lower power of two and fills up with every other slope of twice that; so they are not monotonic.
    """
    lower = 2 ** math.floor(math.log2(n_head))
    if convention == "geometric" or lower == n_head:
        return [2 ** (-8 * h / n_head) for h in range(1, n_head + 1)]
    return slopes(lower, "geometric") + slopes(2 * lower, "geometric")[::2][: n_head - lower]


class Alibi(DistanceMethod):
    name = "alibi"
    title = "ALiBi"
    drawn = "-m_h * d"
    reference = "Press et al. 2022, arXiv:2108.12409"
    spec = {"slopes": ("head",)}
    optional = frozenset({"slopes"})
    buffers = frozenset({"slopes"})
    options = {"slopes": "geometric"}
    choices = {"slopes": ("geometric", "interleaved")}

    @classmethod
    def recognise(cls, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> Found | None:
        if "slopes" not in shapes:
            return None
        return Found(cls.name, "the layer holds slopes", math.prod(shapes["slopes"]))

    @classmethod
    def unsaid(cls, n_head: int | None) -> list[str]:
        """For a power of two the two conventions agree."""
        return [] if n_head is None or n_head & (n_head - 1) == 0 else ["slopes"]

    def of_distance(self, p: Mapping[str, Array], d: Array, xp: Any) -> Array:
        stored = p.get("slopes")
        if stored is None:
            m = xp.asarray(slopes(self.n_head, self.option["slopes"]), dtype=xp.float32, device=d.device)
        else:
            m = stored
        return -m.reshape(-1, *[1] * d.ndim) * d

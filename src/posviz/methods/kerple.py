"""KERPLE: a learned kernel over distance, logarithmic or a power."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posviz.methods.base import Array, DistanceMethod, Found

LEAST = 0.01  # the original training code clamps before use, so a checkpoint can hold smaller values


def per_head(p: Array, d: Array) -> Array:
    """A parameter of one number per head, ready to broadcast against `[head, *d.shape]`."""
    return p.reshape(-1, *[1] * d.ndim)


class Kerple(DistanceMethod):
    name = "kerple"
    title = "KERPLE"
    drawn = "-p_h * log(1 + a_h * d)"
    reference = "Chi et al. 2022, arXiv:2205.09921"
    spec = {"bias_p": ("head", 1, 1), "bias_a": ("head", 1, 1)}

    @classmethod
    def recognise(cls, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> Found | None:
        hit = super().recognise(shapes, config)
        return hit and Found(hit.method, f"{hit.why} (so does kerple-power: --method names it)", hit.n_head)

    def initial(self, generator: Any) -> dict[str, Array]:
        import torch

        draw = torch.rand(2, self.n_head, 1, 1, generator=generator)
        return {"bias_p": 2 * draw[0], "bias_a": draw[1]}

    def of_distance(self, p: Mapping[str, Array], d: Array, xp: Any) -> Array:
        scale = xp.clip(per_head(p["bias_p"], d), LEAST, None)
        rate = xp.clip(per_head(p["bias_a"], d), LEAST, None)
        return -scale * xp.log(1 + rate * xp.abs(d))


class KerplePower(Kerple):
    name = "kerple-power"
    title = "KERPLE (power)"
    drawn = "-a_h * d ** p_h"

    @classmethod
    def recognise(cls, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> Found | None:
        """Never by names: they are those of the logarithmic kernel, which is the common one. Name it to get it."""
        return None

    def of_distance(self, p: Mapping[str, Array], d: Array, xp: Any) -> Array:
        power = xp.clip(per_head(p["bias_p"], d), LEAST, 2)
        scale = xp.clip(per_head(p["bias_a"], d), LEAST, None)
        away = xp.abs(d)
        # The gradient of 0 ** p is a NaN, so the diagonal goes through the logarithm of 1 and is set to 0.
        grown = xp.exp(power * xp.log(xp.where(away > 0, away, 1)))
        return xp.where(away > 0, -scale * grown, 0.0)

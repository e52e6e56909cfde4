"""A method's own tensors in a layer, whatever modules they sit in and whatever axes of length 1 they carry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posviz.checkpoint.opened import Checkpoint
from posviz.checkpoint.store import Shape
from posviz.methods.base import PositionalMethod


@dataclass(frozen=True)
class Located:
    """Where a method's parameters are, and the shapes they take: suffix -> tensor name, suffix -> shape."""

    names: dict[str, str]
    shapes: dict[str, Shape]
    shared: bool = False  # taken from the first layer, which lends them to all

    def read(self, checkpoint: Checkpoint) -> dict[str, np.ndarray]:
        return {suffix: checkpoint.read(name).reshape(self.shapes[suffix]) for suffix, name in self.names.items()}


def locate(checkpoint: Checkpoint, layer: int, method: type[PositionalMethod]) -> Located:
    """The method's parameters for this layer (from 0); missing ones are left out."""
    shared = not holds(checkpoint, layer, method) and _only_first(checkpoint, method)
    here = checkpoint.layer_shapes(0 if shared else layer)
    names = {suffix: here.name(suffix) for suffix in method.spec if suffix in here}
    shapes = {suffix: _fit(here[suffix], method.spec[suffix]) for suffix in names}
    return Located(names, shapes, shared)


def holds(checkpoint: Checkpoint, layer: int, method: type[PositionalMethod]) -> bool:
    """Whether the layer has everything that the method needs."""
    here = checkpoint.layer_shapes(layer)
    return all(suffix in here for suffix in method.required())


def _only_first(checkpoint: Checkpoint, method: type[PositionalMethod]) -> bool:
    """Whether the first layer lends its parameters to all."""
    return method.lent and [layer for layer in checkpoint.layers() if holds(checkpoint, layer, method)] == [0]


def _fit(found: Shape, expected: tuple[int | str, ...]) -> Shape:
    """The shape with axes of length 1 where the method has them: one number per head may be [H] or [1, H, 1, 1]."""
    if len(found) == len(expected):
        return found
    sizes = [n for n in found if n != 1]
    if len(sizes) != sum(e != 1 for e in expected):
        return found
    rest = iter(sizes)
    return tuple(1 if e == 1 else next(rest) for e in expected)

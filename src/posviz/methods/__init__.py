"""The registry: a name and where its method is written. A new method is one file here and one line below."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from posviz.errors import MethodError, unknown_name
from posviz.methods.base import Block, Found, PositionalMethod

__all__ = ["METHODS", "Block", "Found", "PositionalMethod", "get", "names", "recognise"]

METHODS: dict[str, str] = {
    "alibi": "alibi:Alibi",
    "t5": "t5:T5Bias",
    "kerple": "kerple:Kerple",
    "kerple-power": "kerple:KerplePower",
    "fire": "fire:Fire",
    "dapev2-kerple": "dapev2:DapeV2Kerple",
    "dapev2-alibi": "dapev2:DapeV2Alibi",
    "dapev2-fire": "dapev2:DapeV2Fire",
    "cable": "cable:Cable",
    "rope": "rope:Rope",
    "none": "none:NoPosition",
}


def names() -> list[str]:
    return list(METHODS)


def get(name: str) -> type[PositionalMethod]:
    """The method of this name."""
    if name not in METHODS:
        raise MethodError(unknown_name("method", name, METHODS))
    module, _, attribute = METHODS[name].partition(":")
    cls: type[PositionalMethod] = getattr(import_module(f"{__name__}.{module}"), attribute)
    return cls


def recognise(shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> list[Found]:
    """Every method that knows itself in a layer; a method whose parameters are a part of another's gives way."""
    found = {name: hit for name in METHODS if (hit := get(name).recognise(shapes, config))}
    return [
        hit
        for name, hit in found.items()
        if not any(get(name).required() < get(other).required() for other in found if other != name)
    ]

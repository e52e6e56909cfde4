"""posviz: see how a transformer encodes position.

The public names, each imported when it is first used:

- `capture(ckpt, **options)`: what one layer's heads see, as a `HeadStack`
- `record(model)`: the same for a module of your own, while you run it
- `HeadStack`, `load(path)`: the numbers of a capture, and a stored one read back
- `PosvizError`: what every error of posviz is
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "capture": "posviz.api",
    "load": "posviz.api",
    "record": "posviz.recording",
    "HeadStack": "posviz.stack",
    "PosvizError": "posviz.errors",
}

__all__ = ["HeadStack", "PosvizError", "__version__", "capture", "load", "record"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'posviz' has no attribute {name!r}")
    return getattr(import_module(_NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

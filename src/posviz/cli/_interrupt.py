"""Ctrl-C that is never lost."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Ctrl-C raises KeyboardInterrupt in the block as always; what it is given raises it again if it was lost.

    Python drops an exception that is raised while an object is let go or a weak reference dies, and says so on stderr.
    Drawing is full of both.
    """
    asked = False
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    def lost(what: Any) -> None:
        if not isinstance(what.exc_value, KeyboardInterrupt):
            hook(what)

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    if handler is not signal.default_int_handler:  # somebody wants it ignored, or has a way of their own
        yield check
        return
    signal.signal(signal.SIGINT, interrupted)
    sys.unraisablehook = lost
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook

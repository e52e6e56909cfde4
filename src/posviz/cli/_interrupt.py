"""Ctrl-C that is never lost, and waits where it must."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupt:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self._asked = self._held = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block that is done to its end: Ctrl-C is raised after it, also one that was lost before."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._asked:
            raise KeyboardInterrupt

    def handle(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if not self._held:
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Ctrl-C raises KeyboardInterrupt in the block as always.

    But Python drops an exception that is raised while an object is let go or a weak reference dies, and says so.
    Drawing is full of both.
    """
    interrupt = Interrupt()
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    if handler is not signal.default_int_handler:  # somebody wants it ignored, or has a way of their own
        yield interrupt
        return

    def lost(what: Any) -> None:
        if not isinstance(what.exc_value, KeyboardInterrupt):
            hook(what)

    signal.signal(signal.SIGINT, interrupt.handle)
    sys.unraisablehook = lost
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook

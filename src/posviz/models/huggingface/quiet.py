"""transformers reports on its work at length; what matters of it is said in our own notes and errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformers.utils import logging


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no warnings from transformers in the block."""
    talk: Any = logging
    verbosity, bar = talk.get_verbosity(), talk.is_progress_bar_enabled()
    talk.set_verbosity_error()
    talk.disable_progress_bar()
    try:
        yield
    finally:
        talk.set_verbosity(verbosity)
        if bar:
            talk.enable_progress_bar()

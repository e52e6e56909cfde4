"""The errors that a person may meet. Each message says what was found, what was expected and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PosvizError(Exception):
    """Something about the input is wrong; the command line prints the message as one line and exits with 1."""


class CheckpointError(PosvizError):
    """A checkpoint cannot be read, or does not hold what was asked of it."""


class MethodError(PosvizError):
    """A positional method is unknown, not recognised, or cannot give what was asked of it."""


class SequenceError(PosvizError):
    """The text or tokens do not make the sequence that was asked for."""


class CaptureError(PosvizError):
    """A model's attention could not be captured."""


class OutputError(PosvizError):
    """A result cannot be drawn or written."""


class ManifestError(PosvizError):
    """A batch manifest is wrong; the message names every place at once."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that nobody has: say it, suggest the nearest, list the rest."""
    names = sorted(known)
    plain = {each.lower(): each for each in names}  # "RoPE" is near to "rope"
    near = difflib.get_close_matches(name.lower(), plain, n=1, cutoff=0.5)
    hint = f"; did you mean {plain[near[0]]!r}?" if near else ";"
    return f"unknown {kind} {name!r}{hint} known: {', '.join(names)}"

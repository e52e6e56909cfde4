"""Text to train on: bytes, with the end of every file held out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from posviz.errors import SequenceError

HELD_OUT = 0.05
VALIDATION_WINDOWS = 64


class Corpus:
    """One or more text files as bytes; a batch depends on nothing but its seed, so that a run can be resumed."""

    def __init__(self, files: Sequence[Path], context: int) -> None:
        train, held = [], []
        for file in files:
            data = _read(file)
            kept = len(data) - max(context + 1, int(len(data) * HELD_OUT))
            if kept < context + 1:
                raise SequenceError(
                    f"{file} has {len(data)} bytes; expected at least {2 * (context + 1)} for a context of {context}: "
                    "give a longer text or a smaller --context"
                )
            train.append(data[:kept])
            held.append(data[kept:])
        self.names = [file.name for file in files]
        self.train = np.concatenate(train)
        self.held_out = np.concatenate(held)

    def batch(self, rows: int, length: int, seed: tuple[int, ...]) -> np.ndarray:
        """Random windows of the training text, int64 `[row, length]`."""
        starts = np.random.default_rng(seed).integers(0, len(self.train) - length + 1, size=rows)
        return self.train[starts[:, None] + np.arange(length)].astype(np.int64)

    def held_out_batches(self, rows: int, length: int) -> Iterator[np.ndarray]:
        """The same evenly spaced windows of the held-out text every time."""
        most = min(VALIDATION_WINDOWS, max(1, len(self.held_out) // length))
        starts = np.linspace(0, len(self.held_out) - length, most).astype(np.int64)
        for at in range(0, most, rows):
            yield self.held_out[starts[at : at + rows, None] + np.arange(length)].astype(np.int64)

    def unigram_loss(self) -> float:
        """What a model that knows only how common each byte is would lose on the held-out text, in nats."""
        counts = np.bincount(self.train, minlength=256) + 1.0
        return float(-np.log(counts / counts.sum())[self.held_out].mean())

    def fingerprint(self) -> str:
        return hashlib.sha256(self.train.tobytes() + self.held_out.tobytes()).hexdigest()


def _read(file: Path) -> np.ndarray:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise SequenceError(f"{file} cannot be read: {error.strerror or error}") from error
    if not data:
        raise SequenceError(f"{file} is empty; expected text to train on")
    return np.frombuffer(data, dtype=np.uint8)

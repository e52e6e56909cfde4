"""Arrays that a process leaves for another one of the same machine, in a file that the other maps."""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ALIGNED = 64  # bytes, as numpy's own arrays are


@dataclass(frozen=True)
class Lent:
    """Something whose arrays are in a file; small enough to be sent anywhere on the machine."""

    pickled: bytes
    file: Path
    parts: tuple[slice, ...]  # of the file, one for each array


def lend(thing: Any, folder: Path | None) -> Any:
    """The thing with its arrays in a file of `folder`, or just the thing if there is no folder, or no room in it."""
    if folder is None:
        return thing
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    parts = []
    try:
        handle, name = tempfile.mkstemp(dir=folder)
    except OSError:
        return thing
    try:
        with os.fdopen(handle, "wb") as file:
            for buffer in buffers:
                start = file.seek(-(-file.tell() // ALIGNED) * ALIGNED)
                file.write(buffer.raw())
                parts.append(slice(start, file.tell()))
    except OSError:
        Path(name).unlink()
        return thing
    return Lent(pickled, Path(name), tuple(parts))


@contextmanager
def borrowed(thing: Any) -> Iterator[Any]:
    """What `lend` was given. Its file is removed after use, so that a process that dies on the way can be replaced."""
    if not isinstance(thing, Lent):
        yield thing
        return
    try:
        yield pickle.loads(thing.pickled, buffers=_mapped(thing))
    finally:
        with suppress(OSError):  # where a mapped file cannot be removed, it goes with its folder
            thing.file.unlink()


def _mapped(lent: Lent) -> list[memoryview]:
    """The parts of its file, in memory of which changes stay in this process."""
    if not any(part.stop for part in lent.parts):  # nothing to map
        return [memoryview(bytearray()) for _ in lent.parts]
    with lent.file.open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    return [whole[part] for part in lent.parts]

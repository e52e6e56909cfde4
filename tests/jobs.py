"""Jobs for processes to do; in a module of their own, because the processes import it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def double(x: float) -> float:
    return 2 * x


def process_id() -> int:
    return os.getpid()


def environment(name: str) -> str | None:
    return os.environ.get(name)


def fail(message: str) -> None:
    raise ValueError(message)


class StubbornError(Exception):
    """An error that cannot be sent anywhere."""

    def __reduce__(self) -> str:
        raise TypeError("not to be pickled")


def fail_stubbornly() -> None:
    raise StubbornError("no way")


def unsendable() -> object:
    return lambda: None


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def work(folder: Path, name: str, seconds: float) -> list[str]:
    """Take a while, and say who was at work at the same time."""
    mine = folder / name
    mine.touch()
    time.sleep(seconds)
    beside = sorted(other.name for other in folder.iterdir() if other != mine)
    mine.unlink()
    return beside


def die_the_first_time(folder: Path, seconds: float) -> list[str]:
    tried = folder.with_suffix(".tried")
    if tried.exists():
        return work(folder, "again", seconds)
    tried.touch()
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def tell_and_sleep(told: Path, seconds: float) -> None:
    told.with_suffix(".part").write_text(str(os.getpid()))
    told.with_suffix(".part").rename(told)
    time.sleep(seconds)

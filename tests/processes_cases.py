"""Starting `posviz` as a person does, to send it signals or to give it a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

POSVIZ = [sys.executable, "-c", "from posviz.cli import main; main()"]
LONG = 120.0  # seconds after which something must have gone wrong


def start(*words: object, cwd: Path | None = None) -> subprocess.Popen[str]:
    """A command in a process group of its own, as a shell starts it."""
    return subprocess.Popen(
        [*POSVIZ, *map(str, words)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def until(there: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until something has happened while the process runs."""
    begun = time.monotonic()
    while not there():
        assert process.poll() is None, f"it ended by itself: {process.communicate()}"
        assert time.monotonic() - begun < LONG, "it did not come to that"
        time.sleep(0.005)


def signal_group(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """What Ctrl-C in a terminal does: every process of the group gets the signal."""
    os.killpg(process.pid, number)


def on_a_terminal(*words: object, cwd: Path | None = None) -> tuple[int, str]:
    """The exit code of a command and what it writes to a terminal, escape codes and all."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*POSVIZ, *map(str, words)], cwd=cwd, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    said = b""
    while select.select([ours], [], [], LONG)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    return process.wait(timeout=LONG), said.decode()

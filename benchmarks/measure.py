"""A whole command in a fresh process: its wall time and its peak memory, as the kernel counts them.

Nothing heavy may be imported into the process that measures: a child's peak begins with what its parent held when it
was started.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KILOBYTES = 1 if sys.platform == "darwin" else 1024  # what ru_maxrss counts in


@dataclass(frozen=True)
class Measured:
    """One run of one command."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def run(command: Sequence[str], folder: Path) -> Measured:
    """Run a command to its end in `folder`; one that fails ends the benchmark with what it said."""
    log = folder / "last-output.txt"
    with log.open("wb") as said:
        begun = time.perf_counter()
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=_quiet())
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)  # it is gone; subprocess must not wait for it again
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {child.returncode}:\n{log.read_text(errors='replace')}")
    return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * KILOBYTES)


def best(runs: Sequence[Measured]) -> Measured:
    """The least of everything: whatever else the machine did can only have added to it."""
    return Measured(
        min(each.seconds for each in runs),
        min(each.cpu_seconds for each in runs),
        min(each.peak_bytes for each in runs),
    )


def _quiet() -> dict[str, str]:
    """No network, no progress bars: neither we nor the baselines should be timed for those."""
    return os.environ | {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "TOKENIZERS_PARALLELISM": "false"}

"""What was measured, as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.claims import Claim
from benchmarks.commands import FLOOR, FLOOR_BIAS, HAND
from benchmarks.measure import Measured


def table(measured: Mapping[str, Measured]) -> str:
    """A Markdown table: every command with its time and memory, as they are and against the baselines."""
    hand, floors = measured[HAND], {True: measured[FLOOR], False: measured[FLOOR_BIAS]}
    lines = [
        "| command | time | memory | time, hand-written = 1 | memory, hand-written = 1 | time, floor = 1 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for what, one in measured.items():
        told = f"| {what} | {one.seconds:.2f} s | {one.peak_bytes / 1e6:.0f} MB |"
        if what.startswith("render ") and ".npz" not in what:
            floor = floors[runs_a_model(what)]
            told += f" {one.seconds / hand.seconds:.2f} | {one.peak_bytes / hand.peak_bytes:.2f} |"
            told += f" {one.seconds / floor.seconds:.2f} |"
        else:
            told += " | | |"
        lines.append(told)
    return "\n".join(lines)


def runs_a_model(what: str) -> bool:
    """Whether a rendering needs a forward pass, and so the floor with one."""
    return not re.fullmatch(r"render (alibi|t5|kerple|kerple-power|fire) bias", what)


def as_json(measured: Mapping[str, Measured], claims: Iterable[Claim]) -> dict[str, Any]:
    return {
        "machine": machine(),
        "measured": {what: asdict(one) for what, one in measured.items()},
        "claims": [
            asdict(claim) | {"found": claim.found(measured), "holds": claim.holds(measured)} for claim in claims
        ],
    }


def machine() -> dict[str, Any]:
    """Where it was measured."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("posviz", "torch", "transformers", "matplotlib", "numpy", "typer")},
    }


def told_machine(known: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {known[name]}" for name in ("torch", "transformers", "matplotlib"))
    gigabytes = known["memory_bytes"] / 2**30
    return (
        f"{known['processor']}, {known['cores']} cores, {gigabytes:.0f} GB, {known['system']}, "
        f"Python {known['python']}, {packages}"
    )


def _processor() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or "unknown"

"""`python -m benchmarks.section`: write what was measured last into the README."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.claims import BATCH, RENDERS, long_name
from benchmarks.commands import FLOOR_BIAS, FLOOR_NPZ, HAND, TYPER, name
from benchmarks.measure import Measured
from benchmarks.table import table, told_machine

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- speed -->\n", "<!-- /speed -->\n"

# What it is called, what was measured, and what it is compared with.
CHOSEN = [
    ("render kerple (alibi, t5, fire alike)", name("kerple"), HAND),
    ("the same", name("kerple"), FLOOR_BIAS),
    ("render rope", name("rope"), HAND),
    ("render cable", name("cable"), HAND),
    ("render dapev2-kerple", name("dapev2-kerple"), HAND),
    ("render a LLaMA folder", "render LLaMA folder", HAND),
    ("render --from X.npz", "render --from .npz", FLOOR_NPZ),
    ("posviz --help", "--help", TYPER),
    ("batch of 20 rope figures", BATCH, RENDERS),
    ("info on a 20 GB file", "info, 20 GB file", None),
]


def section(results: Mapping[str, Any]) -> str:
    """The README's part about speed, from the JSON of a run."""
    measured = {what: Measured(**one) for what, one in results["measured"].items()}
    hand, plain, seeing = measured[HAND], measured[long_name("kerple", 16384)], measured[long_name("rope", 16384)]
    told = f"{hand.seconds:.1f} s, {_megabytes(hand)}"
    lines = [
        _paragraph(
            f"""Whole commands in fresh processes on checkpoints of GPT-2 Small's shape, 512 positions; memory is of
            the largest process. *Hand-written* is the usual script around `output_attentions=True` ({told}); the
            *floor* is the least that a program can do. `make bench` measures all of it again;
            [benchmarks/](benchmarks/README.md) says what the time is spent on. Measured on:
            {told_machine(results["machine"])}."""
        ),
        "| command | time | memory | against | time ratio | memory ratio |",
        "|---|---|---|---|---|---|",
        *(_row(called, measured[what], against, measured) for called, what, against in CHOSEN),
        "",
        _paragraph(
            f"""Memory stays flat in the length: 16,384 positions of twelve heads take {plain.peak_bytes / 1e9:.1f} GB
            for KERPLE ({plain.seconds:.1f} s) and {seeing.peak_bytes / 1e9:.1f} GB for RoPE ({seeing.seconds:.1f} s),
            where the scores alone would be 12.9 GB."""
        ),
        "<details><summary>Every method and quantity, and every length</summary>",
        "",
        table(measured),
        "",
        "</details>",
    ]
    return "\n".join(lines) + "\n"


def _row(called: str, one: Measured, against: str | None, measured: Mapping[str, Measured]) -> str:
    told = f"| {called} | {one.seconds:.2f} s | {_megabytes(one)} |"
    if against is None:
        return told + " | | |"
    other = measured[against]
    return told + f" {against} | {one.seconds / other.seconds:.2f} | {one.peak_bytes / other.peak_bytes:.2f} |"


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), width=124, break_long_words=False, break_on_hyphens=False) + "\n"


def _megabytes(one: Measured) -> str:
    return f"{one.peak_bytes / 1e6:.0f} MB"


def main() -> None:
    before, _, rest = README.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    found = section(json.loads((HERE / "results.json").read_text()))
    README.write_text(before + BEGIN + found + END + after)


if __name__ == "__main__":
    main()

"""What is measured, against what, and what is demanded of the ratio."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

BASELINES = Path(__file__).parent / "baselines"
POSVIZ = [sys.executable, "-c", "from posviz.cli import main; main()"]


@dataclass(frozen=True)
class Demand:
    """One line of the table: a command of ours, a baseline, and the ratios that must be reached."""

    what: str
    ours: str
    baseline: str
    time: float  # our time over the baseline's, at most
    memory: float | None = None  # the same for peak memory


DEMANDS = [
    Demand("render kerple (no tokens)", "kerple", "hand-written", 1 / 4, 1 / 3),
    Demand("render kerple (no tokens)", "kerple", "floor, bias", 1.25),
    Demand("render rope", "rope", "hand-written", 1 / 2.2, 0.7),
    Demand("render cable", "cable", "hand-written", 1 / 2.2, 0.7),
    Demand("render dapev2-kerple", "dapev2-kerple", "hand-written", 1 / 1.5, 0.7),
    Demand("render a LLaMA folder", "llama", "hand-written", 1 / 1.6),
    Demand("render --from X.npz", "npz", "floor, npz", 1.25),
    Demand("posviz --help", "help", "two Typer commands", 1.6),
    Demand("batch of 20 rope figures", "batch", "20 renders", 1 / 6),
]


def commands(folder: Path) -> dict[str, list[str]]:
    """Every command that is run once a round, by the name it has in the table."""

    def baseline(name: str, *words: str) -> list[str]:
        return [sys.executable, str(BASELINES / f"{name}.py"), *words]

    def render(checkpoint: str, *words: str) -> list[str]:
        return [*POSVIZ, "render", "--ckpt", str(folder / checkpoint), *words, "--out", str(folder / "ours.png")]

    out, stored = str(folder / "theirs.png"), str(folder / "stored.npz")
    return {
        "hand-written": baseline("handwritten", str(folder / "gpt2"), out),
        "floor": baseline("floor", str(folder / "small-rope.safetensors"), out),
        "floor, bias": baseline("floor_bias", str(folder / "small-kerple.safetensors"), out),
        "floor, npz": baseline("floor_npz", stored, out),
        "two Typer commands": baseline("two_commands", "--help"),
        "reading headers": baseline("headers", str(folder / "sparse.safetensors")),
        "kerple": render("small-kerple.safetensors"),
        "rope": render("small-rope.safetensors", "--random-tokens"),
        "cable": render("small-cable.safetensors", "--random-tokens"),
        "dapev2-kerple": render("small-dapev2-kerple.safetensors", "--random-tokens"),
        "llama": render("llama", "--random-tokens"),
        "npz": [*POSVIZ, "render", "--from", stored, "--out", str(folder / "ours.png")],
        "help": [*POSVIZ, "--help"],
        "info": [*POSVIZ, "info", "--ckpt", str(folder / "sparse.safetensors")],
    }


def capture(folder: Path) -> list[str]:
    """The stored stack that two of the commands draw."""
    words = ["--ckpt", str(folder / "small-rope.safetensors"), "--random-tokens", "--out", str(folder / "stored.npz")]
    return [*POSVIZ, "capture", *words]

"""Every command that is measured, by name: whole programs with all their words."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

POSVIZ = str(Path(sys.executable).with_name("posviz"))
BASELINES = Path(__file__).parent / "baselines"
PLAIN = ("alibi", "t5", "kerple", "kerple-power", "fire")  # the same for every sequence
SEEING = ("rope", "cable", "dapev2-kerple")  # depend on the tokens
USUAL = {"rope": "scores"}  # what is drawn if nothing is said; else the bias
HAND, FLOOR, FLOOR_BIAS, FLOOR_NPZ = "hand-written", "floor", "floor without a forward pass", "floor without torch"
TYPER, HEADERS = "two-command Typer app --help", "reading a header"


def baselines(folder: Path) -> dict[str, list[str]]:
    """What we are compared with."""
    return {
        HAND: _script("handwritten", folder / "gpt2", folder / "baseline.png"),
        FLOOR: _script("floor", checkpoint(folder, "rope"), folder / "baseline.png"),
        FLOOR_BIAS: _script("floor_bias", checkpoint(folder, "kerple"), folder / "baseline.png"),
        FLOOR_NPZ: _script("floor_npz", folder / "rope.npz", folder / "baseline.png"),
        TYPER: _script("two_commands", "--help"),
        HEADERS: _script("headers", folder / "sparse.safetensors"),
    }


def claimed(folder: Path) -> dict[str, list[str]]:
    """What something is claimed of."""
    return {
        **{name(method): render(folder, method) for method in (*PLAIN, *SEEING)},
        "render LLaMA folder": [*_render(folder), "--ckpt", str(folder / "llama"), "--random-tokens"],
        "render --from .npz": [*_render(folder), "--from", str(folder / "rope.npz")],
        "--help": [POSVIZ, "--help"],
        "info, 20 GB file": [POSVIZ, "info", "--ckpt", str(folder / "sparse.safetensors")],
    }


def others(folder: Path) -> dict[str, list[str]]:
    """The other quantities of each method: once each, for the table."""
    return {name(method, quantity): render(folder, method, quantity) for method, quantity in _other_quantities()}


def _other_quantities() -> Iterator[tuple[str, str]]:
    for method in (*PLAIN, *SEEING):
        for quantity in ("scores", "content", "attention"):
            if USUAL.get(method) != quantity:
                yield method, quantity


def name(method: str, quantity: str | None = None) -> str:
    return f"render {method} {quantity or USUAL.get(method, 'bias')}"


def render(folder: Path, method: str, quantity: str | None = None) -> list[str]:
    said = [*_render(folder), "--ckpt", str(checkpoint(folder, method)), "--method", method]
    said += ["--quantity", quantity] if quantity else []
    return said if method in PLAIN and quantity is None else [*said, "--random-tokens"]


def long_render(folder: Path, method: str, length: int) -> list[str]:
    said = [*_render(folder), "--ckpt", str(checkpoint(folder, method, "long")), "--method", method]
    said += ["--seq-len", str(length)]
    return said if method in PLAIN else [*said, "--random-tokens"]


def checkpoint(folder: Path, method: str, kind: str = "small") -> Path:
    return folder / f"{kind}-{method}.safetensors"


def capture(folder: Path) -> list[str]:
    """What `render --from` then draws."""
    said = ["--ckpt", str(checkpoint(folder, "rope")), "--random-tokens", "--out", str(folder / "rope.npz")]
    return [POSVIZ, "capture", *said]


def make_checkpoints(folder: Path) -> list[str]:
    wanted = ["folders", "sparse", *(f"small:{method}" for method in (*PLAIN, *SEEING))]
    wanted += [f"long:{method}" for method in (*PLAIN, "rope", "cable")]
    return [sys.executable, str(Path(__file__).with_name("checkpoints.py")), str(folder), *wanted]


def _render(folder: Path) -> list[str]:
    return [POSVIZ, "render", "--out", str(folder / "posviz.png")]


def _script(baseline: str, *words: object) -> list[str]:
    return [sys.executable, str(BASELINES / f"{baseline}.py"), *map(str, words)]

"""Twenty figures of one checkpoint: every layer asked for, some heads, several styles."""

from __future__ import annotations

from pathlib import Path

FIGURES: list[dict[str, str | int | bool]] = [
    *({"layer": layer} for layer in (2, 4, 6, 8, 10, 12)),
    *({"heads": heads} for heads in ("1-4", "5-8", "9-12", "1,6,12")),
    *({"layer": 6, "heads": heads} for heads in ("1-6", "7-12")),
    *({"cmap": cmap} for cmap in ("magma", "cividis")),
    {"diverging": True},
    {"diverging": True, "layer": 6},
    {"scale": "shared"},
    {"scale": "shared", "layer": 6},
    {"quantity": "attention", "log": True},
    {"quantity": "content"},
]


def manifest(checkpoint: Path, folder: Path) -> str:
    """The figures as a batch's TOML."""
    lines = ["[defaults]", f'ckpt = "{checkpoint}"', "random-tokens = true"]
    for number, figure in enumerate(FIGURES, start=1):
        lines += ["[[figure]]", f'name = "{number}"', f'out = "{folder / str(number)}.png"']
        lines += [f"{name} = {_toml(value)}" for name, value in figure.items()]
    return "\n".join(lines) + "\n"


def words(number: int, checkpoint: Path, out: Path) -> list[str]:
    """One of the figures as the words of a `posviz render`."""
    said = ["render", "--ckpt", str(checkpoint), "--random-tokens", "--out", str(out)]
    for name, value in FIGURES[number].items():
        said += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return said


def _toml(value: str | int | bool) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()

"""The paper's set: Figures 11 to 15 by number and method, with KERPLE and CABLE beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from posviz.checkpoint import open_checkpoint, resolve
from posviz.errors import CheckpointError, PosvizError
from posviz.manifest import Figure
from posviz.options import RenderRequest

NAMES = {
    "dapev2-kerple": "figure-11-dapev2-kerple",
    "alibi": "figure-12-alibi",
    "fire": "figure-13-fire",
    "t5": "figure-14-t5",
    "rope": "figure-15-rope",
    "kerple": "kerple",
    "cable": "cable",
}


def paper_set(out_dir: Path, ckpt_dir: Path | None = None) -> list[Figure]:
    """The figures, from the bundled checkpoints or from those of a folder, which tell their methods themselves."""
    found: Mapping[str, Path | None] = dict.fromkeys(NAMES) if ckpt_dir is None else checkpoints_in(ckpt_dir)
    return [
        Figure(
            NAMES[method],
            RenderRequest(
                method=method if path is None else None,
                ckpt=None if path is None else str(path),
                out=(out_dir / f"{NAMES[method]}.png", out_dir / f"{NAMES[method]}.pdf"),
            ),
        )
        for method, path in sorted(found.items(), key=lambda item: list(NAMES).index(item[0]))
    ]


def checkpoints_in(folder: Path) -> dict[str, Path]:
    """The checkpoint of each of the paper's methods in a folder."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no folder; expected one that holds a checkpoint per method")
    found: dict[str, Path] = {}
    passed: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix not in (".safetensors", ".pt", ".pth", ".bin"):
            continue
        try:
            method = resolve(open_checkpoint(path)).method
        except PosvizError as error:
            passed.append(f"{path.name}: {error}")
            continue
        if method in found:
            raise CheckpointError(
                f"{found[method].name} and {path.name} in {folder} are both of {method}; expected one"
            )
        if method in NAMES:
            found[method] = path
    if not found:
        why = f" ({'; '.join(passed)})" if passed else ""
        raise CheckpointError(f"{folder} holds no checkpoint of {', '.join(NAMES)}{why}")
    return found

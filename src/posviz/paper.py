"""The paper's set: Figures 11 to 15 by number and method, with KERPLE and CABLE beside them."""

from __future__ import annotations

from pathlib import Path

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
WEIGHTS = (".safetensors", ".pt", ".pth", ".bin")


def paper_set(out_dir: Path, ckpt_dir: Path | None = None) -> tuple[list[Figure], list[str]]:
    """The figures, from the bundled checkpoints or from those of a folder; and what there is to say about it."""
    if ckpt_dir is None:
        return [_figure(name, out_dir, method=method) for method, name in NAMES.items()], []
    found, notes = checkpoints_in(ckpt_dir)
    return [_figure(NAMES[method], out_dir, ckpt=str(found[method])) for method in NAMES if method in found], notes


def _figure(name: str, out_dir: Path, ckpt: str | None = None, method: str | None = None) -> Figure:
    files = tuple(out_dir / f"{name}{suffix}" for suffix in (".png", ".pdf"))
    return Figure(name, RenderRequest(ckpt=ckpt, method=method, out=files))


def checkpoints_in(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """The checkpoint of each of the paper's methods in a folder, told by itself; and what was passed over, and why."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no folder; expected one that holds a checkpoint per method")
    found: dict[str, Path] = {}
    passed: list[str] = []
    for path in _candidates(folder):
        try:
            method = _method(path)
        except PosvizError as error:
            passed.append(f"{path.name} is left out: {error}")
            continue
        if method in found:
            raise CheckpointError(
                f"{found[method].name} and {path.name} in {folder} are both of {method}; expected one of each method"
            )
        if method in NAMES:
            found[method] = path
        else:
            passed.append(f"{path.name} is left out: {method} is not in the paper's set; draw it with render")
    if not found:
        why = f" ({'; '.join(passed)})" if passed else ""
        raise CheckpointError(f"{folder} holds no checkpoint of {', '.join(NAMES)}{why}")
    missing = [method for method in NAMES if method not in found]
    return found, passed + ([f"{folder} holds no checkpoint of {', '.join(missing)}"] if missing else [])


def _candidates(folder: Path) -> list[Path]:
    """Files of weights, and folders; nothing hidden."""
    there = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [path for path in there if path.is_dir() or path.suffix in WEIGHTS]


def _method(path: Path) -> str:
    from posviz.checkpoint import open_checkpoint, resolve

    return resolve(open_checkpoint(path)).method

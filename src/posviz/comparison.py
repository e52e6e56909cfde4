"""Several models side by side: checkpoints, stored captures or methods, head by head."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from posviz import methods
from posviz.errors import CheckpointError, PosvizError, unknown_name
from posviz.options import CaptureRequest, CompareRequest, plain_path
from posviz.stack import HeadStack


@dataclass(frozen=True)
class Side:
    """One of the things compared."""

    label: str
    stack: HeadStack


def open_sides(sources: Sequence[str], request: CompareRequest) -> list[Side]:
    """Each source as a stack, under a label that tells it from the others."""
    plain = CaptureRequest(**{f.name: getattr(request, f.name) for f in fields(CaptureRequest)})
    stacks = [_open(source, plain) for source in sources]
    return [Side(label, stack) for label, stack in zip(_labels(sources), stacks, strict=True)]


def _open(source: str, request: CaptureRequest) -> HeadStack:
    from posviz.session import Session

    path = Path(source).expanduser()
    if path.suffix == ".npz" or (path.suffix == ".safetensors" and _is_capture(path)):
        from posviz.outputs.arrays import load_stack

        stack = load_stack(path)
        heads = request.head_numbers()
        return stack if heads is None else stack.select(heads)
    if not path.exists() and "/" not in source and not path.suffix:
        if source not in methods.names():
            raise PosvizError(
                f"{source} is no file, and as a method: {unknown_name('method', source, methods.names())}"
            )
        asked = replace(request, method=source)
    else:
        asked = replace(request, ckpt=source)
    return Session([asked]).stack(asked, profile=True)


def _is_capture(path: Path) -> bool:
    if not path.is_file():
        return False
    from posviz.checkpoint import open_checkpoint

    return {"values", "heads"} <= set(open_checkpoint(path).tensors)


def _labels(sources: Sequence[str]) -> list[str]:
    """The shortest ends of the paths that differ."""
    parts = [Path(source).with_suffix("").parts for source in sources]
    for depth in range(1, max(len(p) for p in parts) + 1):
        labels = ["/".join(p[-depth:]) for p in parts]
        if len(set(labels)) == len(labels):
            return labels
    return [f"{label} ({number})" for number, label in enumerate(labels, start=1)]


def steps_in(folder: Path) -> list[tuple[int, Path]]:
    """A training run's checkpoints in the order of their steps, by their headers or the numbers in their names."""
    from posviz.checkpoint import open_checkpoint

    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no folder; expected one that holds the checkpoints of a training run")
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".safetensors", ".pt", ".pth"):
            continue
        step = _step(path.stem, open_checkpoint(path).config)
        if step is None:
            raise CheckpointError(f"{path} does not say its step; expected it in the header, or a number in the name")
        found.setdefault(step, path)  # the final checkpoint may repeat the last snapshot
    if len(found) < 2:
        raise CheckpointError(f"{folder} holds {len(found)} checkpoints; expected at least two steps of a training run")
    return sorted(found.items())


def _step(stem: str, config: dict[str, Any]) -> int | None:
    training = (config.get("notes") or {}).get("training") if isinstance(config.get("notes"), dict) else None
    if isinstance(training, dict) and isinstance(training.get("steps"), int):
        return int(training["steps"])
    numbers = re.findall(r"\d+", stem)
    return int(numbers[-1]) if numbers else None


def default_out(sources: Sequence[str], suffix: str = ".png") -> Path:
    return Path("figures") / ("compare-" + "-".join(label.replace("/", "-") for label in _labels(sources)) + suffix)


def plain_sources(sources: Sequence[str]) -> list[str]:
    """Sources as a recipe keeps them: files by their whole path."""
    return [plain_path(Path(s)) if Path(s).expanduser().exists() else s for s in sources]

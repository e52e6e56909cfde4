"""Small projects to draw: checkpoints of a few methods, and manifests over them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image
from small_models import config_of, model_of, saved

from posviz.batch import Result, draw_batch
from posviz.executors import Here, Place
from posviz.manifest import Figure
from posviz.options import RenderRequest
from posviz.outputs import read_recipe

METHODS = ("kerple", "rope", "cable", "t5")


def checkpoint(path: Path, method: str, seed: int = 1, layers: int = 2) -> Path:
    """Two narrow heads; a figure of it is drawn in a moment."""
    return saved(model_of(config_of(method, n_layer=layers, n_head=2, n_embd=8, block_size=32), seed), path)


def figure(name: str, out: Path | str, **options: Any) -> Figure:
    return Figure(name, RenderRequest(**{"seq_len": 16, "dpi": 30.0, "out": (Path(out),), **options}))


def manifest(folder: Path, figures: Iterable[dict[str, Any]], **defaults: Any) -> Path:
    """A manifest with these tables, written into the folder."""
    path = folder / "figures.toml"
    tables = [("[defaults]", {"seq-len": 16, "dpi": 30.0, **defaults}), *(("[[figure]]", each) for each in figures)]
    path.write_text("\n".join("\n".join([head, *map(_line, table.items())]) for head, table in tables))
    return path


def _line(item: tuple[str, Any]) -> str:
    key, value = item
    if isinstance(value, bool):
        return f"{key} = {str(value).lower()}"
    return f"{key} = {value!r}"  # text and lists of it are written alike in Python and TOML


def twenty(folder: Path) -> Path:
    """Twenty figures over four checkpoints, five of each."""
    for method in METHODS:
        checkpoint(folder / f"{method}.safetensors", method)
    shown = ({"layer": 1}, {"layer": 2}, {"heads": "1"}, {"cmap": "magma"}, {"title": "Five"})
    return manifest(
        folder,
        (
            {"name": f"{method}-{n}", "ckpt": f"{method}.safetensors", "out": f"out/{method}-{n}.png", **options}
            for method in METHODS
            for n, options in enumerate(shown, start=1)
        ),
    )


def pictures(folder: Path) -> list[Path]:
    """The figures that are there; what is hidden is not finished."""
    return sorted(path for path in folder.glob("*.png") if not path.name.startswith("."))


def whole(path: Path) -> bool:
    """Whether a picture can be read to its last pixel and says where it came from."""
    with Image.open(path) as picture:
        picture.load()
    return "inputs" in read_recipe(path)


class HereWithContext:
    """Opens the executor that runs jobs at once, and counts the jobs."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, figures: int) -> HereWithContext:
        self.asked.append(figures)
        return self

    def __enter__(self) -> Place:
        return Place(Here(), 1)

    def __exit__(self, *_: object) -> None:
        pass


def draw(figures: list[Figure], **options: Any) -> dict[str, Result]:
    """Draw here and now; what became of each figure is the same in the end as it was told on the way."""
    told: list[Result] = []
    results = draw_batch(figures, HereWithContext(), told.append, **options)
    assert sorted(told, key=str) == sorted(results, key=str)
    assert [result.name for result in results] == [each.name for each in figures]
    return {result.name: result for result in results}


def states(figures: list[Figure], **options: Any) -> dict[str, str]:
    return {name: result.status for name, result in draw(figures, **options).items()}


def project_in(folder: Path) -> Path:
    """A checkpoint and a text."""
    folder.mkdir()
    checkpoint(folder / "cable.safetensors", "cable")
    (folder / "words.txt").write_text("A line that is long enough for sixteen bytes, and then some more of them.")
    return folder


def of(project: Path, **options: Any) -> Figure:
    """A figure of that project."""
    usual = {"ckpt": str(project / "cable.safetensors"), "text_file": project / "words.txt"}
    return figure("f", project / "f.png", **{**usual, **options})

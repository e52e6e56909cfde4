"""Results as files: one module per kind of file, found by the suffix and imported on use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posviz.errors import OutputError, unknown_name
from posviz.outputs.atomic import probe, replacing
from posviz.outputs.reasons import cannot_read
from posviz.stack import HeadStack

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from posviz.draw.grid import Sheet
    from posviz.draw.look import Look

FIGURES = {".png": "png", ".pdf": "pdf", ".svg": "svg"}  # suffix -> module with write() and read()
PAGES = {".html": "page"}  # the same for kinds that are made of a stack, not of a figure
ANIMATIONS = {".gif": "gif"}  # the same for kinds that are made of several stacks
ARRAYS = (".npz", ".safetensors")


def can_write(path: Path, suffixes: Iterable[str] | None = None) -> Path:
    """The path, after checking that a result can be written there: to be called before a long job.

    Raises OutputError for a suffix that is not among `suffixes` (default: all that `save` can make), a folder, or a
    place where nothing can be created. Creates nothing.
    """
    path = Path(path)
    _known(path, tuple(suffixes or (*FIGURES, *PAGES)))
    probe(path)
    return path


def save(stack: HeadStack, look: Look, path: Path, recipe: Mapping[str, Any]) -> Path:
    """Draw a stack into a file; the suffix says which kind."""
    return save_all(stack, look, [path], recipe)[0]


def save_all(
    stack: HeadStack, look: Look, paths: Sequence[Path], recipe: Mapping[str, Any], sheet: Sheet | None = None
) -> list[Path]:
    """The same drawing as several files; the figure is drawn once, on a sheet that may have been used before."""
    paths = [can_write(path) for path in paths]
    figure = None
    for path in paths:
        if path.suffix.lower() in PAGES:
            _module(path).save_page(stack, path, look, recipe)
            continue
        if figure is None:
            from posviz.draw.grid import Sheet

            figure = (sheet or Sheet()).draw(stack, look)
        save_figure(figure, path, recipe)
    return paths


def save_figure(figure: Figure, path: Path, recipe: Mapping[str, Any]) -> Path:
    """Write any figure with its recipe inside; the same figure and recipe make the same bytes."""
    from posviz.draw.style import paper_style

    path = Path(path)
    _known(path, tuple(FIGURES))
    with replacing(path) as temporary, paper_style():
        _module(path).write(figure, temporary, recipe)
    return path


def read_recipe(path: Path) -> dict[str, Any]:
    """The recipe that a figure carries; of a stored stack, what is known about it."""
    path = Path(path)
    suffix = _known(path, (*FIGURES, *PAGES, *ANIMATIONS, *ARRAYS))
    try:
        if suffix in ARRAYS:
            from posviz.outputs.arrays import read_meta

            return read_meta(path)
        from posviz.outputs.recipes import from_text

        recipe = from_text(_module(path).read(path))
    except OSError as error:
        raise OutputError(cannot_read(path, error)) from error
    if recipe is None:
        raise OutputError(f"{path} carries no recipe; expected a figure that posviz made, with its metadata kept")
    return recipe


def _module(path: Path) -> Any:
    """The module for a kind of file, imported when it is needed."""
    return import_module(f"{__name__}.{(FIGURES | PAGES | ANIMATIONS)[path.suffix.lower()]}")


def _known(path: Path, suffixes: tuple[str, ...]) -> str:
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise OutputError(f"{path}: {unknown_name('kind of file', suffix or path.name, suffixes)}")
    return suffix

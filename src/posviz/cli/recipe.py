"""`posviz recipe`: where a figure came from, and whether it can be drawn again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from posviz.cli import app


@app.command("recipe")
def recipe(
    figure: Annotated[Path, typer.Argument(help="A figure that posviz made.", metavar="FIGURE")],
    check: Annotated[bool, typer.Option("--check", help="Draw it again and compare the pixels.")] = False,
    ckpt: Annotated[
        str | None, typer.Option(help="With --check: where the checkpoint lies now.", metavar="TEXT")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print how a figure was made, or check that it can be made again."""
    import json

    from posviz.again import as_manifest
    from posviz.outputs import read_recipe

    found = read_recipe(figure)
    if check:
        _check(figure, found, ckpt)
        return
    if as_json:
        print(json.dumps(found, indent=2))
        return
    source = found.get("checkpoint") or {}
    print(f"# posviz {found.get('posviz')}, from {source.get('name')}, sha256 {source.get('sha256')}")
    print(found.get("command_line"))
    if found.get("command") == "render":
        print()
        print(as_manifest(figure.stem, found["options"]))


def _check(figure: Path, found: dict[str, Any], ckpt: str | None) -> None:
    import io
    import tempfile
    from contextlib import redirect_stderr, redirect_stdout

    from posviz import __version__
    from posviz.again import compare_files, words_for

    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / f"again{figure.suffix}"
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):  # what it says was said the first time
            app(words_for(found, again, ckpt), standalone_mode=False)
        part = found.get("part") or ""
        differs = compare_files(figure, again.with_name(again.stem + part + again.suffix))
    if differs is None:
        print(f"{figure}: the same, drawn again by posviz {__version__}")
        return
    print(f"{figure}: {differs} (made by posviz {found.get('posviz')}, drawn again by {__version__})")
    raise typer.Exit(1)

"""`posviz info`: what a checkpoint is, from its headers alone."""

from __future__ import annotations

import typer

from posviz.cli import app


@app.command("info")
def info(
    ckpt: str = typer.Option(..., "--ckpt", help="Checkpoint: a file or a folder."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Tell what a checkpoint is, from its headers alone."""
    import json

    from posviz.checkpoint import describe, open_checkpoint

    facts = describe(open_checkpoint(ckpt))
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    for name, value in facts.items():
        shown = "-" if value is None else f"{value:,}" if isinstance(value, int) else value
        if isinstance(value, (dict, list)):
            shown = json.dumps(value)
        print(f"{name.replace('_', ' '):<12} {shown}")

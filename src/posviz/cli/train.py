"""`posviz train`: a small checkpoint of any method, from plain text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posviz.cli import app
from posviz.cli._say import wrote

if TYPE_CHECKING:
    from posviz.training_run import TrainingRun


@app.command("train")
def train(
    method: Annotated[str, typer.Option(help="Positional method to train with.", metavar="TEXT")],
    text_file: Annotated[list[Path], typer.Option(help="Text to train on; may repeat.", metavar="FILE")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Checkpoint to write.", metavar="FILE")],
    steps: Annotated[int, typer.Option(help="Optimizer steps.", metavar="N")] = 1000,
    layers: Annotated[int, typer.Option(help="Layers.", metavar="N")] = 4,
    heads: Annotated[int, typer.Option(help="Heads of each layer.", metavar="N")] = 12,
    width: Annotated[int, typer.Option(help="Width of the residual stream.", metavar="N")] = 192,
    context: Annotated[int, typer.Option(help="Positions of a training sequence.", metavar="N")] = 512,
    batch: Annotated[int, typer.Option(help="Sequences of a step.", metavar="N")] = 8,
    lr: Annotated[float, typer.Option(help="Highest learning rate.", metavar="X")] = 2e-3,
    seed: Annotated[int, typer.Option(help="Seed of weights and batches.", metavar="N")] = 0,
    bf16: Annotated[bool, typer.Option(help="Compute in bfloat16 where that is safe.", show_default=False)] = True,
    alibi_slopes: Annotated[str, typer.Option(help="geometric or interleaved.", metavar="TEXT")] = "geometric",
    rope_pairing: Annotated[str, typer.Option(help="halves or neighbours.", metavar="TEXT")] = "halves",
    fire_init_l: Annotated[float, typer.Option(help="FIRE's threshold at the start, in positions.", metavar="X")] = 512,
    save_dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16.", metavar="TEXT")] = "float32",
    snapshot_every: Annotated[int, typer.Option(help="Also keep a checkpoint every N steps.", metavar="N")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    threads: Annotated[int | None, typer.Option(help="CPU threads.", metavar="N")] = None,
) -> None:
    """Train a small byte-level GPT with a positional method.

    The end of each text is held out for validation. Ctrl-C saves what is there; the same command with --resume goes
    on, and ends with the same weights as a run that was never interrupted.
    """
    from posviz.train import Plan
    from posviz.training_run import TrainingRun, options_for

    plan = Plan(
        method=method,
        steps=steps,
        layers=layers,
        heads=heads,
        width=width,
        context=context,
        batch=batch,
        lr=lr,
        seed=seed,
        bf16=bf16,
        method_options=options_for(method, slopes=alibi_slopes, pairing=rope_pairing, init_L=fire_init_l),
    )
    run = TrainingRun(plan, text_file, out, dtype=save_dtype, snapshot_every=snapshot_every, threads=threads)
    _go(run, resume)


def _go(run: TrainingRun, resume: bool) -> None:
    stopped_by = run.go(resume=resume)
    wrote([run.out])
    notes = run.notes
    losses = f"validation loss {notes['validation_loss']} nats per byte (of a unigram model: {notes['unigram_loss']})"
    typer.echo(f"posviz: {losses} after {notes['steps']} steps", err=True)
    if stopped_by is not None:
        done = f"stopped at step {notes['steps']} of {notes['planned_steps']}"
        typer.echo(f"posviz: {done}; the same command with --resume goes on", err=True)
        raise typer.Exit(128 + stopped_by)

"""`python -m benchmarks`: measure everything in one run, print it, and keep it as JSON and as a plot."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks import batches, claims, commands, table
from benchmarks.measure import Measured, best, run

HERE = Path(__file__).parent


def main() -> None:
    asked = _arguments()
    with tempfile.TemporaryDirectory(prefix="posviz-bench-", dir=asked.folder) as name:
        folder = Path(name)
        _say("making checkpoints of random weights")
        run(commands.make_checkpoints(folder), folder)
        run(commands.capture(folder), folder)
        measured = _interleaved(commands.baselines(folder) | commands.claimed(folder), asked.rounds, folder)
        measured |= _interleaved(commands.others(folder), 1, folder)
        measured |= _batch(folder)
        measured |= _scale(folder)
    every = [*claims.of_commands(), *claims.of_scale()]
    results = table.as_json(measured, every)
    asked.out.write_text(json.dumps(results, indent=2) + "\n")
    plot = [sys.executable, "-m", "benchmarks.scale", asked.out, asked.out.with_name("scale.png")]
    subprocess.run(plot, check=True, cwd=HERE.parent)
    print(table.told_machine(results["machine"]), table.table(measured), sep="\n\n", end="\n\n")
    for claim in every:
        print(claim.told(measured))
    if not all(claim.holds(measured) for claim in every):
        raise SystemExit(1)


def _interleaved(wanted: Mapping[str, list[str]], rounds: int, folder: Path) -> dict[str, Measured]:
    """The best of several rounds over all commands, so that a busy minute of the machine hits all of them."""
    runs: dict[str, list[Measured]] = {what: [] for what in wanted}
    for number in range(rounds):
        for what, command in wanted.items():
            _say(f"round {number + 1} of {rounds}: {what}")
            # What is over in a blink is measured more often.
            runs[what] += [run(command, folder)]
            while runs[what][-1].seconds < 0.5 and len(runs[what]) < 8 * (number + 1):
                runs[what] += [run(command, folder)]
    return {what: best(each) for what, each in runs.items()}


def _batch(folder: Path) -> dict[str, Measured]:
    """Twenty figures in one batch, and the same one by one."""
    checkpoint, manifest = commands.checkpoint(folder, "rope"), folder / "batch.toml"
    manifest.write_text(batches.manifest(checkpoint, folder))
    _say(claims.BATCH)
    together = best([run([commands.POSVIZ, "batch", str(manifest), "--force"], folder) for _ in range(2)])
    singles = []
    for number in range(len(batches.FIGURES)):
        _say(f"the same one by one: {number + 1} of {len(batches.FIGURES)}")
        words = batches.words(number, checkpoint, folder / "posviz.png")
        singles.append(run([commands.POSVIZ, *words], folder))
    each = Measured(
        sum(one.seconds for one in singles),
        sum(one.cpu_seconds for one in singles),
        max(one.peak_bytes for one in singles),
    )
    return {claims.BATCH: together, claims.RENDERS: each}


def _scale(folder: Path) -> dict[str, Measured]:
    found = {}
    for length in claims.LENGTHS:
        for method in claims.LONG:
            _say(f"{method} at {length} positions")
            found[claims.long_name(method, length)] = run(commands.long_render(folder, method, length), folder)
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each command is measured (default 3)")
    parser.add_argument("--folder", type=Path, help="where 6 GB of checkpoints find room for a while")
    parser.add_argument("--out", type=Path, default=HERE / "results.json", help="the JSON; the plot goes beside it")
    asked = parser.parse_args()
    asked.out = asked.out.resolve()
    asked.out.parent.mkdir(parents=True, exist_ok=True)  # now, not after six minutes
    return asked


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

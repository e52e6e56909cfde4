"""`posviz batch` as a person meets it: the plan, the table, failures, killed runs."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from batch_cases import METHODS, checkpoint, manifest, pictures, twenty, whole
from conftest import Ran
from processes_cases import LONG, on_a_terminal, signal_group, start, until

Posviz = Callable[..., Ran]


def table(ran: Ran) -> dict[str, str]:
    """The end table: what became of each figure."""
    rows = [re.fullmatch(r"(done|up to date|failed|not tried) +(\S+)  (.*)", line) for line in ran.out.splitlines()]
    return {row[2]: row[1] for row in rows if row}


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in pictures(folder)}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A manifest of three figures over two checkpoints."""
    for method in ("rope", "t5"):
        checkpoint(tmp_path / f"{method}.safetensors", method)
    return manifest(
        tmp_path,
        [
            {"name": "rope-1", "ckpt": "rope.safetensors", "layer": 1},
            {"name": "rope-2", "ckpt": "rope.safetensors", "layer": 2},
            {"name": "t5", "ckpt": "t5.safetensors", "out": ["t5.png", "t5.pdf"]},
        ],
    )


def test_twenty_figures_one_checkpoint_corrupt_then_repaired(posviz: Posviz, tmp_path: Path) -> None:
    path = twenty(tmp_path)
    good = (tmp_path / "cable.safetensors").read_bytes()
    (tmp_path / "cable.safetensors").write_bytes(good[: len(good) // 2])
    first = posviz("batch", path, "--jobs", 1)
    assert first.code == 1
    found = table(first)
    assert {name for name, state in found.items() if state == "failed"} == {f"cable-{n}" for n in range(1, 6)}
    assert sum(state == "done" for state in found.values()) == 15
    assert first.out.splitlines()[-1] == "15 done, 0 up to date, 5 failed"
    assert all("cable.safetensors is cut short" in line for line in first.out.splitlines() if line.startswith("failed"))
    assert len(first.err.splitlines()) == 20
    before = times(tmp_path / "out")
    (tmp_path / "cable.safetensors").write_bytes(good)
    second = posviz("batch", path, "--jobs", 1)
    assert second.code == 0
    assert {name for name, state in table(second).items() if state == "done"} == {f"cable-{n}" for n in range(1, 6)}
    assert second.out.splitlines()[-1] == "5 done, 15 up to date, 0 failed"
    assert before.items() <= times(tmp_path / "out").items()
    assert all(whole(figure) for figure in pictures(tmp_path / "out"))


def test_killed_in_the_middle_only_what_is_missing_is_drawn(posviz: Posviz, tmp_path: Path) -> None:
    path, out = twenty(tmp_path), tmp_path / "out"
    process = start("batch", path, "--jobs", 2)
    until(lambda: len(times(out)) >= 4, process)
    signal_group(process, signal.SIGKILL)
    process.communicate(timeout=LONG)
    before = times(out)
    assert 4 <= len(before) < 20
    assert all(whole(out / name) for name in before)
    again = posviz("batch", path, "--jobs", 1)
    assert again.code == 0
    drawn = {f"{name}.png" for name, state in table(again).items() if state == "done"}
    assert drawn.isdisjoint(before)
    assert len(drawn) + len(before) == 20
    assert before.items() <= times(out).items()
    assert all(whole(out / name) for name in times(out))
    assert sorted(file.suffix for file in out.iterdir()) == [".png"] * 20
    assert not list(out.glob(".*"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_it_with_one_line_and_nothing_half_written(jobs: int, tmp_path: Path) -> None:
    path, out = twenty(tmp_path), tmp_path / "out"
    process = start("batch", path, "--jobs", jobs)
    until(lambda: len(times(out)) >= 2, process)
    signal_group(process, signal.SIGINT)
    said, told = process.communicate(timeout=LONG)
    assert process.returncode == 130, told
    assert said == ""
    *progress, last = told.splitlines()
    count = len(progress)
    assert all(re.fullmatch(r"\[\d+/20\] done: \S+", line) for line in progress)
    assert last == f"posviz: stopped after {count} of 20 figures; the same command draws the others"
    assert all(whole(file) for file in out.iterdir())
    assert not list(out.glob(".*"))


def test_ctrl_c_counts_even_where_python_cannot_raise_it(
    posviz: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While an object is let go, of which a figure has thousands, an exception goes nowhere."""
    from posviz import render

    class Unlucky:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    written = []
    monkeypatch.setattr(render, "write", lambda request, *_: written.append((request.ckpt, Unlucky())[0]))
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    ran = posviz("batch", twenty(tmp_path), "--jobs", 1)
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.splitlines()[1:] == ["posviz: stopped after 1 of 20 figures; the same command draws the others"]
    assert len(written) == 1
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before


def test_ctrl_c_while_a_figure_is_told_comes_after_it(
    posviz: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(io.StringIO):
        def write(self, text: str) -> int:
            if text.startswith("[2/20]"):
                signal.raise_signal(signal.SIGINT)
            return super().write(text)

    monkeypatch.setattr(sys, "stderr", Slow())
    assert posviz("batch", twenty(tmp_path), "--jobs", 1).code == 130
    first, second, last = sys.stderr.getvalue().splitlines()  # type: ignore[attr-defined]
    assert (first[:12], second[:12]) == ("[1/20] done:", "[2/20] done:")
    assert last == "posviz: stopped after 2 of 20 figures; the same command draws the others"


def test_a_worker_that_is_killed_loses_no_figure(tmp_path: Path) -> None:
    path, out = twenty(tmp_path), tmp_path / "out"
    process = start("batch", path, "--jobs", 2)
    until(lambda: len(times(out)) >= 2, process)
    os.kill(_workers(process)[0], signal.SIGKILL)
    said, told = process.communicate(timeout=LONG)
    assert process.returncode == 0, told
    assert said.splitlines()[-1] == "20 done, 0 up to date, 0 failed"
    assert all(whole(file) for file in out.iterdir())
    assert len(list(out.iterdir())) == 20


def _workers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that draw for a batch."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == process.pid and b"spawn_main" in words:
            found.append(int(folder.name))
    return found


def test_a_plan_draws_nothing(posviz: Posviz, small: Path) -> None:
    ran = posviz("batch", small, "--dry-run")
    assert ran.code == 0
    assert ran.out.splitlines()[0].startswith("would draw rope-1")
    assert ran.out.splitlines()[-1] == "3 to draw, 0 up to date"
    assert not list(small.parent.glob("*.png"))
    posviz("batch", small, "--only", "t5")
    assert posviz("batch", small, "--dry-run").out.splitlines()[-1] == "2 to draw, 1 up to date"
    assert posviz("batch", small, "--dry-run", "--force").out.splitlines()[-1] == "3 to draw, 0 up to date"


def test_only_some(posviz: Posviz, small: Path) -> None:
    assert table(posviz("batch", small, "--only", "rope-*")) == {"rope-1": "done", "rope-2": "done"}
    assert table(posviz("batch", small, "--only", "*-1", "--only", "t?")) == {"rope-1": "up to date", "t5": "done"}
    refused = posviz("batch", small, "--only", "roper")
    assert refused.error == "--only 'roper' matches none of the figures: rope-1, rope-2, t5"


def test_forced_everything_is_drawn_again(posviz: Posviz, small: Path) -> None:
    assert set(table(posviz("batch", small, "--jobs", 1)).values()) == {"done"}
    before = times(small.parent)
    assert set(table(posviz("batch", small)).values()) == {"up to date"}
    assert times(small.parent) == before
    assert set(table(posviz("batch", small, "--force", "--jobs", 1)).values()) == {"done"}
    after = times(small.parent)
    assert all(after[name] > before[name] for name in before)


def test_keeping_going_is_the_default(posviz: Posviz, tmp_path: Path) -> None:
    for method in METHODS[:3]:
        checkpoint(tmp_path / f"{method}.safetensors", method)
    tables = [{"name": method, "ckpt": f"{method}.safetensors"} for method in METHODS[:3]]
    tables[0]["layer"] = 9  # type: ignore[assignment]
    path = manifest(tmp_path, tables)
    stopped = posviz("batch", path, "--jobs", 1, "--no-keep-going")
    assert stopped.code == 1
    assert table(stopped) == {"kerple": "failed", "rope": "not tried", "cable": "not tried"}
    assert stopped.out.splitlines()[-1] == "0 done, 0 up to date, 1 failed, 2 not tried"
    went_on = posviz("batch", path, "--jobs", 1)
    assert went_on.code == 1
    assert table(went_on) == {"kerple": "failed", "rope": "done", "cable": "done"}
    assert "there is no layer 9; the model has layers 1 to 2" in went_on.out


def test_captions_are_written_beside_what_is_there(posviz: Posviz, small: Path) -> None:
    posviz("batch", small)
    assert posviz("batch", small, "--captions").code == 0
    names = {file.name for file in small.parent.iterdir() if file.suffix in (".txt", ".tex")}
    assert names == {f"{name}{suffix}" for name in ("rope-1", "rope-2", "t5") for suffix in (".caption.txt", ".tex")}
    assert r"\includegraphics[width=\linewidth]{t5.pdf}" in (small.parent / "t5.tex").read_text()


def test_a_caption_that_cannot_be_written_is_a_failure(posviz: Posviz, small: Path) -> None:
    (small.parent / "t5.tex").mkdir()
    ran = posviz("batch", small, "--captions", "--jobs", 1)
    assert ran.code == 1
    assert table(ran) == {"rope-1": "done", "rope-2": "done", "t5": "failed"}
    assert "its caption: cannot write" in ran.out


def test_what_is_wrong_with_a_manifest_is_said_before_anything_is_drawn(posviz: Posviz, tmp_path: Path) -> None:
    checkpoint(tmp_path / "rope.safetensors", "rope")
    path = manifest(
        tmp_path,
        [
            {"name": "fine", "ckpt": "rope.safetensors"},
            {"name": "missing", "ckpt": "none.safetensors"},
            {"name": "wrong", "ckpt": "rope.safetensors", "colour": "red"},
        ],
    )
    ran = posviz("batch", path)
    assert (ran.code, ran.out) == (1, "")
    first, second = ran.err.splitlines()
    assert first.startswith(f"posviz: {path}: [[figure]] 2 (missing): ckpt is 'none.safetensors'; there is no file")
    assert second.startswith(f"posviz: {path}: [[figure]] 3 (wrong): unknown option 'colour'")
    assert not list(tmp_path.glob("*.png"))


def test_what_would_mislead_is_said(posviz: Posviz, small: Path) -> None:
    small.write_text(small.read_text().replace("'seq-len' = 16", "").replace("seq-len = 16", "seq-len = 40"))
    ran = posviz("batch", small, "--only", "t5")
    assert ran.code == 0
    assert "posviz: note: t5: 40 positions are beyond the 32 it was trained with: this is extrapolation" in ran.err


def test_other_uses_are_refused_in_one_line(posviz: Posviz, small: Path) -> None:
    for option in ("--ckpt-dir", "--out-dir"):
        assert f"{option} goes without a manifest" in posviz("batch", small, option, small.parent).error
    assert posviz("batch", small, "--jobs", 0).error == "--jobs is 0; expected 1 or more"
    assert "cannot be read: No such file" in posviz("batch", small.with_name("none.toml")).error


def test_a_terminal_gets_a_bar(small: Path) -> None:
    begun = time.monotonic()
    code, said = on_a_terminal("batch", small, "--jobs", 1)
    assert time.monotonic() - begun < LONG
    assert code == 0
    assert "━" in said
    assert "3/3" in said
    assert "3 done, 0 up to date, 0 failed" in said

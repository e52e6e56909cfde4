"""The paper's set: which figures it has, and whose checkpoints it finds in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from batch_cases import checkpoint, whole
from conftest import Ran
from small_models import config_of, model_of

from posviz.errors import CheckpointError
from posviz.paper import NAMES, checkpoints_in, paper_set

Posviz = Callable[..., Ran]
PAPER = Path(__file__).parent / "data" / "paper_figures.json"


def test_figures_have_the_papers_numbers_and_methods() -> None:
    numbers = {str(each["method"]): number for number, each in json.loads(PAPER.read_text())["figures"].items()}
    figures, notes = paper_set(Path("somewhere"))
    assert [figure.name for figure in figures] == [
        *sorted(f"figure-{number}-{method}" for method, number in numbers.items()),
        "kerple",
        "cable",
    ]
    assert notes == []
    for figure, method in zip(figures, NAMES, strict=True):
        assert (figure.request.method, figure.request.ckpt) == (method, None)
        assert figure.request.out == tuple(Path(f"somewhere/{figure.name}{suffix}") for suffix in (".png", ".pdf"))


def test_checkpoints_in_a_folder_tell_their_methods_whatever_they_are_called(tmp_path: Path) -> None:
    for n, method in enumerate(("t5", "cable", "dapev2-kerple", "rope")):
        checkpoint(tmp_path / f"run-{n}.safetensors", method)
    torch.save(model_of(config_of("kerple", n_layer=1, n_head=2, n_embd=8)).state_dict(), tmp_path / "model_1.pt")
    (tmp_path / "notes.txt").write_text("not a checkpoint")
    (tmp_path / ".hidden.safetensors").write_bytes(b"nothing")
    found, notes = checkpoints_in(tmp_path)
    assert {method: path.name for method, path in found.items()} == {
        "t5": "run-0.safetensors",
        "cable": "run-1.safetensors",
        "dapev2-kerple": "run-2.safetensors",
        "rope": "run-3.safetensors",
        "kerple": "model_1.pt",
    }
    assert notes == [f"{tmp_path} holds no checkpoint of alibi, fire"]
    figures, _ = paper_set(Path("out"), tmp_path)
    assert [figure.name for figure in figures] == [
        "figure-11-dapev2-kerple", "figure-14-t5", "figure-15-rope", "kerple", "cable"
    ]  # fmt: skip
    assert figures[0].request.ckpt == str(tmp_path / "run-2.safetensors")
    assert figures[0].request.method is None


def test_what_is_passed_over_is_said(tmp_path: Path) -> None:
    checkpoint(tmp_path / "a.safetensors", "t5")
    checkpoint(tmp_path / "b.safetensors", "kerple-power")
    (tmp_path / "c.safetensors").write_bytes(b"broken")
    _, notes = checkpoints_in(tmp_path)
    assert notes[0] == "b.safetensors is left out: kerple-power is not in the paper's set; draw it with render"
    assert notes[1].startswith("c.safetensors is left out: ")
    assert "is no safetensors file" in notes[1]


def test_two_of_a_kind_and_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no checkpoint of dapev2-kerple, alibi"):
        checkpoints_in(tmp_path)
    with pytest.raises(CheckpointError, match="is no folder; expected one that holds a checkpoint per method"):
        checkpoints_in(tmp_path / "none")
    for name in ("a", "b"):
        checkpoint(tmp_path / f"{name}.safetensors", "t5")
    with pytest.raises(CheckpointError, match=r"a\.safetensors and b\.safetensors in .* are both of t5; expected one"):
        checkpoints_in(tmp_path)


def test_a_folder_is_drawn_by_one_command(posviz: Posviz, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    for method in ("alibi", "cable"):
        checkpoint(tmp_path / "runs" / f"my-{method}.safetensors", method)
    ran = posviz("batch", "--ckpt-dir", "runs", "--captions")
    assert ran.code == 0, ran.err
    names = [f"figures/{name}" for name in ("cable", "figure-12-alibi")]
    assert sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "figures").iterdir()) == sorted(
        f"{name}{suffix}" for name in names for suffix in (".png", ".pdf", ".tex", ".caption.txt")
    )
    assert all(whole(Path(f"{name}.png")) for name in names)
    assert "posviz: note: runs holds no checkpoint of dapev2-kerple, fire, t5, rope, kerple" in ran.err
    assert "figures/figure-12-alibi.png, figures/figure-12-alibi.pdf" in ran.out
    again = posviz("batch", "--ckpt-dir", "runs", "--out-dir", "figures")
    assert again.out.splitlines()[-1] == "0 done, 2 up to date, 0 failed"

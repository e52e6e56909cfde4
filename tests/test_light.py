"""What a command must not import, because its work does not need it: each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_models import config_of, model_of, saved

from posviz.cli import COMMANDS, app

WRAPPER = """
import sys
sys.argv = ["posviz", *sys.argv[1:]]
from posviz.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
print("loaded", *sorted(sys.modules))
"""


def loaded(*words: object) -> set[str]:
    """The modules that a command has imported by its end."""
    ran = subprocess.run([sys.executable, "-c", WRAPPER, *map(str, words)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.splitlines()[-1].split()[1:])


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("light")
    return {m: saved(model_of(config_of(m)), folder / f"{m}.safetensors") for m in ("kerple", "fire", "rope")}


@pytest.mark.parametrize("method", ["kerple", "fire"])
def test_a_bias_without_tokens_is_drawn_without_torch(
    method: str, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    found = loaded("render", "--ckpt", checkpoints[method], "--seq-len", 40, "--out", tmp_path / "a.png")
    assert not found & {"torch", "transformers", "safetensors", "tokenizers", "matplotlib.pyplot", "rich", "scipy"}
    assert "matplotlib.figure" in found


def test_looking_at_headers_needs_neither_torch_nor_drawing(checkpoints: dict[str, Path]) -> None:
    found = loaded("info", "--ckpt", checkpoints["rope"])
    assert not found & {"torch", "transformers", "safetensors", "matplotlib", "PIL"}


def test_a_stored_capture_is_drawn_without_torch(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    stored = tmp_path / "rope.npz"
    found = loaded("capture", "--ckpt", checkpoints["rope"], "--seq-len", 40, "--out", stored)
    assert "torch" in found
    # torch.compile's machinery takes longer to import than torch itself, and a model that is only run needs none of it.
    assert not found & {"torch._dynamo", "torch._inductor", "transformers", "matplotlib", "PIL"}
    found = loaded("render", "--from", stored, "--out", tmp_path / "a.pdf")
    assert not found & {"torch", "transformers", "posviz.checkpoint", "posviz.methods"}


def test_numbers_of_a_head_need_no_torch(checkpoints: dict[str, Path]) -> None:
    found = loaded("inspect", "--ckpt", checkpoints["kerple"], "--seq-len", 40, "--json")
    assert not found & {"torch", "transformers", "matplotlib"}


def test_only_the_command_that_runs_is_imported() -> None:
    found = loaded("--help")
    assert not found & {"posviz.options", "posviz.stack", *(f"posviz.cli.{name}" for name in COMMANDS)}
    found = loaded("render", "--help")
    assert {name for name in COMMANDS if f"posviz.cli.{name}" in found} == {"render"}


def test_the_help_says_what_each_command_says_of_itself() -> None:
    import importlib

    for name in COMMANDS:
        importlib.import_module(f"posviz.cli.{name}")
    said = {each.name: (each.callback.__doc__ or "").strip().splitlines()[0] for each in app.registered_commands}
    assert said == COMMANDS

"""Help, version and completion: there at once, without what takes seconds to import."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from posviz import __version__
from posviz.cli import COMMANDS

HEAVY = ("torch", "transformers", "matplotlib", "numpy", "PIL", "safetensors", "tokenizers", "huggingface_hub")

WRAPPER = """
import sys
sys.argv = ["posviz", *sys.argv[1:]]
from posviz.cli import main
try:
    main()
except SystemExit as stop:
    print("exit", stop.code or 0)
print("loaded", *sorted(name for name in sys.modules if "." not in name))
"""


def alone(*words: object, **environment: str) -> tuple[list[str], set[str], int]:
    """What a command prints in a process of its own, the modules it imported, and its exit code."""
    ran = subprocess.run(
        [sys.executable, "-c", WRAPPER, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=True,
    )
    *said, stop, loaded = ran.stdout.splitlines()
    assert ran.stderr == ""
    return said, set(loaded.split()[1:]), int(stop.removeprefix("exit "))


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--version"], [], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    said, loaded, code = alone(*words)
    assert code == 0
    assert not loaded & set(HEAVY)
    if words == ["--version"]:
        assert said == [f"posviz {__version__}"]
    else:
        command = [word for word in words if not word.startswith("-")]
        assert said[0].startswith(" ".join(["Usage: posviz", *command, "[OPTIONS]"]))
        assert any(line.strip().startswith("-h, --help") for line in said)


def test_listing_methods_needs_numbers_at_most() -> None:
    said, loaded, _ = alone("methods")
    assert len(said) == 12
    assert not loaded & {"torch", "transformers", "matplotlib"}


def test_every_command_is_listed_with_what_it_does(posviz: Callable[..., Any]) -> None:
    said = posviz("--help").out
    assert {"batch", "capture", "info", "methods", "render", "train"} <= set(COMMANDS)
    for name in COMMANDS:
        line = next(line for line in said.splitlines() if line.strip().startswith(name + " "))
        assert len(line.split()) > 3
    assert posviz().out == said


@pytest.mark.parametrize("name", ["render", "capture"])
def test_every_option_is_explained(name: str, posviz: Callable[..., Any]) -> None:
    from dataclasses import fields

    from posviz.options import CaptureRequest, RenderRequest, flag_of

    said = " ".join(posviz(name, "--help").out.split())
    for f in fields(RenderRequest if name == "render" else CaptureRequest):
        assert f"--{flag_of(f)}" in said
        assert f.metadata["help"] in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(("typed", "offered"), [("rend", "render"), ("render --alib", "--alibi-slopes")])
def test_completion_offers_commands_and_options(shell: str, typed: str, offered: str) -> None:
    """What the shell's completion script asks when the tab key is pressed."""
    asked = {
        "_POSVIZ_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": f"posviz {typed}",  # bash
        "COMP_CWORD": str(len(typed.split())),
        "_TYPER_COMPLETE_ARGS": f"posviz {typed}",  # zsh and fish
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    said, loaded, code = alone(**asked)
    assert code == 0
    assert any(offered in line for line in said)
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_shown(shell: str) -> None:
    said, _, code = alone("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert code == 0
    assert f"_POSVIZ_COMPLETE=complete_{shell}" in "\n".join(said)


def test_the_console_script_is_the_same_command() -> None:
    script = Path(sys.executable).with_name("posviz")
    ran = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"posviz {__version__}\n"

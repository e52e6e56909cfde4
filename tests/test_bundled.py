"""The checkpoints that ship with posviz, by method."""

from __future__ import annotations

from pathlib import Path

import pytest

from posviz import bundled
from posviz.errors import MethodError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bundled, "folder", lambda: tmp_path)
    for name in ("t5.safetensors", "kerple.safetensors", "README.md"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_method_leads_to_its_checkpoint(folder: Path) -> None:
    assert bundled.names() == ["kerple", "t5"]
    assert bundled.path("t5") == folder / "t5.safetensors"


def test_what_is_not_bundled_says_what_is(folder: Path) -> None:
    with pytest.raises(MethodError) as caught:
        bundled.path("kerple-power")
    assert str(caught.value) == ("no checkpoint of kerple-power is bundled; give one with --ckpt (bundled: kerple, t5)")
    with pytest.raises(MethodError, match="neither --ckpt nor --method was given"):
        bundled.path(None)

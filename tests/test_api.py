"""posviz from Python: a capture that shows itself, saves itself and gives its numbers."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_models import config_of, model_of, saved

import posviz


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(model_of(config_of("t5")), tmp_path_factory.mktemp("api") / "t5.safetensors")


def test_a_capture_is_an_array_with_heads_and_a_picture(path: Path) -> None:
    stack = posviz.capture(path, seq_len=40, layer=1)
    assert np.asarray(stack).shape == (12, 40, 40)
    assert stack.head(3).heads == (3,)
    assert "t5 bias, 12 heads, 40 x 40 positions" in repr(stack)
    assert [stats.head for stats in stack.stats()] == list(range(1, 13))
    with Image.open(io.BytesIO(stack._repr_png_())) as picture:
        assert picture.size[0] > 500
    assert stack.draw(cmap="magma", title="T").get_suptitle() or stack.draw(title="T").texts


def test_what_is_saved_comes_back(path: Path, tmp_path: Path) -> None:
    stack = posviz.capture(str(path), seq_len=40)
    again = posviz.load(stack.save(tmp_path / "x.npz"))
    np.testing.assert_array_equal(again.values, stack.values)
    assert again.meta == stack.meta
    for suffix in (".png", ".pdf", ".svg", ".html", ".safetensors"):
        assert stack.save(tmp_path / f"x{suffix}").exists()


def test_an_unknown_option_is_named(path: Path) -> None:
    with pytest.raises(posviz.PosvizError, match="unknown option 'sequence_len'; did you mean 'seq_len'"):
        posviz.capture(path, sequence_len=40)
    with pytest.raises(AttributeError, match="has no attribute 'captur'"):
        _ = posviz.captur


def test_importing_posviz_imports_nothing_heavy() -> None:
    code = "import posviz, sys; print({'torch', 'matplotlib', 'numpy', 'transformers'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "set()"

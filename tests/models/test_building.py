"""A user's own model by `package.module:build_fn`, and every way in which that can go wrong."""

from __future__ import annotations

import pytest
import torch

from posviz.errors import CheckpointError
from posviz.models.building import build_model

SOURCE = """
import torch

def make_it():
    return torch.nn.Linear(3, 2)

def number():
    return 7

def broken():
    raise ValueError("no such\\nfile")
"""


@pytest.fixture(autouse=True)
def _package(tmp_path, monkeypatch):
    (tmp_path / "own_models_for_test.py").write_text(SOURCE)
    (tmp_path / "unimportable_for_test.py").write_text("import nothing_like_this")
    monkeypatch.chdir(tmp_path)


def test_the_weights_are_loaded_and_the_model_is_set_to_run():
    weights = {"weight": torch.arange(6.0).view(2, 3), "bias": torch.ones(2)}
    model = build_model("own_models_for_test:make_it", weights)
    assert torch.equal(model.weight, weights["weight"])
    assert not model.training


@pytest.mark.parametrize(
    ("spec", "weights", "message"),
    [
        ("own_models_for_test", None, "expected package.module:build_fn"),
        ("own_models_for_test:mak_it", None, "did you mean 'make_it'"),
        ("no_such_module_at_all:f", None, "cannot be imported: ModuleNotFoundError"),
        ("unimportable_for_test:f", None, "nothing_like_this"),
        ("own_models_for_test:number", None, "returned a int"),
        ("own_models_for_test:broken", None, "failed: ValueError: no such file"),
        ("own_models_for_test:make_it", {"weight": (2, 3)}, "1 missing, such as bias"),
        ("own_models_for_test:make_it", {"weight": (2, 3), "bias": (2,), "w": (1,)}, "1 unknown to it, such as w"),
        ("own_models_for_test:make_it", {"weight": (2, 4), "bias": (2,)}, r"weight is \[2, 4\], expected \[2, 3\]"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(spec, weights, message):
    tensors = None if weights is None else {name: torch.zeros(shape) for name, shape in weights.items()}
    with pytest.raises(CheckpointError, match=message) as caught:
        build_model(spec, tensors)
    assert "\n" not in str(caught.value)

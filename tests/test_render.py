"""From a request to figures on disk: the pixels are the values, for every method."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading import assert_cells_are_the_values, pixels
from small_models import config_of, model_of, saved

from posviz import __version__, methods, outputs
from posviz.errors import PosvizError
from posviz.options import RenderRequest
from posviz.render import capture_part, paths_of, stacks_of, write
from posviz.session import Session
from posviz.stack import HeadStack


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {m: saved(model_of(config_of(m)), folder / f"{m}.safetensors") for m in methods.names()}


def rendered(request: RenderRequest) -> tuple[list[Path], HeadStack]:
    stacks = stacks_of(request)
    return write(request, stacks), stacks[0]


@pytest.mark.parametrize("method", methods.names())
def test_every_cell_of_every_head_is_its_value(method: str, paths: dict[str, Path], tmp_path: Path) -> None:
    """Twelve heads of 512 x 512 cells, from the file to the picture. That the values are right is tested elsewhere."""
    request = RenderRequest(ckpt=str(paths[method]), out=(tmp_path / "fig.png",))
    (path,), _ = rendered(request)
    plain = capture_part(request)
    stack = Session([plain]).stack(plain)
    assert stack.values.shape == (12, 512, 512)
    assert_cells_are_the_values(path, stack)


@pytest.mark.parametrize("quantity", ["scores", "content", "attention"])
def test_the_other_quantities_too(quantity: str, paths: dict[str, Path], tmp_path: Path) -> None:
    request = RenderRequest(ckpt=str(paths["rope"]), quantity=quantity, seq_len=100, out=(tmp_path / "fig.png",))
    (path,), stack = rendered(request)
    assert stack.meta["quantity"] == quantity
    assert_cells_are_the_values(path, stack)


def test_the_same_request_makes_the_same_bytes(paths: dict[str, Path], tmp_path: Path) -> None:
    request = RenderRequest(ckpt=str(paths["cable"]), seq_len=64, heads="1-2")
    for suffix in (".png", ".pdf", ".svg"):
        a, b = (rendered(replace(request, out=(tmp_path / f"{n}{suffix}",)))[0][0] for n in "ab")
        assert a.read_bytes() == b.read_bytes()


def test_a_figure_knows_how_to_be_made_again(paths: dict[str, Path], tmp_path: Path) -> None:
    request = RenderRequest(
        ckpt=str(paths["kerple"]), seq_len=64, layer=1, heads="3,1", diverging=True, out=(tmp_path / "f.png",)
    )
    (path,), stack = rendered(request)
    recipe = outputs.read_recipe(path)
    assert recipe["posviz"] == __version__
    assert recipe["command"] == "render"
    assert recipe["options"] == {
        "ckpt": str(paths["kerple"]), "seq-len": 64, "layer": 1, "heads": "3,1", "diverging": True,
    }  # fmt: skip
    assert recipe["checkpoint"] == {"name": "kerple.safetensors", "sha256": stack.meta["sha256"]}
    assert (recipe["method"], recipe["quantity"], recipe["layer"], recipe["seq_len"]) == ("kerple", "bias", 1, 64)
    assert "out" not in recipe["options"]


@pytest.mark.parametrize(
    ("method", "options", "name"),
    [
        ("kerple", {}, "kerple-layer2.png"),
        ("rope", {"layer": 1}, "rope-layer1.png"),
        ("none", {}, "none-layer2.png"),
        ("cable", {"quantity": "attention"}, "cable-layer2-attention.png"),
        ("rope", {"quantity": "content"}, "rope-layer2-content.png"),
    ],
)
def test_without_a_name_it_is_called_by_what_it_shows(
    method: str, options: dict[str, Any], name: str, paths: dict[str, Path]
) -> None:
    request = RenderRequest(ckpt=str(paths[method]), seq_len=16, **options)
    assert paths_of(request, stacks_of(request)[0]) == [Path("figures") / name]


def test_a_stored_capture_is_drawn_as_it_was(paths: dict[str, Path], tmp_path: Path) -> None:
    request = RenderRequest(ckpt=str(paths["dapev2-fire"]), seq_len=90, quantity="attention")
    (direct,), stack = rendered(replace(request, out=(tmp_path / "direct.png",)))
    for suffix in (".npz", ".safetensors"):
        stored = stack.save(tmp_path / f"x{suffix}")
        (again,), _ = rendered(RenderRequest(from_file=stored, out=(tmp_path / "again.png",)))
        np.testing.assert_array_equal(pixels(again), pixels(direct))
    (some,), _ = rendered(RenderRequest(from_file=stored, heads="5,2", out=(tmp_path / "some.png",)))
    assert_cells_are_the_values(some, stack.select([5, 2]))
    assert paths_of(RenderRequest(from_file=stored), stack) == [Path("figures/dapev2-fire-layer2-attention.png")]


def test_what_was_captured_cannot_be_changed_afterwards(paths: dict[str, Path], tmp_path: Path) -> None:
    stored = stacks_of(RenderRequest(ckpt=str(paths["kerple"]), seq_len=20))[0].save(tmp_path / "x.npz")
    with pytest.raises(PosvizError, match="--ckpt, --layer cannot change a stored capture; leave out --from"):
        stacks_of(RenderRequest(from_file=stored, ckpt="x", layer=2))
    with pytest.raises(PosvizError, match="--extrapolate cannot change a stored capture"):
        stacks_of(RenderRequest(from_file=stored, extrapolate="20,40"))


def test_several_lengths_in_one_figure(paths: dict[str, Path], tmp_path: Path) -> None:
    request = RenderRequest(ckpt=str(paths["kerple"]), extrapolate="64,128", out=(tmp_path / "e.png",))
    stacks = stacks_of(request)
    assert [stack.seq_len for stack in stacks] == [64, 128]
    assert write(request, stacks) == [tmp_path / "e.png"]
    assert pixels(tmp_path / "e.png").std() > 0


def test_a_long_sequence_is_drawn_in_cells(paths: dict[str, Path], tmp_path: Path) -> None:
    request = RenderRequest(ckpt=str(paths["alibi"]), seq_len=2500, heads="1", reduce="max", out=(tmp_path / "l.png",))
    _, stack = rendered(request)
    assert stack.cell == 3
    assert stack.values.shape == (1, 834, 834)
    assert outputs.read_recipe(tmp_path / "l.png")["seq_len"] == 2500

"""Many figures: one run of a model for all of them, and one figure's failure is not another's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batch_cases import checkpoint, draw, figure, of, project_in, states

from posviz.batch import groups
from posviz.models import own


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Every run of one of our own models: the layers that were seen in it."""
    seen: list[tuple[int, ...]] = []
    real = own.run

    def counting(model: Any, ids: np.ndarray, layers: Any) -> Any:
        seen.append(tuple(sorted(layers)))
        return real(model, ids, layers)

    monkeypatch.setattr(own, "run", counting)
    return seen


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every model that is opened to be looked at."""
    from posviz import session

    names: list[str] = []
    real = session.open_subject

    def counting(request: Any) -> Any:
        names.append(Path(request.ckpt).name)
        return real(request)

    monkeypatch.setattr(session, "open_subject", counting)
    return names


def test_a_model_is_opened_and_run_once_for_all_its_figures(
    tmp_path: Path, runs: list[tuple[int, ...]], opened: list[str]
) -> None:
    rope = str(checkpoint(tmp_path / "rope.safetensors", "rope", layers=3))
    cable = str(checkpoint(tmp_path / "cable.safetensors", "cable"))
    figures = [
        figure("a", tmp_path / "a.png", ckpt=rope, layer=1),
        figure("b", tmp_path / "b.png", ckpt=cable),
        figure("c", tmp_path / "c.png", ckpt=rope, layer=3, quantity="content"),
        figure("d", tmp_path / "d.png", ckpt=rope, heads="2", layer=-1),
        figure("e", tmp_path / "e.png", ckpt=rope, layer=1, mask=False, cmap="magma"),
        figure("f", tmp_path / "f.png", ckpt=cable, quantity="attention"),
    ]
    assert set(states(figures).values()) == {"done"}
    assert opened == ["rope.safetensors", "cable.safetensors"]
    assert runs == [(0, 2), (1,)]


def test_a_model_is_opened_once_for_all_its_sequences(
    tmp_path: Path, runs: list[tuple[int, ...]], opened: list[str]
) -> None:
    rope = str(checkpoint(tmp_path / "rope.safetensors", "rope"))
    figures = [
        figure("a", tmp_path / "a.png", ckpt=rope, seed=1),
        figure("b", tmp_path / "b.png", ckpt=rope, seed=2),
        figure("c", tmp_path / "c.png", ckpt=rope, seed=1, layer=1),
        figure("d", tmp_path / "d.png", ckpt=rope, extrapolate="8,16", seed=1),
    ]
    assert set(states(figures).values()) == {"done"}
    assert opened == ["rope.safetensors"]
    assert len(runs) == 3  # seed 1 at 16 and at 8 positions, seed 2


def test_a_bias_without_tokens_needs_no_run(tmp_path: Path, runs: list[tuple[int, ...]]) -> None:
    t5 = str(checkpoint(tmp_path / "t5.safetensors", "t5"))
    assert states([figure("a", tmp_path / "a.png", ckpt=t5), figure("b", tmp_path / "b.png", ckpt=t5, layer=1)]) == {
        "a": "done",
        "b": "done",
    }
    assert runs == []


def test_a_batch_draws_what_render_draws(tmp_path: Path) -> None:
    from posviz import render

    cable = str(checkpoint(tmp_path / "cable.safetensors", "cable"))
    figures = [figure(f"l{n}", tmp_path / f"batch-{n}.png", ckpt=cable, layer=n) for n in (1, 2)]
    draw(figures)
    for n in (1, 2):
        alone = figure("alone", tmp_path / f"alone-{n}.png", ckpt=cable, layer=n).request
        render.write(alone, render.stacks_of(alone))
        assert (tmp_path / f"alone-{n}.png").read_bytes() == (tmp_path / f"batch-{n}.png").read_bytes()


def test_figures_of_one_model_are_one_group_and_nothing_is_opened_to_know_it(tmp_path: Path) -> None:
    figures = [
        figure("a", "a.png", ckpt="no-such.safetensors"),
        figure("b", "b.png", ckpt="other.pt"),
        figure("c", "c.png", ckpt="no-such.safetensors", seq_len=8, layer=2, quantity="scores"),
        figure("d", "d.png", ckpt="no-such.safetensors", n_head=3),
        figure("e", "e.png", from_file=Path("x.npz")),
        figure("f", "f.png", from_file=Path("x.npz")),
    ]
    assert [[each.name for each in group] for group in groups(figures)] == [["a", "c"], ["b"], ["d"], ["e"], ["f"]]


def test_one_figures_trouble_is_its_own(tmp_path: Path) -> None:
    rope = str(checkpoint(tmp_path / "rope.safetensors", "rope"))
    (tmp_path / "broken.safetensors").write_bytes(Path(rope).read_bytes()[:3000])
    (tmp_path / "folder.png").mkdir()
    results = draw(
        [
            figure("layer", tmp_path / "1.png", ckpt=rope, layer=9),
            figure("fine", tmp_path / "2.png", ckpt=rope),
            figure("bias", tmp_path / "3.png", ckpt=rope, quantity="bias"),
            figure("head", tmp_path / "4.png", ckpt=rope, heads="3"),
            figure("broken", tmp_path / "5.png", ckpt=str(tmp_path / "broken.safetensors")),
            figure("folder", tmp_path / "folder.png", ckpt=rope),
            figure("also-fine", tmp_path / "6.png", ckpt=rope, layer=1),
        ]
    )
    assert {name for name, result in results.items() if result.status == "done"} == {"fine", "also-fine"}
    why = {name: result.why for name, result in results.items() if result.status == "failed"}
    assert why.keys() == {"layer", "bias", "head", "broken", "folder"}
    assert why["layer"].startswith("there is no layer 9; the model has layers 1 to 2")
    assert "broken.safetensors is cut short" in why["broken"]
    assert why["folder"].endswith("folder.png: it is a folder; give the name of a file")
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["2.png", "6.png", "folder.png"]


def test_whatever_else_goes_wrong_is_a_line_with_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rope = str(checkpoint(tmp_path / "rope.safetensors", "rope"))
    from posviz import render

    def write(*_: object) -> None:
        raise ZeroDivisionError("of\nall things")

    monkeypatch.setattr(render, "write", write)
    assert draw([figure("a", tmp_path / "a.png", ckpt=rope)])["a"].why == "ZeroDivisionError: of all things"


def test_without_keeping_going_a_models_other_figures_are_not_tried_either(tmp_path: Path) -> None:
    rope = str(checkpoint(tmp_path / "rope.safetensors", "rope"))
    layers = {"wrong": 9, "fine": 1, "also-fine": 2}
    figures = [figure(name, tmp_path / f"{name}.png", ckpt=rope, layer=layer) for name, layer in layers.items()]
    found = states(figures, keep_going=False)
    assert (found["wrong"], found["fine"]) == ("failed", "not tried")


@pytest.mark.parametrize("after", ["first", "last"])
def test_without_keeping_going_the_rest_is_not_tried(after: str, tmp_path: Path) -> None:
    kinds = ("rope", "cable", "t5")
    paths = [str(checkpoint(tmp_path / f"{kind}.safetensors", kind)) for kind in kinds]
    figures = [figure(kind, tmp_path / f"{kind}.png", ckpt=path) for kind, path in zip(kinds, paths, strict=True)]
    wrong = figure("wrong", tmp_path / "wrong.png", ckpt=str(checkpoint(tmp_path / "w.safetensors", "fire")), layer=7)
    figures = [wrong, *figures] if after == "first" else [*figures, wrong]
    found = states(figures, keep_going=False)
    assert found.pop("wrong") == "failed"
    assert set(found.values()) == {"not tried" if after == "first" else "done"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_in(tmp_path / "project")


def test_half_written_neighbours_are_swept_and_nothing_else(project: Path) -> None:
    from posviz.outputs.atomic import replacing

    with pytest.raises(RuntimeError), replacing(project / "f.png") as temporary:  # noqa: PT012
        left = temporary
        raise RuntimeError
    left.write_bytes(b"half a picture")
    others = [project / name for name in (".f.notes.png", "f.0123456789ab.png", ".g.0123456789ab.png", ".hidden")]
    for other in others:
        other.touch()
    draw([of(project)])
    assert not left.exists()
    assert all(other.exists() for other in others)
    left.write_bytes(b"half a picture")
    assert states([of(project)]) == {"f": "up to date"}
    assert not left.exists()


def test_notes_come_with_the_result(tmp_path: Path) -> None:
    rope = str(checkpoint(tmp_path / "rope.safetensors", "rope"))
    result = draw([figure("long", tmp_path / "f.png", ckpt=rope, seq_len=40)])["long"]
    assert any("extrapolation" in note for note in result.notes)


def test_a_failure_leaves_the_old_figure(project: Path) -> None:
    draw([of(project)])
    before = (project / "f.png").read_bytes()
    shutil.copy(project / "cable.safetensors", project / "whole")
    (project / "cable.safetensors").write_bytes(b"broken")
    assert states([of(project)]) == {"f": "failed"}
    assert (project / "f.png").read_bytes() == before
    shutil.copy(project / "whole", project / "cable.safetensors")
    assert states([of(project)]) == {"f": "up to date"}

"""What makes a figure out of date, and what does not."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from batch_cases import checkpoint, draw, figure, of, project_in, states, whole
from PIL import Image
from small_models import config_of

from posviz import inputs, recipe
from posviz.batch import up_to_date


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_in(tmp_path / "project")


def test_a_figure_is_up_to_date_until_its_inputs_change(project: Path) -> None:
    assert not up_to_date(of(project))
    assert states([of(project)]) == {"f": "done"}
    before = (project / "f.png").stat().st_mtime_ns
    assert states([of(project)]) == {"f": "up to date"}
    assert (project / "f.png").stat().st_mtime_ns == before
    assert states([of(project)], force=True) == {"f": "done"}
    for options in ({"seed": 1}, {"layer": 1}, {"cmap": "magma"}, {"seq_len": 17}, {"title": "T"}, {"mask": False}):
        assert not up_to_date(of(project, **options))


def test_the_content_of_the_checkpoint_counts(project: Path) -> None:
    draw([of(project)])
    checkpoint(project / "cable.safetensors", "cable", seed=2)
    assert not up_to_date(of(project))
    assert states([of(project)]) == {"f": "done"}
    assert up_to_date(of(project))


def test_the_content_of_the_text_counts(project: Path) -> None:
    draw([of(project)])
    words = (project / "words.txt").read_text()
    (project / "words.txt").write_text(words.replace("line", "lime"))
    assert not up_to_date(of(project))
    (project / "words.txt").write_text(words)
    assert up_to_date(of(project))


def test_the_content_of_a_configuration_and_of_token_files_counts(project: Path) -> None:
    (project / "ids.json").write_text(str(list(range(20))))
    (project / "config.json").write_text("{}")
    asked = of(project, text_file=None, tokens=project / "ids.json", config=project / "config.json")
    draw([asked])
    assert up_to_date(asked)
    (project / "config.json").write_text('{"block_size": 16}')
    assert not up_to_date(asked)
    (project / "config.json").write_text("{}")
    (project / "ids.json").write_text(str(list(range(1, 21))))
    assert not up_to_date(asked)


def test_the_content_of_a_stored_capture_counts(project: Path) -> None:
    from posviz.outputs.arrays import save_stack
    from posviz.render import stacks_of

    stored = project / "x.npz"
    save_stack(stacks_of(of(project).request)[0], stored)
    asked = figure("f", project / "f.png", from_file=stored, seq_len=512)
    assert states([asked]) == {"f": "done"}
    assert up_to_date(asked)
    save_stack(stacks_of(of(project, seed=3).request)[0], stored)
    assert not up_to_date(asked)


def test_the_version_of_posviz_counts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw([of(project)])
    monkeypatch.setattr(inputs, "__version__", "99.0")
    assert not up_to_date(of(project))


def test_the_tokenizer_of_a_folder_counts(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    checkpoint(folder / "model.safetensors", "cable")
    (folder / "config.json").write_text(config_of("cable", n_layer=2, n_head=2, n_embd=8, block_size=32).to_json())
    asked = figure("f", tmp_path / "f.png", ckpt=str(folder), tokenizer="bytes")
    assert states([asked]) == {"f": "done"}
    assert up_to_date(asked)
    (folder / "tokenizer.json").write_text("{}")
    assert not up_to_date(asked)
    (folder / "tokenizer.json").unlink()
    assert up_to_date(asked)


def test_times_do_not_count(project: Path) -> None:
    draw([of(project)])
    for file in project.iterdir():
        os.utime(file, (1, 1))
    assert up_to_date(of(project))


def test_a_project_can_move(project: Path) -> None:
    draw([of(project)])
    moved = project.rename(project.with_name("elsewhere"))
    assert up_to_date(of(moved))


def test_relative_and_absolute_paths_are_the_same_figure(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    draw([figure("f", "f.png", ckpt="cable.safetensors", text_file=Path("words.txt"))])
    assert up_to_date(of(project))


def test_a_file_that_is_gone_or_not_ours_is_drawn_again(project: Path) -> None:
    both = of(project)
    both = replace(both, request=replace(both.request, out=(project / "f.png", project / "f.pdf")))
    draw([both])
    assert up_to_date(both)
    (project / "f.pdf").unlink()
    assert not up_to_date(both)
    draw([both])
    (project / "f.png").write_bytes(b"something else")
    assert not up_to_date(both)
    Image.new("RGB", (4, 4)).save(project / "f.png")
    assert not up_to_date(both)
    assert states([both]) == {"f": "done"}
    assert whole(project / "f.png")


def test_the_recipe_and_the_batch_agree_on_what_was_put_in(project: Path) -> None:
    from posviz.outputs import read_recipe

    draw([of(project)])
    assert read_recipe(project / "f.png")["inputs"] == inputs.inputs_digest(of(project).request)
    assert recipe.inputs_digest is inputs.inputs_digest

"""A file is replaced whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from posviz.errors import OutputError
from posviz.outputs.atomic import probe, replacing


def test_the_file_appears_with_its_folders_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep" / "x.png"
    with replacing(target) as temporary:
        assert temporary.suffix == ".png"
        assert temporary.parent == target.parent
        temporary.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert list(target.parent.iterdir()) == [target]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "x.png"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(target) as temporary:
        temporary.write_text("half" * (1 // temporary.write_text("")))
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    target = tmp_path / "x.png"
    with (
        pytest.raises(OutputError, match=r"^cannot write .*x.png: no space left on device; [^\n]*$"),
        replacing(target),
    ):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_a_link_is_written_through(tmp_path: Path) -> None:
    real, link = tmp_path / "real.png", tmp_path / "link.png"
    real.write_text("old")
    link.symlink_to(real)
    with replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.write_text("")
    with replacing(tmp_path / "x.png") as temporary:
        temporary.write_text("")
    assert (tmp_path / "x.png").stat().st_mode == ordinary.stat().st_mode


def _below_a_file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "x.png"


def _a_folder(folder: Path) -> Path:
    (folder / "x.png").mkdir()
    return folder / "x.png"


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (_below_a_file, "a part of its folder's path is a file"),
        (_a_folder, "it is a folder; give the name of a file"),
        (lambda folder: Path("/proc/nowhere/x.png"), "cannot write /proc/nowhere/x.png: "),
    ],
)
def test_unwritable_places_are_told_before_and_while_writing(place, says: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    target = place(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputError, match=says) as early:
        probe(target)
    with pytest.raises(OutputError, match=says) as late, replacing(target) as temporary:
        temporary.write_text("never")
    assert "\n" not in str(early.value) + str(late.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_probing_creates_nothing(tmp_path: Path) -> None:
    probe(tmp_path / "a" / "b" / "x.png")
    assert not list(tmp_path.iterdir())


def test_files_are_as_readable_as_the_person_wants(tmp_path: Path) -> None:
    """Some writers make their files private; a checkpoint or figure should follow the umask like any other file."""
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.write_text("x")
    with replacing(ours) as temporary:
        temporary.write_text("x")
        temporary.chmod(0o600)
    assert ours.stat().st_mode == plain.stat().st_mode

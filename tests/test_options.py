"""Options said once: as JSON and back, as a command line and back through the command line's own parser."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from posviz.again import words_for
from posviz.errors import PosvizError
from posviz.options import (
    CaptureRequest,
    CompareRequest,
    InspectRequest,
    LookRequest,
    RenderRequest,
    flag_of,
    from_options,
    parse_heads,
    parse_lengths,
    parse_window,
    to_command,
    to_options,
)

REQUESTS = [CaptureRequest, LookRequest, InspectRequest, CompareRequest, RenderRequest]


def other(f: Any, folder: Path) -> Any:
    """A value for a field that is not its default, hard to say on a command line where it may be any text."""
    return {
        "str": "other",
        "str | None": 'it\'s --a "$HOME" té~xt\nof 2 lines',
        "int": -7,
        "int | None": 3,
        "float | None": 2.5e-7,
        "bool": not f.default,
        "bool | None": False,
        "Path | None": folder / "a folder" / "-file.npy",
        "tuple[Path, ...]": (folder / "one.png", folder / "two.pdf"),
    }[f.type]


FIELDS = [pytest.param(cls, f.name, id=f"{cls.__name__}.{f.name}") for cls in REQUESTS for f in fields(cls)]


@pytest.mark.parametrize(("cls", "name"), FIELDS)
def test_every_field_survives_json(cls: type[Any], name: str, tmp_path: Path) -> None:
    f = next(f for f in fields(cls) if f.name == name)
    request = cls(**{name: other(f, tmp_path)})
    said = json.loads(json.dumps(to_options(request)))
    assert list(said) == [flag_of(f)]
    assert from_options(cls, said) == request


@pytest.mark.parametrize("cls", REQUESTS)
def test_all_fields_together_and_none(cls: type[Any], tmp_path: Path) -> None:
    assert to_options(cls()) == {}
    assert from_options(cls, {}) == cls()
    every = cls(**{f.name: other(f, tmp_path) for f in fields(cls)})
    said = json.loads(json.dumps(to_options(every)))
    assert len(said) == len(fields(cls))
    assert from_options(cls, said) == every


@pytest.fixture
def parsed(posviz: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], RenderRequest]:
    """The request that `posviz render` makes of a command line, before anything is drawn."""
    seen: list[RenderRequest] = []
    monkeypatch.setattr("posviz.render.stacks_of", lambda request: seen.append(request) or stop())

    def stop() -> None:
        raise PosvizError("seen")

    def parse(words: list[str]) -> RenderRequest:
        assert words[0] == "posviz"
        assert posviz(*words[1:]).err == "posviz: seen\n"
        return seen.pop()

    return parse


@pytest.mark.parametrize("name", [f.name for f in fields(RenderRequest)])
def test_every_field_survives_the_command_line(name: str, parsed: Callable[..., RenderRequest], tmp_path: Path) -> None:
    f = next(f for f in fields(RenderRequest) if f.name == name)
    request = RenderRequest(**{name: other(f, tmp_path)})
    line = shlex.join(to_command("render", to_options(request)))
    assert parsed(shlex.split(line)) == request


def test_switches_can_be_said_both_ways(parsed: Callable[..., RenderRequest]) -> None:
    for words, name, value in [
        (["--no-mask"], "mask", False),
        (["--mask"], "mask", True),
        (["--scale-scores"], "scale_scores", True),
        (["--no-scale-scores"], "scale_scores", False),
        (["--diverging"], "diverging", True),
        (["--layer", "-2"], "layer", -2),
    ]:
        assert getattr(parsed(["posviz", "render", *words]), name) == value
    assert parsed(["posviz", "render"]) == RenderRequest()


def test_the_home_folder_is_not_named(
    parsed: Callable[..., RenderRequest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A figure that goes to a reviewer should not name its author, and its command line must work all the same."""
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    home = tmp_path / "ada"
    (home / "w").mkdir(parents=True)
    (home / "w" / "m.pt").touch()
    request = RenderRequest(ckpt=str(home / "w" / "m.pt"), text_file=home / "t.txt", out=(home / "f.png",))
    said = to_options(request)
    assert said == {"ckpt": "~/w/m.pt", "text-file": "~/t.txt", "out": ["~/f.png"]}
    back = from_options(RenderRequest, said)
    assert (back.text_file, back.out) == (request.text_file, request.out)
    again = parsed(shlex.split(shlex.join(to_command("render", said))))
    assert (again.text_file, again.out) == (request.text_file, request.out)
    assert Path(str(again.ckpt)).expanduser() == home / "w" / "m.pt"


def test_a_text_that_begins_with_a_tilde_is_no_path(tmp_path: Path) -> None:
    recipe = {"command": "render", "options": {"text": "~ 40 words", "from": "~/x.npz"}, "arguments": []}
    words = words_for(recipe, tmp_path / "f.png")
    assert words[1:] == ["--text", "~ 40 words", "--from", str(Path.home() / "x.npz"), "--out", f"{tmp_path}/f.png"]


def test_relative_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.pt").touch()
    said = to_options(RenderRequest(ckpt="m.pt", tokens=Path("t.npy"), out=(Path("f.png"),)))
    assert said == {"ckpt": f"{tmp_path}/m.pt", "tokens": f"{tmp_path}/t.npy", "out": [f"{tmp_path}/f.png"]}
    assert to_options(RenderRequest(ckpt="owner/model")) == {"ckpt": "owner/model"}  # a hub id is no path


def test_an_unknown_option_gets_a_suggestion() -> None:
    with pytest.raises(PosvizError, match=r"unknown option 'seqlen'; did you mean 'seq-len'\?"):
        from_options(RenderRequest, {"seqlen": 3})


@pytest.mark.parametrize(
    ("text", "heads"),
    [("1", (1,)), ("1-4,7", (1, 2, 3, 4, 7)), (" 2 , 1 ", (2, 1)), ("3-3", (3,)), ("2,1-3,2", (2, 1, 3)), ("0", (0,))],
)
def test_heads(text: str, heads: tuple[int, ...]) -> None:
    assert parse_heads(text) == heads


@pytest.mark.parametrize("text", ["", "a", "1,", "1-", "-3", "1-2-3", "1.5", "4-2", "1;2", "1-99999999"])
def test_wrong_heads_are_refused(text: str) -> None:
    with pytest.raises(PosvizError, match="heads "):
        parse_heads(text)


def test_lengths_grow() -> None:
    assert parse_lengths("512,1024, 2048") == (512, 1024, 2048)
    for wrong in ("", "a", "512,512", "1024,512", "0,5", "-1"):
        with pytest.raises(PosvizError, match=r"lengths .*; expected"):
            parse_lengths(wrong)


def test_a_window_has_two_ends() -> None:
    assert parse_window("200:240") == (200, 240)
    for wrong in ("", "5", "5:5", "9:3", "a:b", ":"):
        with pytest.raises(PosvizError, match="expected two positions with the smaller first"):
            parse_window(wrong)

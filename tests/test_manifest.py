"""A manifest's figures, and everything that can be wrong with it: said at once, each with its place."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from small_models import config_of, model_of, saved

from posviz.errors import ManifestError
from posviz.manifest import OPTIONS, read_manifest
from posviz.options import RenderRequest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a checkpoint, texts and a place for the manifest."""
    saved(model_of(config_of("kerple", n_layer=1, n_head=2, n_embd=8)), tmp_path / "c.safetensors")
    (tmp_path / "words.txt").write_text("some words")
    (tmp_path / "ids.json").write_text("[1, 2]")
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def write(project: Path, text: str) -> Path:
    path = project / "figures.toml"
    path.write_text(text)
    return path


def wrong(project: Path, text: str) -> list[str]:
    """What is said to be wrong, without the name of the manifest that every line begins with."""
    path = write(project, text)
    with pytest.raises(ManifestError) as caught:
        read_manifest(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ").replace(f"{project}/", "") for line in lines]


def test_figures_take_defaults_and_their_own_options(project: Path) -> None:
    first, second = read_manifest(
        write(
            project,
            """
            [defaults]
            ckpt = "c.safetensors"
            seq-len = 64
            cmap = "magma"

            [[figure]]
            name = "one"
            layer = 1
            out = ["deep/one.png", "one.pdf"]

            [[figure]]
            seq_len = 32
            mask = false
            dpi = 100
            """,
        )
    )
    ckpt = str(project / "c.safetensors")
    outs = (project / "deep/one.png", project / "one.pdf")
    assert first.name == "one"
    assert first.request == RenderRequest(ckpt=ckpt, seq_len=64, cmap="magma", layer=1, out=outs)
    assert second.name == "figure-2"
    assert second.request == RenderRequest(
        ckpt=ckpt, seq_len=32, cmap="magma", mask=False, dpi=100, out=(project / "figure-2.png",)
    )


def test_every_option_of_render_has_its_place_in_a_manifest(project: Path) -> None:
    values = {"str": '"x"', "int": "1", "float": "1.5", "bool": "true", "Path": '"words.txt"', "tuple[Path, ...]": "[]"}
    special = {
        "ckpt": '"c.safetensors"', "method": '"kerple"', "out": '"f.png"', "from": '"ids.json"', "heads": '"1-2"',
        "quantity": '"scores"', "reduce": '"max"', "extrapolate": '"8,16"', "scale": '"shared"', "cmap": '"magma"',
    }  # fmt: skip
    for spelled in (lambda flag: flag, lambda flag: flag.replace("-", "_")):
        lines = [
            f"{spelled(flag)} = {special.get(flag, values[f.type.removesuffix(' | None')])}"
            for flag, f in OPTIONS.items()
            if flag != "diverging"  # which does not go with logarithmic colours
        ]
        (figure,) = read_manifest(write(project, "[[figure]]\n" + "\n".join(lines)))
        unset = {f.name for f in fields(RenderRequest) if getattr(figure.request, f.name) == f.default}
        assert unset <= {"diverging", "mask"}


def test_relative_paths_are_relative_to_the_manifest(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
        [[figure]]
        ckpt = "c.safetensors"
        text-file = "words.txt"
        config = "../{}/config.json"
        tokenizer = "config.json"
        [[figure]]
        method = "rope"
        tokens = "{}/ids.json"
        tokenizer = "bytes"
        """.replace("{}", project.name, 1).replace("{}", str(project))
    monkeypatch.chdir("/")
    first, second = (figure.request for figure in read_manifest(write(project, text)))
    assert first.ckpt == str(project / "c.safetensors")
    assert first.text_file == project / "words.txt"
    assert first.config is not None
    assert first.config.samefile(project / "config.json")
    assert first.tokenizer == str(project / "config.json")
    assert second.tokens == project / "ids.json"
    assert second.tokenizer == "bytes"
    monkeypatch.chdir(project)
    assert read_manifest(Path("figures.toml"))[0].request.ckpt == "c.safetensors"


def test_the_home_folder_can_be_a_tilde(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project))
    (figure,) = read_manifest(write(project, '[[figure]]\nckpt = "~/c.safetensors"\nout = "~/f.png"'))
    assert figure.request.ckpt == str(project / "c.safetensors")
    assert figure.request.out == (project / "f.png",)


def test_hub_ids_are_left_as_they_are(project: Path) -> None:
    (project / "runs").mkdir()
    (figure,) = read_manifest(write(project, '[[figure]]\nckpt = "some-owner/some-model-1.5"'))
    assert figure.request.ckpt == "some-owner/some-model-1.5"
    assert wrong(project, '[[figure]]\nckpt = "runs/some-model"') == [
        "[[figure]] 1: ckpt is 'runs/some-model'; there is no file or folder runs/some-model"
    ]


def test_everything_wrong_is_said_at_once(project: Path) -> None:
    said = wrong(
        project,
        """
        colour = "red"
        [defaults]
        cmap = "no-such-map"
        seq-len = "long"
        name = "all"

        [[figure]]
        name = "a"
        method = "kerpel"
        out = "f.png"

        [[figure]]
        name = "a"
        method = "kerple"
        layr = 3
        heads = "4-1"
        text-file = "none.txt"
        out = "sub/../f.png"

        [[figure]]
        name = "c/d"
        ckpt = true
        layer = 1.5
        mask = 1
        dpi = "high"
        out = "f.jpg"

        [[figure]]
        ckpt = "none.safetensors"
        seq-len = 12
        seq_len = 12
        out = []

        [[figure]]
        name = "nothing"

        [[figure]]
        method = "rope"
        layer = 0
        quantity = "score"
        reduce = "median"
        extrapolate = "64,32"
        out = ["g.png", "g.png"]
        """,
    )
    expected = [
        "unknown table 'colour'",
        "[defaults]: seq-len is 'long'; expected a whole number",
        "[defaults]: name belongs into a [[figure]] table; every figure has its own",
        "[defaults]: unknown colour map 'no-such-map'",
        "[[figure]] 1 (a): unknown method 'kerpel'; did you mean 'kerple'?",
        "[[figure]] 2 (a): unknown option 'layr'; did you mean 'layer'?",
        "[[figure]] 2 (a): text-file is 'none.txt'; there is no file none.txt",
        "[[figure]] 2 (a): heads '4-1': '4-1' counts down; expected the smaller number first",
        "[[figure]] 3: name is 'c/d'; expected text that can be the name of a file",
        "[[figure]] 3 (figure-3): ckpt is True; expected text",
        "[[figure]] 3 (figure-3): layer is 1.5; expected a whole number",
        "[[figure]] 3 (figure-3): mask is 1; expected true or false",
        "[[figure]] 3 (figure-3): dpi is 'high'; expected a number",
        "[[figure]] 3 (figure-3): f.jpg: unknown kind of file '.jpg'",
        "[[figure]] 4: ckpt is 'none.safetensors'; there is no file or folder none.safetensors",
        "[[figure]] 4: seq-len is there twice, with a dash and with an underscore; expected one of them",
        "[[figure]] 4: out is []; expected at least one file",
        "[[figure]] 5 (nothing): neither ckpt, method nor from is given; expected one of them",
        "[[figure]] 6: unknown reduction 'median'",
        "[[figure]] 6: layer is 0; layers count from 1, or from -1 at the end",
        "[[figure]] 6: unknown quantity 'score'; did you mean 'scores'?",
        "[[figure]] 6: lengths '64,32'; expected growing numbers such as 512,1024,2048",
        "[[figure]] 1 and 2 are both named 'a'; expected different names",
        "[[figure]] 1 and 2 (a) both write sub/../f.png; expected different files",
        "[[figure]] 6 (figure-6) writes g.png twice; expected different files",
    ]
    assert [line[: len(start)] for line, start in zip(said, expected, strict=False)] == expected
    assert len(said) == len(expected)
    assert not any(project.glob("*.png"))


def test_outputs_that_cannot_be_written(project: Path) -> None:
    said = wrong(
        project,
        '[defaults]\nmethod = "rope"\n[[figure]]\nout = "/proc/f.png"\n[[figure]]\nout = "words.txt/f.png"\n'
        '[[figure]]\nname = "f.png"\nout = "."',
    )
    assert [line.split(":")[0] for line in said] == ["[[figure]] 1", "[[figure]] 2", "[[figure]] 3 (f.png)"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[figure]\n", "is not TOML"),
        ("", "has no [[figure]] table; expected at least one"),
        ("[defaults]\nseq-len = 3", "has no [[figure]] table; expected at least one"),
        ("[figure]\nname = 'a'", "expected one [defaults] table and [[figure]] tables"),
        ("figure = [1]", "expected one [defaults] table and [[figure]] tables"),
        ("defaults = 3\n[[figure]]", "expected one [defaults] table and [[figure]] tables"),
    ],
)
def test_what_is_no_manifest(text: str, said: str, project: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        read_manifest(write(project, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_manifest_that_cannot_be_read(project: Path) -> None:
    (project / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name, said in (("none.toml", "cannot be read: No such file"), (".", "cannot be read"), ("binary.toml", "TOML")):
        with pytest.raises(ManifestError, match=said):
            read_manifest(project / name)

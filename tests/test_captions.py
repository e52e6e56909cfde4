"""Captions in words, and LaTeX that prints them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from batch_cases import checkpoint, draw, figure

from posviz.captions import caption, escape, latex, write_captions
from posviz.errors import OutputError
from posviz.outputs import read_recipe


def recipe(**changes: Any) -> dict[str, Any]:
    usual = {"title": "KERPLE", "method": "kerple", "quantity": "bias", "layer": 12, "seq_len": 512, "seed": 0}
    return {**usual, "token_ids_sha256": None, "options": {}, **changes}


def test_a_bias_that_is_the_same_for_every_sequence() -> None:
    assert caption(recipe()) == (
        "Each panel is one head of layer 12: the bias that KERPLE adds to the attention scores, queries down, keys to "
        "the right. The values are the same for every sequence; 512 positions are shown. Each panel has its own colour "
        "scale. Blank cells are positions that no query sees."
    )


def test_values_that_depend_on_the_tokens_name_their_sequence() -> None:
    said = caption(recipe(title="RoPE", quantity="scores", token_ids_sha256="ab", seed=7))
    assert "the attention scores under RoPE, before mask and softmax" in said
    assert "The values depend on the tokens; this is one sequence of 512 positions (seed 7)." in said


@pytest.mark.parametrize(
    ("options", "said", "unsaid"),
    [
        ({"scale": "shared"}, "All panels share one colour scale.", "its own"),
        ({"diverging": True}, "Each panel has its own colour scale centred at zero.", "logarithmic"),
        ({"log": True}, "Each panel has its own logarithmic colour scale.", "zero"),
        ({"mask": False}, "Each panel has its own colour scale.", "Blank"),
        ({"extrapolate": "512,1024"}, "one head of layer 12, at lengths of 512, 1024 positions: ", "512 positions are"),
        ({"extrapolate": "512,1024"}, "lines mark the length of training.", "Each panel has its own"),
    ],
)
def test_a_caption_says_what_the_options_did(options: dict[str, Any], said: str, unsaid: str) -> None:
    found = caption(recipe(options=options))
    assert said in found
    assert unsaid not in found


def test_every_sign_that_latex_takes_for_itself_is_escaped() -> None:
    assert escape("a_b & 50% of $x^2$ {#1} ~ \\y <z> |w|") == (
        r"a\_b \& 50\% of \$x\textasciicircum{}2\$ \{\#1\} \textasciitilde{} \textbackslash{}y "
        r"\textless{}z\textgreater{} \textbar{}w\textbar{}"
    )


def test_the_latex_is_one_figure_with_balanced_braces() -> None:
    text = latex(recipe(title="100% {odd}_name \\ #2"), Path("some/where/fig_1.pdf"), "a name_with $igns")
    lines = text.splitlines()
    assert (lines[0], lines[1], lines[-1]) == (r"\begin{figure}[tp]", r"  \centering", r"\end{figure}")
    assert lines[2] == r"  \includegraphics[width=\linewidth]{fig_1.pdf}"
    assert lines[4] == r"  \label{fig:a-name-with-igns}"
    bare = re.sub(r"\\[\\{}]", "", text)
    depths = [0]
    for sign in bare:
        depths.append(depths[-1] + {"{": 1, "}": -1}.get(sign, 0))
    assert min(depths) == depths[-1] == 0
    assert not re.search(r"(?<!\\)[%#$&]", text)


def test_captions_lie_beside_the_figure_and_take_its_pdf(tmp_path: Path) -> None:
    ckpt = str(checkpoint(tmp_path / "cable.safetensors", "cable"))
    drawn = figure("mine", tmp_path / "f.png", ckpt=ckpt)
    files = [tmp_path / "f.svg", tmp_path / "f.png", tmp_path / "f.pdf", tmp_path / "f.html"]
    draw([replace(drawn, request=replace(drawn.request, out=tuple(files)))])
    assert write_captions("mine", files) == [tmp_path / "mine.caption.txt", tmp_path / "mine.tex"]
    words = (tmp_path / "mine.caption.txt").read_text()
    assert words == caption(read_recipe(files[0])) + "\n"
    assert words.startswith("Each panel is one head of layer 2: the bias that CABLE adds")
    assert "one sequence of 16 positions (seed 0)" in words
    assert r"\includegraphics[width=\linewidth]{f.pdf}" in (tmp_path / "mine.tex").read_text()
    write_captions("mine", files[:2])
    assert r"\includegraphics[width=\linewidth]{f.png}" in (tmp_path / "mine.tex").read_text()
    write_captions("mine", files[:1])
    assert r"\includesvg[width=\linewidth]{f.svg}" in (tmp_path / "mine.tex").read_text()
    assert write_captions("page", files[3:]) == [tmp_path / "page.caption.txt"]  # no LaTeX takes a page


def test_a_figure_without_a_recipe_has_no_caption(tmp_path: Path) -> None:
    (tmp_path / "f.pdf").write_bytes(b"%PDF-1.4")
    with pytest.raises(OutputError, match="carries no recipe"):
        write_captions("f", [tmp_path / "f.pdf"])
    assert [file.name for file in tmp_path.iterdir()] == ["f.pdf"]

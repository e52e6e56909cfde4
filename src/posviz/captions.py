"""A caption in words and a LaTeX figure, beside each figure of a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posviz.outputs import read_recipe
from posviz.outputs.atomic import replacing

SHOWN = {
    "bias": "the bias that {title} adds to the attention scores",
    "scores": "the attention scores under {title}, before mask and softmax",
    "content": "the content scores (scaled query-key products, no position) under {title}",
    "attention": "the attention weights under {title}",
}


def caption(recipe: dict[str, Any]) -> str:
    """What the figure shows, in two or three sentences."""
    shown = SHOWN.get(str(recipe.get("quantity")), "{title}").format(title=recipe.get("title") or recipe.get("method"))
    first = f"Each panel is one head of layer {recipe.get('layer')}: {shown}, queries down and keys to the right."
    length = recipe.get("seq_len")
    if recipe.get("token_ids_sha256") is not None:
        seed = recipe.get("seed")
        second = f"The values depend on the tokens; this is one sequence of {length} positions (seed {seed})."
    else:
        second = f"The values are the same for every sequence; {length} positions are shown."
    third = "Blank cells are future positions, which no query sees; each panel has its own colour scale."
    shared = recipe.get("options", {}).get("scale") == "shared"
    if shared:
        third = "Blank cells are future positions, which no query sees; all panels share one colour scale."
    unmasked = recipe.get("options", {}).get("mask") is False
    return " ".join([first, second] if unmasked else [first, second, third])


def latex(recipe: dict[str, Any], file: Path, label: str) -> str:
    """A `figure` environment that includes the file."""
    lines = [
        r"\begin{figure}[tp]",
        r"  \centering",
        rf"  \includegraphics[width=\linewidth]{{{file.name}}}",
        rf"  \caption{{{_escape(caption(recipe))}}}",
        rf"  \label{{fig:{label}}}",
        r"\end{figure}",
    ]
    return "\n".join(lines) + "\n"


def write_captions(name: str, paths: list[Path]) -> list[Path]:
    """`NAME.caption.txt` and `NAME.tex` beside a figure; the LaTeX takes its PDF if there is one."""
    best = next((path for path in paths if path.suffix == ".pdf"), paths[0])
    recipe = read_recipe(best)
    written = []
    for suffix, text in ((".caption.txt", caption(recipe) + "\n"), (".tex", latex(recipe, best, name))):
        target = best.with_name(name + suffix)
        with replacing(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def _escape(text: str) -> str:
    for sign in "&%$#_{}":
        text = text.replace(sign, "\\" + sign)
    return text

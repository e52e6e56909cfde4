"""A caption in words and a LaTeX figure, beside each figure of a batch, from the recipe that the figure carries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from posviz.outputs import read_recipe
from posviz.outputs.atomic import replacing

SHOWN = {
    "bias": "the bias that {title} adds to the attention scores",
    "scores": "the attention scores under {title}, before mask and softmax",
    "content": "the content scores (query times key, without position) of a model with {title}",
    "attention": "the attention weights under {title}",
}
# How LaTeX takes each kind of file, the best kind first; it cannot take a page.
INCLUDED = {".pdf": "includegraphics", ".png": "includegraphics", ".svg": "includesvg"}
ESCAPED = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    **{sign: "\\" + sign for sign in "&%$#_{}"},
}  # fmt: skip


def caption(recipe: Mapping[str, Any]) -> str:
    """What the figure shows, in a few sentences."""
    return " ".join([_panels(recipe), _positions(recipe), *_colours(recipe.get("options", {}))])


def _panels(recipe: Mapping[str, Any]) -> str:
    title = recipe.get("title") or recipe.get("method")
    shown = SHOWN.get(str(recipe.get("quantity")), "{title}").format(title=title)
    lengths = recipe.get("options", {}).get("extrapolate")
    several = f", at lengths of {lengths.replace(',', ', ')} positions" if lengths else ""
    return f"Each panel is one head of layer {recipe.get('layer')}{several}: {shown}, queries down, keys to the right."


def _positions(recipe: Mapping[str, Any]) -> str:
    lengths = recipe.get("options", {}).get("extrapolate")
    if recipe.get("token_ids_sha256") is None:
        same = "The values are the same for every sequence"
        return f"{same}." if lengths else f"{same}; {recipe.get('seq_len')} positions are shown."
    if lengths:
        return f"The values depend on the tokens (seed {recipe.get('seed')})."
    return (
        f"The values depend on the tokens; this is one sequence of {recipe.get('seq_len')} positions "
        f"(seed {recipe.get('seed')})."
    )


def _colours(options: Mapping[str, Any]) -> list[str]:
    said = ["All panels share one" if options.get("scale") == "shared" else "Each panel has its own"]
    said.append("logarithmic colour scale" if options.get("log") else "colour scale")
    said.append("centred at zero" if options.get("diverging") else "")
    colours = " ".join(filter(None, said)) + "."
    if "extrapolate" in options:
        return ["The lengths of a head share one colour scale; lines mark the length of training."]
    return [colours] if options.get("mask") is False else [colours, "Blank cells are positions that no query sees."]


def latex(recipe: Mapping[str, Any], file: Path, name: str) -> str:
    """A `figure` environment that includes the file."""
    label = re.sub(r"[^A-Za-z0-9:.-]+", "-", name)
    lines = [
        r"\begin{figure}[tp]",
        r"  \centering",
        rf"  \{INCLUDED[file.suffix.lower()]}[width=\linewidth]{{{file.name}}}",
        rf"  \caption{{{escape(caption(recipe))}}}",
        rf"  \label{{fig:{label}}}",
        r"\end{figure}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text as LaTeX prints it."""
    return "".join(ESCAPED.get(sign, sign) for sign in text)


def write_captions(name: str, paths: Sequence[Path]) -> list[Path]:
    """`NAME.caption.txt` and `NAME.tex` beside a figure; the LaTeX takes its PDF if there is one."""
    ranked = sorted(paths, key=lambda path: [*INCLUDED, path.suffix.lower()].index(path.suffix.lower()))
    best = ranked[0]
    recipe = read_recipe(best)
    texts = {".caption.txt": caption(recipe) + "\n"}
    if best.suffix.lower() in INCLUDED:
        texts[".tex"] = latex(recipe, best, name)
    written = [best.with_name(name + suffix) for suffix in texts]
    for target, text in zip(written, texts.values(), strict=True):
        with replacing(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return written

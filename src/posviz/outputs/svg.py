"""SVG: text stays text, a heatmap is one image, the recipe is in the metadata element."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from posviz.errors import OutputError
from posviz.outputs import recipes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"


def write(figure: Figure, path: Path, recipe: Mapping[str, Any]) -> None:
    known: dict[str, str | None] = {
        "Creator": recipes.CREATOR,
        "Description": recipes.to_text(recipe),
        "Date": None,  # the same call makes the same bytes
    }
    if title := figure.get_suptitle():
        known["Title"] = title.replace("\n", " ")
    figure.savefig(path, format="svg", metadata=known)


def read(path: Path) -> str | None:
    try:
        for _, element in ElementTree.iterparse(path):
            if element.tag == _DESCRIPTION:
                return element.text  # near the top; the pictures after it are not parsed
    except ElementTree.ParseError as error:
        raise OutputError(f"{path} is no SVG picture, or a broken one; expected a figure that posviz made") from error
    return None

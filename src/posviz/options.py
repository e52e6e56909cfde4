"""What can be asked for, said once: command line, manifest and a figure's recipe are all read off these fields."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from posviz.errors import PosvizError, unknown_name

T = TypeVar("T")
MOST_HEADS = 10_000  # a typing error should not fill the memory with numbers


def option(default: Any, help: str, *, flag: str | None = None, group: str = "What is drawn", short: str = "") -> Any:
    """A field that is also a command-line option; `flag` where it is not the field's own name."""
    return field(default=default, metadata={"help": help, "flag": flag, "group": group, "short": short})


def flag_of(f: Any) -> str:
    """The option's name without dashes in front: `seq-len`."""
    return f.metadata["flag"] or f.name.replace("_", "-")


MODEL, SEQUENCE, DRAWING, FIGURE, RUNNING = "The model", "The sequence", "What is drawn", "The figure", "Running"


@dataclass(frozen=True)
class CaptureRequest:
    """One quantity of one layer of one model on one sequence."""

    ckpt: str | None = option(None, "Checkpoint: a file, a folder or a hub id. Left out: the bundled one.", group=MODEL)
    method: str | None = option(None, "Positional method. Left out: the checkpoint tells.", group=MODEL)
    model: str | None = option(None, "package.module:function that builds your own module.", group=MODEL)
    config: Path | None = option(None, "JSON file with what the checkpoint cannot say.", group=MODEL)
    n_head: int | None = option(None, "Number of heads, where the checkpoint cannot say.", group=MODEL)
    alibi_slopes: str | None = option(None, "ALiBi slopes: geometric or interleaved.", group=MODEL)
    rope_pairing: str | None = option(None, "RoPE pairs: halves or neighbours.", group=MODEL)
    rope_base: float | None = option(None, "RoPE base.", group=MODEL)
    rotary_dim: int | None = option(None, "RoPE turns only this many numbers of each head.", group=MODEL)
    scale_scores: bool | None = option(None, "Whether scores are divided by sqrt(head size).", group=MODEL)
    revision: str | None = option(None, "Revision of a hub id.", group=MODEL)
    trust_remote_code: bool = option(False, "Run the Python code that a hub model brings.", group=MODEL)
    stack: str | None = option(None, "Of an encoder-decoder: encoder, decoder or cross.", group=MODEL)

    quantity: str | None = option(None, "bias, scores, content or attention. Left out: bias, or scores for RoPE.")
    layer: int = option(-1, "Layer from 1; negative from the end.")
    heads: str | None = option(None, "Some heads only, such as 1-4,7.")
    mask: bool = option(True, "Leave future positions blank.")
    raw: bool = option(False, "A bias stored as stripes (BLOOM, MPT): as stored, not relative to the query.")
    reduce: str = option("mean", "A cell of a long sequence shows its mean, max, min or absmax.")

    text: str | None = option(None, "Text to run on. Left out: a sample that ships with posviz.", group=SEQUENCE)
    text_file: Path | None = option(None, "File with text to run on.", group=SEQUENCE)
    tokens: Path | None = option(None, "File with token ids: .npy, .bin (uint16) or .json.", group=SEQUENCE)
    random_tokens: bool = option(False, "Random token ids instead of text.", group=SEQUENCE)
    tokenizer: str | None = option(None, "Tokenizer: a folder, a hub id, or 'bytes'.", group=SEQUENCE)
    seq_len: int = option(512, "Positions.", group=SEQUENCE)
    seed: int = option(0, "Picks the window of the text.", group=SEQUENCE)

    device: str = option("auto", "auto, cpu, cuda or mps.", group=RUNNING)
    device_map: str | None = option(None, "auto: spread a large model over devices and disk.", group=RUNNING)
    dtype: str | None = option(None, "float32, bfloat16 or float16 to compute in.", group=RUNNING)
    threads: int | None = option(None, "CPU threads.", group=RUNNING)
    verify: bool = option(False, "Check the captured scores against the model's own attention.", group=RUNNING)

    def head_numbers(self) -> tuple[int, ...] | None:
        """`1-4,7` as numbers, or None for all heads."""
        return None if self.heads is None else parse_heads(self.heads)


@dataclass(frozen=True)
class LookRequest:
    """How a figure looks."""

    scale: str = option("head", "Colour scale of each 'head' alone, or 'shared'.", group=FIGURE)
    cmap: str | None = option(None, "Any matplotlib colour map.", group=FIGURE)
    diverging: bool = option(False, "Colours centred at zero.", group=FIGURE)
    log: bool = option(False, "Logarithmic colours.", group=FIGURE)
    dpi: float | None = option(None, "Least resolution; raised until a cell is whole pixels.", group=FIGURE)
    title: str | None = option(None, "Title above the grid.", group=FIGURE)


@dataclass(frozen=True)
class InspectRequest(LookRequest, CaptureRequest):
    """A close look at one layer's heads."""

    from_file: Path | None = option(None, "Look at a stored capture (.npz) instead.", flag="from", group=FIGURE)
    window: str | None = option(None, "Positions to show large, with their tokens, such as 200:240.", group=FIGURE)
    out: tuple[Path, ...] = option((), "Figure of one head: png, pdf or svg; may repeat.", group=FIGURE, short="-o")


@dataclass(frozen=True)
class CompareRequest(LookRequest, CaptureRequest):
    """The same layer of several models."""

    out: tuple[Path, ...] = option((), "Figure: png, pdf or svg; gif with --steps.", group=FIGURE, short="-o")


@dataclass(frozen=True)
class RenderRequest(LookRequest, CaptureRequest):
    """A figure of a capture."""

    from_file: Path | None = option(None, "Draw a stored capture (.npz) instead.", flag="from", group=FIGURE)
    extrapolate: str | None = option(None, "Several lengths, such as 512,1024,2048.", group=FIGURE)
    out: tuple[Path, ...] = option((), "File to write: png, pdf, svg or html; may repeat.", group=FIGURE, short="-o")


def parse_heads(text: str) -> tuple[int, ...]:
    """`1-4,7` as numbers."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            span = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise PosvizError(
                f"heads {text!r}: {part!r} is no number or range; expected something like 1-4,7"
            ) from None
        if not span:
            raise PosvizError(f"heads {text!r}: {part!r} counts down; expected the smaller number first")
        if len(span) > MOST_HEADS:
            raise PosvizError(f"heads {text!r}: {part!r} names {len(span)} heads; no layer has so many")
        found.extend(span)
    return tuple(dict.fromkeys(found))


def parse_lengths(text: str) -> tuple[int, ...]:
    """`512,1024` as numbers."""
    try:
        lengths = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise PosvizError(f"lengths {text!r}; expected whole numbers such as 512,1024,2048") from None
    if any(length < 1 for length in lengths) or sorted(set(lengths)) != list(lengths):
        raise PosvizError(f"lengths {text!r}; expected growing numbers such as 512,1024,2048")
    return lengths


def to_options(request: Any) -> dict[str, Any]:
    """Everything that differs from its default, by option name, as JSON can hold it; paths no longer relative."""
    said: dict[str, Any] = {}
    for f in fields(request):
        value = getattr(request, f.name)
        if f.name == "ckpt" and value is not None and Path(value).expanduser().exists():
            value = Path(value)
        if value != f.default:
            said[flag_of(f)] = [plain_path(v) for v in value] if isinstance(value, tuple) else _plain(value)
    return said


def from_options(cls: type[T], said: Mapping[str, Any]) -> T:
    """The request that `to_options` wrote."""
    known = {flag_of(f): f for f in fields(cls)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, value in said.items():
        if name not in known:
            raise PosvizError(unknown_name("option", name, known))
        values[known[name].name] = _typed(known[name], value)
    return cls(**values)


def _typed(f: Any, value: Any) -> Any:
    if "tuple" in f.type:
        return tuple(Path(v).expanduser() for v in value)
    return Path(value).expanduser() if "Path" in f.type else value


def _plain(value: Any) -> Any:
    return plain_path(value) if isinstance(value, Path) else value


def plain_path(path: Path) -> str:
    """An absolute path, with the home folder as `~`: a figure that goes to a reviewer should not name its author."""
    path, home = path.expanduser().absolute(), Path.home()
    return os.path.join("~", path.relative_to(home)) if path.is_relative_to(home) else str(path)


def parse_window(text: str) -> tuple[int, int]:
    """`200:240` as two numbers."""
    first, colon, last = text.partition(":")
    try:
        window = (int(first), int(last))
    except ValueError:
        window = (0, 0)
    if not colon or window[0] >= window[1]:
        raise PosvizError(f"window {text!r}; expected two positions with the smaller first, such as 200:240")
    return window


def to_command(command: str, said: Mapping[str, Any], arguments: Sequence[str] = ()) -> list[str]:
    """The options as the words of a command line."""
    words = ["posviz", command, *arguments]
    for name, value in said.items():
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
            continue
        for each in value if isinstance(value, (list, tuple)) else [value]:
            words += [f"--{name}", str(each)]
    return words

"""A close look: the numbers of every head that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from posviz.errors import MethodError, PosvizError
from posviz.options import CaptureRequest, InspectRequest
from posviz.stack import HeadStack
from posviz.stats import HeadStats, head_stats, variance_shares


@dataclass(frozen=True)
class Inspected:
    """One layer, the numbers of its heads, and the same as plain data with what only a model can add."""

    stack: HeadStack
    stats: list[HeadStats]
    rows: list[dict[str, Any]]


def inspect(request: InspectRequest, layers: str) -> list[Inspected]:
    """Look at one layer (`3`, `-1`), or at `all`."""
    if request.from_file is not None:
        from posviz.outputs.arrays import load_stack

        stack = load_stack(request.from_file)
        heads = request.head_numbers()
        return [_measure(stack if heads is None else stack.select(heads), None)]
    from posviz.session import Session

    plain = CaptureRequest(**{f.name: getattr(request, f.name) for f in fields(CaptureRequest)})
    asked = [replace(plain, layer=number) for number in _layers(plain, layers)]
    contents = [replace(each, quantity="content") for each in asked]
    session = Session([*asked, *contents])
    found = []
    for each, content in zip(asked, contents, strict=True):
        stack = session.stack(each, profile=True)
        scored = stack.meta["quantity"] == "scores" and stack.cell == 1
        found.append(_measure(stack, session.stack(content) if scored else None))
    return found


def _layers(request: CaptureRequest, layers: str) -> Sequence[int]:
    if layers != "all":
        try:
            return [int(layers)]
        except ValueError:
            raise PosvizError(
                f"layer {layers!r}; expected a number from 1, a negative one from the end, or all"
            ) from None
    from posviz.subjects import open_subject

    subject = open_subject(request)
    if subject.n_layers is None:
        subject.sequence(request)  # a module of one's own shows its layers only when it runs
    count = subject.n_layers
    if count is None:
        raise MethodError("a formula is the same in every layer; leave out --layer all")
    return range(1, count + 1)


def _measure(stack: HeadStack, content: HeadStack | None) -> Inspected:
    stats = head_stats(stack)
    rows = [each.to_json() for each in stats]
    if content is not None:
        for row, shares in zip(rows, variance_shares(stack, content), strict=True):
            row.update({name: value for name, value in shares.to_json().items() if name != "head"})
    return Inspected(stack, stats, rows)

"""What can be known to be wrong with a request before anything is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial

from posviz import methods
from posviz.draw.look import Look
from posviz.errors import PosvizError, unknown_name
from posviz.options import LookRequest, RenderRequest, parse_lengths
from posviz.outputs import can_write
from posviz.rows import QUANTITIES, Folding


def problems(request: RenderRequest) -> Iterator[str]:
    """One line for each value that cannot be meant."""
    look = {f.name: getattr(request, f.name) for f in fields(LookRequest)}
    checks: list[Callable[[], object]] = [
        partial(Look, **look),
        partial(Folding, reduce=request.reduce),
        request.head_numbers,
        partial(_numbers, request),
        *(partial(can_write, path) for path in request.out),
    ]
    if request.quantity is not None:
        checks.append(partial(_one_of, "quantity", request.quantity, QUANTITIES))
    if request.method is not None:
        checks.append(partial(methods.get, request.method))
    if request.extrapolate is not None:
        checks.append(partial(parse_lengths, request.extrapolate))
    for check in checks:
        try:
            check()
        except PosvizError as error:
            yield str(error)


def _numbers(request: RenderRequest) -> None:
    if request.layer == 0:
        raise PosvizError("layer is 0; layers count from 1, or from -1 at the end")
    for name, value, least in (
        ("seq-len", request.seq_len, 1),
        ("seed", request.seed, 0),
        ("n-head", request.n_head, 1),
        ("threads", request.threads, 1),
    ):
        if value is not None and value < least:
            raise PosvizError(f"{name} is {value}; expected {least} or more")


def _one_of(kind: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise PosvizError(unknown_name(kind, name, known))

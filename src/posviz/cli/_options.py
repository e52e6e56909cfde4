"""Turns a request's fields into the options of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from posviz.options import flag_of

_TYPES: dict[str, Any] = {
    "str": str,
    "str | None": Optional[str],  # noqa: UP045  (Typer reads this spelling in every version)
    "int": int,
    "int | None": Optional[int],  # noqa: UP045
    "float | None": Optional[float],  # noqa: UP045
    "bool": bool,
    "bool | None": Optional[bool],  # noqa: UP045
    "Path | None": Optional[Path],  # noqa: UP045
    "tuple[Path, ...]": list[Path],
}

_METAVARS = {"str": "TEXT", "int": "N", "float": "X", "Path": "FILE", "tuple[Path, ...]": "FILE"}


def takes(cls: type[Any], without: Collection[str] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of request `cls`; it is called with the request first, then with its own options.

    Fields in `without` keep their defaults: they mean nothing to the command, or it has its own option for them.
    """

    def wrap(command: Callable[..., Any]) -> Callable[..., Any]:
        own = [
            p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for p in list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        ]
        offered = [f for f in fields(cls) if f.name not in without]
        names = {f.name for f in offered}

        def run(**said: Any) -> Any:
            asked = {n: _at_home(v) for n, v in said.items() if n in names}
            rest = {n: v for n, v in said.items() if n not in names}
            return command(cls(**asked), **rest)

        parameters = own + [_parameter(f) for f in offered]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__doc__, run.__name__ = command.__doc__, command.__name__
        return run

    return wrap


def _at_home(value: Any) -> Any:
    """The value as a request has it. A recipe quotes `~` in its paths, so the shell leaves it for us to expand."""
    if isinstance(value, list):
        return tuple(_at_home(each) for each in value)
    return value.expanduser() if isinstance(value, Path) else value


def _parameter(f: Any) -> inspect.Parameter:
    default, flag = f.default, flag_of(f)
    names = [f"--{flag}"] + ([f.metadata["short"]] if f.metadata["short"] else [])
    if f.type == "bool | None" or (f.type == "bool" and default):
        names = [f"--{flag}/--no-{flag}"]
    shown = typer.Option(
        *names,
        help=f.metadata["help"],
        show_default=default not in (None, False, True, ()),
        metavar=_METAVARS.get(f.type.removesuffix(" | None")),
    )
    annotation = Annotated[_TYPES[f.type], shown]  # type: ignore[valid-type]
    value = [] if default == () else default
    return inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=annotation)

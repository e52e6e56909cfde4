"""A batch's manifest: TOML in, checked figures out. Every mistake is found before the first figure is drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from posviz.errors import ManifestError, PosvizError, unknown_name
from posviz.options import RenderRequest, flag_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OPTIONS = {flag_of(f): f for f in fields(RenderRequest)}
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "Path": ((str,), "a path"),
}


@dataclass(frozen=True)
class Figure:
    """One figure of a batch."""

    name: str
    request: RenderRequest


def read_manifest(path: Path) -> list[Figure]:
    """The figures of a manifest file, or an error that lists everything wrong with it."""
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise ManifestError(f"{path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path} is not TOML: {error}") from error
    return parse_manifest(data, path.parent, str(path))


def parse_manifest(data: Mapping[str, Any], base: Path, where: str) -> list[Figure]:
    """The figures that the tables of a manifest describe; relative paths are relative to `base`."""
    wrong = [
        f"{where}: {unknown_name('table', key, ('defaults', 'figure'))}" for key in set(data) - {"defaults", "figure"}
    ]
    defaults, tables = data.get("defaults", {}), data.get("figure", [])
    if not isinstance(defaults, dict) or not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise ManifestError(f"{where}: expected one [defaults] table and [[figure]] tables")
    if not tables and not wrong:
        raise ManifestError(f"{where} has no [[figure]] table; expected at least one")
    found: list[Figure] = []
    shared = _Table(defaults, base, f"{where}: [defaults]", wrong, may_name=False)
    for number, table in enumerate(tables, start=1):
        name = table.get("name", f"figure-{number}")
        place = f"{where}: [[figure]] {number}" + (f" ({name})" if "name" in table else "")
        if not isinstance(name, str) or not name or "/" in name:
            wrong.append(f"{place}: name is {name!r}; expected text without slashes")
            continue
        own = _Table(table, base, place, wrong)
        values = {**shared.values, **own.values}
        values.setdefault("out", (base / f"{name}.png",))
        try:
            figure = Figure(name, RenderRequest(**values))
            wrong.extend(f"{place}: {problem}" for problem in problems(figure.request))
            found.append(figure)
        except PosvizError as error:
            wrong.append(f"{place}: {error}")
    wrong.extend(f"{where}: {line}" for line in _twice(found))
    if wrong:
        raise ManifestError("\n".join(wrong))
    return found


class _Table:
    """One table's options, typed and with paths resolved; what is wrong goes onto the list."""

    def __init__(
        self, table: Mapping[str, Any], base: Path, place: str, wrong: list[str], may_name: bool = True
    ) -> None:
        self.values: dict[str, Any] = {}
        for key, value in table.items():
            if key == "name" and may_name:
                continue
            flag = key.replace("_", "-")
            if flag not in OPTIONS:
                wrong.append(f"{place}: {unknown_name('option', key, ['name', *OPTIONS])}")
                continue
            try:
                self.values[OPTIONS[flag].name] = _typed(OPTIONS[flag], value, base)
            except PosvizError as error:
                wrong.append(f"{place}: {key} {error}")


def _typed(field: Any, value: Any, base: Path) -> Any:
    if field.type == "tuple[Path, ...]":
        many = value if isinstance(value, list) else [value]
        return tuple(_typed_one("Path", each, base) for each in many)
    if field.name == "ckpt" and isinstance(value, str):
        there = base / Path(value).expanduser()
        return str(there) if there.exists() or not _is_hub_id(value) else value
    return _typed_one(field.type.removesuffix(" | None"), value, base)


def _is_hub_id(value: str) -> bool:
    from posviz.subjects import is_hub_id

    return is_hub_id(value)


def _typed_one(kind: str, value: Any, base: Path) -> Any:
    types, expected = _KINDS[kind]
    fits: bool = isinstance(value, types) and (not isinstance(value, bool) or bool in types)
    if not fits:
        raise PosvizError(f"is {value!r}; expected {expected}")
    return base / Path(value).expanduser() if kind == "Path" else value


def problems(request: RenderRequest) -> Iterator[str]:
    """What can be known to be wrong with a request without opening its model."""
    from posviz import methods
    from posviz.draw.look import Look
    from posviz.options import LookRequest, parse_lengths
    from posviz.outputs import can_write
    from posviz.rows import QUANTITIES, Folding

    def check(call: Callable[[], object]) -> str | None:
        try:
            call()
        except PosvizError as error:
            return str(error)
        return None

    def quantity() -> None:
        if request.quantity is not None and request.quantity not in QUANTITIES:
            raise PosvizError(unknown_name("quantity", request.quantity, QUANTITIES))

    look = {f.name: getattr(request, f.name) for f in fields(LookRequest)}
    checks: list[Callable[[], object]] = [
        partial(Look, **look),
        request.head_numbers,
        quantity,
        partial(Folding, reduce=request.reduce),
        *(partial(can_write, path) for path in request.out),
    ]
    if request.method is not None:
        checks.append(partial(methods.get, request.method))
    if request.extrapolate is not None:
        checks.append(partial(parse_lengths, request.extrapolate))
    yield from filter(None, map(check, checks))
    for flag in ("ckpt", "text-file", "tokens", "config", "from"):
        value = getattr(request, OPTIONS[flag].name)
        if value is not None and not Path(value).exists() and not (flag == "ckpt" and _is_hub_id(str(value))):
            yield f"{flag}: {value} is not there"
    if request.ckpt is None and request.from_file is None and request.method is None and request.model is None:
        yield "neither ckpt, method nor from is given; expected one of them"


def _twice(figures: list[Figure]) -> Iterator[str]:
    names: set[str] = set()
    files: dict[Path, str] = {}
    for figure in figures:
        if figure.name in names:
            yield f"two figures are named {figure.name!r}; expected different names"
        names.add(figure.name)
        for path in figure.request.out:
            other = files.setdefault(path.absolute(), figure.name)
            if other != figure.name:
                yield f"figures {other!r} and {figure.name!r} both write {path}; expected different files"

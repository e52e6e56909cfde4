"""A batch's manifest: TOML in, checked figures out. Every mistake is found before the first figure is drawn."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from posviz.checks import problems
from posviz.errors import ManifestError, PosvizError, unknown_name
from posviz.options import RenderRequest, flag_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OPTIONS = {flag_of(f): f for f in fields(RenderRequest)}
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
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
    defaults, tables = data.get("defaults", {}), data.get("figure", [])
    if not isinstance(defaults, dict) or not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise ManifestError(f"{where}: expected one [defaults] table and [[figure]] tables")
    foreign = sorted(set(data) - {"defaults", "figure"})
    wrong = [f"{where}: {unknown_name('table', key, ('defaults', 'figure'))}" for key in foreign]
    if not tables and not wrong:
        raise ManifestError(f"{where} has no [[figure]] table; expected at least one")
    reader = _Reader(base, f"{where}: [defaults]", wrong)
    shared = reader.options(defaults, named=False)
    reader.check(RenderRequest(**shared))
    found: list[Figure] = []
    for number, table in enumerate(tables, start=1):
        reader.place = f"{where}: [[figure]] {number}"
        found.append(reader.figure(table, number, shared))
    wrong.extend(f"{where}: {line}" for line in _twice(found))
    if wrong:
        raise ManifestError("\n".join(wrong))
    return found


class _Reader:
    """Reads the tables of a manifest; what is wrong goes onto the list, after the place that it is in."""

    def __init__(self, base: Path, place: str, wrong: list[str]) -> None:
        self.base, self.place, self.wrong = base, place, wrong
        self.told: set[str] = set()

    def add(self, problem: str) -> None:
        self.wrong.append(f"{self.place}: {problem}")

    def figure(self, table: Mapping[str, Any], number: int, shared: Mapping[str, Any]) -> Figure:
        before = len(self.wrong)
        name = self.name(table, number)
        if "name" in table:
            self.place += f" ({name})"
        request = RenderRequest(**{"out": (self.base / f"{name}.png",), **shared, **self.options(table)})
        self.check(request)
        unsaid = request.ckpt is None and request.from_file is None and request.method is None and request.model is None
        if unsaid and len(self.wrong) == before:
            self.add("neither ckpt, method nor from is given; expected one of them")
        return Figure(name, request)

    def name(self, table: Mapping[str, Any], number: int) -> str:
        name = table.get("name", f"figure-{number}")
        if isinstance(name, str) and name.isprintable() and name.strip() and not set(name) & set('/\\:*?"<>|'):
            return name
        self.add(f"name is {name!r}; expected text that can be the name of a file")
        return f"figure-{number}"

    def options(self, table: Mapping[str, Any], named: bool = True) -> dict[str, Any]:
        """A table's options by field, typed and with paths resolved."""
        values: dict[str, Any] = {}
        for key, value in table.items():
            flag = key.replace("_", "-")
            if key == "name":
                if not named:
                    self.add("name belongs into a [[figure]] table; every figure has its own")
            elif flag not in OPTIONS:
                self.add(unknown_name("option", key, ["name", *OPTIONS]))
            elif OPTIONS[flag].name in values:
                self.add(f"{flag} is there twice, with a dash and with an underscore; expected one of them")
            else:
                try:
                    values[OPTIONS[flag].name] = _typed(OPTIONS[flag], value, self.base)
                except PosvizError as error:
                    self.add(f"{key} {error}")
        return values

    def check(self, request: RenderRequest) -> None:
        """Add what is wrong with the values; a default that is wrong is so once, not in every figure."""
        for problem in problems(request):
            if problem not in self.told:
                self.add(problem)
            if self.place.endswith("[defaults]"):
                self.told.add(problem)


def _typed(field: Any, value: Any, base: Path) -> Any:
    kind = field.type.removesuffix(" | None")
    if kind == "tuple[Path, ...]":
        many = value if isinstance(value, list) else [value]
        if not many:
            raise PosvizError("is []; expected at least one file")
        return tuple(base / Path(_of_kind("Path", each)).expanduser() for each in many)
    value = _of_kind(kind, value)
    if field.name in ("ckpt", "tokenizer"):
        return _path_or_name(value, base)
    if kind != "Path":
        return value
    path = base / Path(value).expanduser()
    if not path.is_file():
        raise PosvizError(f"is {value!r}; there is no file {path}")
    return path


def _of_kind(kind: str, value: Any) -> Any:
    types, expected = KINDS[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise PosvizError(f"is {value!r}; expected {expected}")
    return value


def _path_or_name(value: str, base: Path) -> str:
    """A path as a path from here, the name of something on the hub as it is."""
    from posviz.subjects import is_hub_id

    path = base / Path(value).expanduser()
    if path.exists():
        return str(path)
    if is_hub_id(value) and (path.parent == base or not path.parent.is_dir()):
        return value
    raise PosvizError(f"is {value!r}; there is no file or folder {path}")


def _twice(figures: list[Figure]) -> Iterator[str]:
    names: dict[str, int] = {}
    files: dict[str, int] = {}
    for number, figure in enumerate(figures, start=1):
        first = names.setdefault(figure.name, number)
        if first != number:
            yield f"[[figure]] {first} and {number} are both named {figure.name!r}; expected different names"
        for index, path in enumerate(figure.request.out):
            place = os.path.realpath(path)
            if path in figure.request.out[:index]:
                yield f"[[figure]] {number} ({figure.name}) writes {path} twice; expected different files"
                continue
            first = files.setdefault(place, number)
            if first != number:
                yield f"[[figure]] {first} and {number} ({figure.name}) both write {path}; expected different files"

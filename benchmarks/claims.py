"""What must hold, each as a ratio of two measurements of one run, or as a bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.commands import FLOOR_BIAS, FLOOR_NPZ, HAND, PLAIN, SEEING, TYPER, name
from benchmarks.measure import Measured

BATCH, RENDERS = "batch of 20 figures", "20 renders"
LENGTHS = (512, 2048, 8192, 16384)
LONG = (*PLAIN, "rope", "cable")


@dataclass(frozen=True)
class Claim:
    """`what`'s time or memory is at most `most` times that of `against`, or `most` seconds or bytes."""

    what: str
    of: str  # "time" or "memory"
    most: float
    against: str | None = None

    def found(self, measured: Mapping[str, Measured]) -> float:
        value = _value(measured[self.what], self.of)
        return value if self.against is None else value / _value(measured[self.against], self.of)

    def holds(self, measured: Mapping[str, Measured]) -> bool:
        return self.found(measured) <= self.most

    def told(self, measured: Mapping[str, Measured]) -> str:
        """One line for a person."""
        found = self.found(measured)
        verdict = "ok  " if found <= self.most else "MISS"
        if self.against is None:
            unit, scale = ("s", 1.0) if self.of == "time" else ("MB", 1e6)
            return f"{verdict} {self.what}: {self.of} {found / scale:.2f} {unit}, at most {self.most / scale:g} {unit}"
        return f"{verdict} {self.what}: {found:.2f} of the {self.of} of {self.against}, at most {self.most:.3g}"


def _value(measured: Measured, of: str) -> float:
    return measured.seconds if of == "time" else measured.peak_bytes


def long_name(method: str, length: int) -> str:
    return f"{method} at {length}"


def of_commands() -> list[Claim]:
    claims = []
    for method in PLAIN:
        claims += [Claim(name(method), "time", 1 / 4, HAND), Claim(name(method), "memory", 1 / 3, HAND)]
        claims += [Claim(name(method), "time", 1.25, FLOOR_BIAS)]
    for method in SEEING:
        faster = 1.5 if method.startswith("dapev2") else 2.2
        claims += [Claim(name(method), "time", 1 / faster, HAND), Claim(name(method), "memory", 0.7, HAND)]
    return [
        *claims,
        Claim("render LLaMA folder", "time", 1 / 1.6, HAND),
        Claim("render --from .npz", "time", 1.25, FLOOR_NPZ),
        Claim("--help", "time", 1.6, TYPER),
        Claim("info, 20 GB file", "time", 1.0),
        Claim("info, 20 GB file", "memory", 100e6),
        Claim(BATCH, "time", 1 / 6, RENDERS),
    ]


def of_scale() -> list[Claim]:
    short, longest = LENGTHS[1], LENGTHS[-1]
    claims = []
    for method in LONG:
        claims += [Claim(long_name(method, longest), "memory", 2e9)]
        claims += [Claim(long_name(method, longest), "memory", 2.5, long_name(method, short))]
        if method in PLAIN:
            claims += [Claim(long_name(method, longest), "time", longest / short, long_name(method, short))]
    return claims

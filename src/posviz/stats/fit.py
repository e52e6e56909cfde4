"""Which simple law a profile over distance follows: a line (ALiBi), a logarithm or a power (KERPLE).

Every law has an intercept, because a trained bias is only known up to what softmax cancels. For a given `a` of the
logarithm or `p` of the power the other two numbers are a straight-line fit, so only one number has to be searched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# A line is as good as a law with one more number unless that explains visibly more, or leaves much less.
VISIBLE_GAIN, MUCH_LESS = 1e-3, 0.1
ROUNDING = 1e-9  # of the variance: float32 values leave about 1e-14 unexplained, which is nothing
FLOAT32 = float(np.finfo(np.float32).eps)  # what varies less than this, relative to its size, is constant
POWERS = (0.01, 2.0)  # the powers that KERPLE allows
GRID = 80
GOLDEN = (5**0.5 - 1) / 2
CLOSE = 1e-3  # a searched number within this share of its bound counts as being there

Shape = Callable[[np.ndarray, float], np.ndarray]  # distances, searched number -> what the profile falls with


@dataclass(frozen=True)
class Law:
    """One law fitted to a profile: `intercept - scale * shape(d)`, where `shape` has at most one more number.

    `r2` is the share of the profile's variance that it explains, each distance counting as often as it occurs.
    `at_limit` says that the search ended at the edge of what it may choose, so the number found means little.
    """

    scale: float
    intercept: float
    r2: float
    shaped_by: float | None = None
    at_limit: bool = False


@dataclass(frozen=True)
class Fit:
    """The three laws fitted to one head's profile, and the name of the best. A constant profile has a line alone."""

    linear: Law
    log: Law | None
    power: Law | None

    @property
    def best(self) -> str:
        """The law that explains most; the line, where another explains no thousandth of the variance more than it
        and leaves no less than a tenth of what it leaves."""
        laws = {"log": self.log, "power": self.power}
        fitted = {name: law.r2 for name, law in laws.items() if law is not None}
        best = max(fitted, key=lambda name: fitted[name], default="linear")
        left, line_left = 1 - fitted.get(best, 0.0), 1 - self.linear.r2
        better = line_left - left > VISIBLE_GAIN or (line_left > ROUNDING and left < MUCH_LESS * line_left)
        return best if better else "linear"

    def curve(self, distance: np.ndarray) -> np.ndarray:
        """The best law at these distances."""
        away = np.abs(distance).astype(np.float64)
        law = {"linear": self.linear, "log": self.log, "power": self.power}[self.best]
        assert law is not None  # a law that was not fitted is never the best
        shape = {"log": _log, "power": _power}.get(self.best)
        return law.intercept - law.scale * (shape(away, law.shaped_by or 0.0) if shape else away)

    def to_json(self) -> dict[str, object]:
        """`slope` is ALiBi's m; `p` and `a` are KERPLE's."""
        linear = {"slope": self.linear.scale, "intercept": self.linear.intercept, "r2": self.linear.r2}
        return {
            "best": self.best,
            "linear": linear,
            "log": self.log and _json(self.log, p=self.log.scale, a=self.log.shaped_by),
            "power": self.power and _json(self.power, p=self.power.shaped_by, a=self.power.scale),
        }


def _json(law: Law, **numbers: float | None) -> dict[str, object]:
    return {**numbers, "intercept": law.intercept, "r2": law.r2, "at_limit": law.at_limit}


def fit(distance: np.ndarray, mean: np.ndarray, count: np.ndarray) -> Fit | None:
    """Fit all three laws to a profile's mean over `abs(d)`; None where fewer than two distances are seen."""
    known = count > 0
    if known.sum() < 2:
        return None
    d, y, w = np.abs(distance[known]).astype(np.float64), mean[known], count[known] / count[known].sum()
    spread = np.sqrt(w @ (y - w @ y) ** 2)
    if spread <= FLOAT32 * np.abs(y).max():
        return Fit(Law(0.0, float(w @ y), 1.0), None, None)
    far = float(d.max())
    # From so slow that it is a line over these distances to so fast that only the first step bends.
    rates = (0.01 / far, 1000.0)
    scale, intercept, left = _straight(d, y, w)
    line = Law(scale, intercept, 1 - left)
    return Fit(line, _search(_log, rates, d, y, w), _search(_power, POWERS, d, y, w))


def _log(d: np.ndarray, rate: float) -> np.ndarray:
    return np.log1p(rate * d)


def _power(d: np.ndarray, power: float) -> np.ndarray:
    return np.where(d > 0, np.maximum(d, 1e-300) ** power, 0.0)


def _straight(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[float, float, float]:
    """Scale, intercept and unexplained share of the weighted line of `y` over `x`; the weights sum to 1."""
    x_mean, y_mean = w @ x, w @ y
    across, up = x - x_mean, y - y_mean
    width = w @ across**2
    scale = -(w @ (across * up)) / width if width > 0 else 0.0
    left = w @ (up + scale * across) ** 2
    return float(scale), float(y_mean + scale * x_mean), float(left / (w @ up**2))


def _search(shape: Shape, bounds: tuple[float, float], d: np.ndarray, y: np.ndarray, w: np.ndarray) -> Law:
    """The number between the bounds whose straight-line fit leaves least: a grid, then a golden section, in its log.

    The grid finds the right valley; a token-dependent profile can have more than one.
    """

    def left(log_number: float) -> float:
        return _straight(shape(d, float(np.exp(log_number))), y, w)[2]

    grid = np.linspace(np.log(bounds[0]), np.log(bounds[1]), GRID)
    best = int(np.argmin([left(at) for at in grid]))
    found = _golden(left, grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)])
    number = float(np.exp(found))
    scale, intercept, share = _straight(shape(d, number), y, w)
    return Law(scale, intercept, 1 - share, number, bool(min(found - grid[0], grid[-1] - found) < CLOSE))


def _golden(left: Callable[[float], float], low: float, high: float) -> float:
    """Where `left` is least between two bounds, to a millionth of a millionth of their distance."""
    first, second = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_first, at_second = left(first), left(second)
    for _ in range(60):
        if at_first <= at_second:
            high, second, at_second = second, first, at_first
            first = high - GOLDEN * (high - low)
            at_first = left(first)
        else:
            low, first, at_first = first, second, at_second
            second = low + GOLDEN * (high - low)
            at_second = left(second)
    return (low + high) / 2

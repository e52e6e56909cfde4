"""What a head's numbers, taken alone as attention, would look at: reach, entropy, first and previous token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posviz.stats.distance import BAND, DistanceView

# A share that is half by arithmetic (two keys of four, say) must not miss half by a rounding.
ROUNDING = 1e-9

# How the numbers of single queries become that of the head.
OVER_QUERIES: dict[str, Callable[[np.ndarray], np.floating]] = {
    "reach50": np.median,
    "reach90": np.median,
    "entropy": np.mean,
    "sink": np.mean,
    "previous": np.mean,
}


def weights(matrix: np.ndarray, quantity: str | None) -> np.ndarray:
    """Attention weights `[query, key]`: the softmax over the visible keys, or the numbers themselves when they are
    attention already. Each query's sum to 1; a query that sees nothing has zeros."""
    seen = np.isfinite(matrix)
    if quantity == "attention":
        mass = np.where(seen, matrix, 0.0).astype(np.float64)
    else:
        low = np.where(seen, matrix, -np.inf).astype(np.float64)
        top = low.max(axis=1, keepdims=True)
        mass = np.exp(low - np.where(np.isfinite(top), top, 0.0))
    total = mass.sum(axis=1, keepdims=True)
    return np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)


def each_query(matrix: np.ndarray, quantity: str | None, view: DistanceView | None) -> dict[str, np.ndarray]:
    """The numbers of `OVER_QUERIES` for each query that sees any key; NaN where one is not defined.

    The first query has no past, so it has neither sink nor previous token; without a view there is no distance, so
    nobody has a reach or a previous token.
    """
    mass = weights(matrix, quantity)
    looks = np.flatnonzero(mass.any(axis=1))
    unknown = np.full(len(looks), np.nan)
    found = {
        "reach50": unknown,
        "reach90": unknown,
        "entropy": -np.sum(mass * np.log(mass, out=np.zeros_like(mass), where=mass > 0), axis=1)[looks],
        "sink": np.where(looks > 0, mass[looks, 0], np.nan),
        "previous": unknown,
    }
    if view is not None:
        within = np.cumsum(view.fold_sides(view.lay_out(mass, 0.0)), axis=1)[looks]
        found["reach50"] = (within < 0.5 - ROUNDING).sum(axis=1).astype(np.float64)
        found["reach90"] = (within < 0.9 - ROUNDING).sum(axis=1).astype(np.float64)
        found["previous"] = np.where(looks > 0, mass[looks, looks - 1], np.nan)
    return found


def over_queries(found: dict[str, np.ndarray]) -> dict[str, Any]:
    """The head's numbers: the median of its queries' reach, the mean of the rest; None where no query has one."""
    defined = {name: numbers[~np.isnan(numbers)] for name, numbers in found.items()}
    return {name: float(OVER_QUERIES[name](kept)) if len(kept) else None for name, kept in defined.items()}


def of_last(found: dict[str, np.ndarray]) -> dict[str, float | None]:
    """The numbers of the last query, the one that sees most."""
    return {name: None if np.isnan(numbers[-1]) else float(numbers[-1]) for name, numbers in found.items()}


def reach_band(found: dict[str, np.ndarray]) -> list[float] | None:
    """Between which distances 90% of the queries have their reach50."""
    reach = found["reach50"]
    return None if np.isnan(reach).all() else [float(edge) for edge in np.quantile(reach, BAND)]

"""The numbers of one head, each defined in one sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posviz.errors import PosvizError
from posviz.stack import HeadStack
from posviz.stats.attend import each_query, of_last, over_queries, reach_band
from posviz.stats.distance import DistanceView, mean_by_distance, sees_by_distance
from posviz.stats.fit import FLOAT32, Fit, fit

TWO_SEQUENCES = "queries and keys are of two sequences: there is no distance between them"


@dataclass(frozen=True)
class Place:
    """Where a value stands: positions from 0, and the two tokens when they are known."""

    query: int
    key: int
    tokens: tuple[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        tokens = list(self.tokens) if self.tokens else None
        return {"query": self.query, "key": self.key, "distance": self.query - self.key, "tokens": tokens}


@dataclass(frozen=True)
class HeadStats:
    """What can be said of one head in numbers; None where the stack does not tell, and `note` then says why.

    The last five are about the attention that the head's numbers alone would give: their softmax over the visible
    keys, or the numbers themselves when the quantity is attention already.
    """

    head: int
    layer: int | None
    method: str | None
    quantity: str | None
    min: float  # the least value that any query sees
    max: float  # the greatest value that any query sees
    mean: float | None  # the mean over all pairs of a query and a key that it sees
    min_at: Place | None
    max_at: Place | None
    uniformity: float | None  # the share of the values' variance that distance alone explains; a constant head has 1
    fit: Fit | None  # the best line, logarithm and power through the mean over each distance
    reach50: float | None = None  # the median over queries of the least distance within which half the mass lies
    reach90: float | None = None  # the same for 90% of the mass
    entropy: float | None = None  # the mean over queries of the weights' entropy, in nats
    sink: float | None = None  # the mean share of mass on the first token, over all queries but the first
    previous: float | None = None  # the mean share of mass on the token before, over all queries but the first
    reach50_band: list[float] | None = None  # the 5% and 95% quantile over queries of the reach at half the mass
    last: dict[str, float | None] = field(default_factory=dict)  # the last query's reach, entropy, sink and previous
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data under the same names."""
        data = dict(vars(self))
        for name in ("min_at", "max_at", "fit"):
            data[name] = None if data[name] is None else data[name].to_json()
        return data


def head_stats(stack: HeadStack) -> list[HeadStats]:
    """The numbers of every head of a stack. What is not NaN counts as visible."""
    limits = stack.limits()
    for head, (low, high) in zip(stack.heads, limits, strict=True):
        if not (np.isfinite(low) and np.isfinite(high)):
            raise PosvizError(f"head {head} has no finite value, so there is nothing to measure")
    if stack.cell > 1:
        return [_of_reduced(stack, n) for n in range(len(stack.heads))]
    view = DistanceView.of(stack) if stack.seq_len == stack.key_len else None
    return [_of_whole(stack, n, view) for n in range(len(stack.heads))]


def _names(stack: HeadStack, n: int) -> dict[str, Any]:
    return {"head": stack.heads[n], **{name: stack.meta.get(name) for name in ("layer", "method", "quantity")}}


def _of_whole(stack: HeadStack, n: int, view: DistanceView | None) -> HeadStats:
    matrix = stack.values[n]
    seen = np.isfinite(matrix)
    found = each_query(matrix, stack.meta.get("quantity"), view)
    least, greatest = np.argmin(np.where(seen, matrix, np.inf)), np.argmax(np.where(seen, matrix, -np.inf))
    if view is None:
        uniformity, law = None, None
    else:
        laid = view.lay_out(np.where(seen, matrix, np.nan))
        count, mean = mean_by_distance(laid)
        uniformity, law = _uniformity(laid, mean), _fit_both_sides(view, count, mean)
    return HeadStats(
        **_names(stack, n),
        min=float(matrix.flat[least]) + 0.0,  # a -0.0 becomes 0.0
        max=float(matrix.flat[greatest]) + 0.0,
        mean=float(matrix[seen].mean(dtype=np.float64)),
        min_at=_place(stack, int(least)),
        max_at=_place(stack, int(greatest)),
        uniformity=uniformity,
        fit=law,
        **over_queries(found),
        reach50_band=reach_band(found),
        last=of_last(found),
        note=TWO_SEQUENCES if view is None else None,
    )


def _of_reduced(stack: HeadStack, n: int) -> HeadStats:
    """Of a reduced stack only the extremes and the profile are those of the whole matrix."""
    low, high = stack.limits()[n]
    mean, law = None, None
    if stack.profile is not None and stack.seq_len == stack.key_len and sees_by_distance(stack):
        over = stack.profile[n].astype(np.float64)
        distance = np.arange(len(over))
        count = np.where(np.isfinite(over), stack.seq_len - distance, 0)
        mean, law = float(np.nansum(over * count) / count.sum()), fit(distance, over, count)
    return HeadStats(
        **_names(stack, n),
        min=float(low) + 0.0,
        max=float(high) + 0.0,
        mean=mean,
        min_at=None,
        max_at=None,
        uniformity=None,
        fit=law,
        note=f"each cell stands for {stack.cell} x {stack.cell} positions: what needs every position is left out",
    )


def _place(stack: HeadStack, flat: int) -> Place:
    query, key = divmod(flat, stack.values.shape[2])
    named = len(stack.tokens) > max(query, key)
    return Place(query, key, (stack.tokens[query], stack.tokens[key]) if named else None)


def _uniformity(laid: np.ndarray, mean: np.ndarray) -> float:
    """One minus the variance within distances over the whole variance. Two passes in float64, so that a Toeplitz
    matrix of float32 values gives 1 to every digit that is printed."""
    values = laid[~np.isnan(laid)]
    total = np.sum((values - values.mean()) ** 2)
    if total <= len(values) * (FLOAT32 * np.abs(values).max()) ** 2:
        return 1.0
    return float(1 - np.nansum((laid - mean) ** 2) / total)


def _fit_both_sides(view: DistanceView, count: np.ndarray, mean: np.ndarray) -> Fit | None:
    """The fit over `abs(d)`: past and future together, each as often as it is seen."""
    times = view.fold_sides(count.astype(np.float64))
    total = view.fold_sides(np.where(count > 0, mean * count, 0.0))
    over = np.divide(total, times, out=np.full(len(times), np.nan), where=times > 0)
    return fit(np.arange(len(over)), over, times)

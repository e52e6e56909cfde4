"""A head's matrix laid out by distance, and the profile over distance that comes of it.

The distance of a query i from a key j is d = i - j: positive in the past, negative in the future.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posviz.errors import PosvizError
from posviz.stack import HeadStack

BAND = (0.05, 0.95)  # the share of queries below the lower and the upper edge of a profile's band


@dataclass(frozen=True)
class DistanceView:
    """How a `[query, key]` matrix is laid out as `[query, distance]`. One view serves every head of a stack."""

    distance: np.ndarray  # int [distance], rising by one
    index: np.ndarray  # int [query, distance] into the flat matrix
    inside: np.ndarray  # bool [query, distance]: whether there is such a key

    @classmethod
    def of(cls, stack: HeadStack) -> DistanceView:
        """The distances that some query of the stack sees: the past alone for a decoder, both sides for an encoder."""
        queries, keys = stack.values.shape[1:]
        future = np.triu(np.ones((queries, keys), dtype=bool), 1)
        least = -(keys - 1) if np.isfinite(stack.values[:, future]).any() else 0
        distance = np.arange(least, queries)
        key = np.arange(queries)[:, None] - distance
        inside = (key >= 0) & (key < keys)
        index = np.arange(queries)[:, None] * keys + np.clip(key, 0, keys - 1)
        return cls(distance, index, inside)

    def lay_out(self, matrix: np.ndarray, outside: float = np.nan) -> np.ndarray:
        """`[query, key]` as float64 `[query, distance]`."""
        return np.where(self.inside, matrix.ravel()[self.index].astype(np.float64), outside)

    def fold_sides(self, by_distance: np.ndarray) -> np.ndarray:
        """Numbers over the last axis added up at equal `abs(d)`, the nearest first."""
        at_zero = int(-self.distance[0])
        past, future = by_distance[..., at_zero:], by_distance[..., :at_zero][..., ::-1]
        folded = np.zeros((*by_distance.shape[:-1], max(past.shape[-1], future.shape[-1] + 1)))
        folded[..., : past.shape[-1]] = past
        folded[..., 1 : 1 + future.shape[-1]] += future
        return folded


@dataclass(frozen=True)
class Profile:
    """Each head over distance: the median across queries, the band that holds 90% of them, and the mean.

    A reduced stack keeps the mean alone; median, low and high are then None. NaN where no query sees that distance.
    """

    heads: tuple[int, ...]
    distance: np.ndarray  # int [distance]
    mean: np.ndarray  # float64 [head, distance]
    count: np.ndarray  # int [head, distance]: how many queries see that distance
    median: np.ndarray | None = None  # float64 [head, distance]
    low: np.ndarray | None = None  # the 5% quantile
    high: np.ndarray | None = None  # the 95% quantile

    @property
    def centre(self) -> np.ndarray:
        """The line to draw: the median, or the mean where no more is known."""
        return self.mean if self.median is None else self.median


def profile(stack: HeadStack) -> Profile:
    """Each head over distance, across the queries that see that distance."""
    if stack.cell > 1:
        return _kept_profile(stack)
    require_distance(stack)
    view = DistanceView.of(stack)
    shape = (len(stack.heads), len(view.distance))
    mean, median, low, high = (np.full(shape, np.nan) for _ in range(4))
    count = np.zeros(shape, dtype=np.int64)
    for n, matrix in enumerate(stack.values):
        laid = view.lay_out(np.where(np.isfinite(matrix), matrix, np.nan))
        count[n], mean[n] = mean_by_distance(laid)
        ordered = np.sort(laid.T, axis=1)  # NaN goes last, so the first `count` of each distance are its values
        low[n], median[n], high[n] = (_quantile(ordered, count[n], q) for q in (BAND[0], 0.5, BAND[1]))
    return Profile(stack.heads, view.distance, mean, count, median, low, high)


def mean_by_distance(laid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many queries see each distance, and their mean there, of a `[query, distance]` layout with NaN."""
    seen = ~np.isnan(laid)
    count = seen.sum(axis=0)
    total = np.where(seen, laid, 0).sum(axis=0)
    return count, np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)


def require_distance(stack: HeadStack) -> None:
    """Raise where query and key positions are not counted along one sequence."""
    if stack.seq_len != stack.key_len:
        raise PosvizError(
            f"{stack.seq_len} queries look at {stack.key_len} keys, so there is no distance between them; "
            "a profile needs self-attention"
        )


def sees_by_distance(stack: HeadStack) -> bool:
    """Whether a causal reduced stack is blank by distance alone, so that T - d queries see each distance."""
    blank = ~np.isfinite(stack.values).any(axis=0)
    side = blank.shape[0]
    if blank.shape != (side, side) or not blank[np.triu_indices(side, 1)].all():
        return False
    return all(np.all(np.diagonal(blank, -d) == blank[d, 0]) for d in range(side))


def _kept_profile(stack: HeadStack) -> Profile:
    require_distance(stack)
    if stack.profile is None:
        raise PosvizError(
            f"each cell of this stack stands for {stack.cell} x {stack.cell} positions and it holds no profile; "
            "capture it again with its profile kept, or with a shorter sequence"
        )
    if not sees_by_distance(stack):
        raise PosvizError(
            f"each cell of this stack stands for {stack.cell} x {stack.cell} positions and its mask is not a "
            "decoder's, so its profile is not whole; take a shorter sequence"
        )
    mean = stack.profile.astype(np.float64)
    distance = np.arange(mean.shape[1])
    count = np.where(np.isfinite(mean), stack.seq_len - distance, 0)
    return Profile(stack.heads, distance, mean, count)


def _quantile(ordered: np.ndarray, count: np.ndarray, share: float) -> np.ndarray:
    """The quantile of each row's first `count` values, which are in order; straight lines between neighbours."""
    at = share * np.maximum(count - 1, 0)
    below = np.floor(at).astype(np.intp)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    row = np.arange(len(ordered))
    first, second = ordered[row, below], ordered[row, above]
    return np.where(count > 0, first + (at - below) * (second - first), np.nan)

"""How much of the scores' variance comes from content and how much from position."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from posviz.errors import PosvizError
from posviz.stack import HeadStack
from posviz.stats.fit import FLOAT32
from posviz.stats.table import numbered


@dataclass(frozen=True)
class VarianceShares:
    """The variance of one head's scores over all visible pairs, split between content and position: they sum to 1.

    Scores are content plus what position adds: the bias of an additive method, the change by rotation of RoPE. Each
    part's share is its covariance with the scores over their variance, so that a share is negative where the part
    works against what the scores do. The shares are None where the scores do not vary.
    """

    head: int
    variance: float
    content: float | None
    position: float | None

    def to_json(self) -> dict[str, float | int | None]:
        return asdict(self)


def variance_shares(scores: HeadStack, content: HeadStack) -> list[VarianceShares]:
    """The split for every head of two stacks of the same layer on the same sequence."""
    if scores.heads != content.heads or scores.values.shape != content.values.shape:
        raise PosvizError(
            f"scores of {_size(scores)} beside content of {_size(content)}; "
            "expected the same heads and positions: capture both from one layer and one sequence"
        )
    if scores.cell > 1 or content.cell > 1:
        raise PosvizError(
            f"each cell stands for {scores.cell} x {scores.cell} positions, which hides part of the variance; "
            "take a sequence of at most 1024 positions"
        )
    pairs = zip(scores.heads, scores.values, content.values, strict=True)
    return [_split(head, whole, part) for head, whole, part in pairs]


def _split(head: int, scores: np.ndarray, content: np.ndarray) -> VarianceShares:
    seen = np.isfinite(scores) & np.isfinite(content)
    if not seen.any():
        raise PosvizError(f"head {head} has no pair that both scores and content show, so there is nothing to split")
    whole, part = scores[seen].astype(np.float64), content[seen].astype(np.float64)
    rest = whole - part
    variance = float(whole.var())
    if variance <= (FLOAT32 * np.abs(whole).max()) ** 2:
        return VarianceShares(head, variance, None, None)
    centred = whole - whole.mean()
    return VarianceShares(head, variance, *(float(np.mean(x * centred) / variance) for x in (part, rest)))


def _size(stack: HeadStack) -> str:
    return f"{numbered(stack.heads)} on {stack.seq_len} positions"

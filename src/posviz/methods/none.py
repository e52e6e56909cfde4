"""No positional method in the attention: the baseline that every comparison needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posviz.methods.base import Found, PositionalMethod


class NoPosition(PositionalMethod):
    name = "none"
    title = "no position"
    drawn = "the content scores: q.k, scaled"
    reference = "Haviv et al. 2022, arXiv:2203.16634"
    token_dependent = True
    additive = False

    @classmethod
    def recognise(cls, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> Found | None:
        if config.get("learned_positions"):
            return Found(cls.name, "positions are a learned table at the input, none in the attention")
        return None

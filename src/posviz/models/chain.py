"""From the product of queries and keys to the softmax: what each operation on the way does to the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from string import ascii_uppercase
from typing import Any

import torch
from torch import Tensor

from posviz.models.seen import PERHAPS_HIDDEN, SeenAttention, split_mask


@dataclass(frozen=True)
class Chain:
    """Scores `[*lead, query, key]` as a formula: `scale * q.k`, perhaps capped, plus terms, hidden where a mask is."""

    q: Tensor  # [n, query, dim], n being batch x head
    k: Tensor  # [n, key, dim], or fewer where heads share keys
    lead: tuple[int, ...]  # batch and heads, as the scores have them at this moment
    scale: float | Tensor = 1.0
    cap: float | None = None
    terms: tuple[Tensor, ...] = ()
    hidden: tuple[Tensor, ...] = ()  # True where a query may not look
    sinks: Tensor | None = None
    causal: bool = False

    @classmethod
    def product(cls, q: Tensor, k: Tensor, lead: Sequence[int]) -> Chain:
        """Queries `[..., query, dim]` times keys `[..., key, dim]`, both broadcast to `lead`."""
        lead = tuple(lead)
        queries, keys = (x.expand(*lead, *x.shape[-2:]).reshape(-1, *x.shape[-2:]) for x in (q.detach(), k.detach()))
        return cls(queries, keys, lead)

    def shaped(self, shape: Sequence[int]) -> Chain | None:
        """The same scores seen in another shape; None if queries and keys are no longer its last two axes."""
        same = tuple(shape[-2:]) == (self.q.shape[1], self.k.shape[1]) and prod(shape[:-2]) == prod(self.lead)
        return replace(self, lead=tuple(shape[:-2])) if same else None

    def times(self, factor: Any) -> Chain | None:
        number: float | Tensor | None = _number(factor)
        if number is None:
            number = self._flat(factor)
        if number is None or (isinstance(number, Tensor) and number.shape[-1] != 1):
            return None
        terms = tuple(term * number for term in self.terms)
        if self.cap is None:
            return replace(self, scale=self.scale * number, terms=terms)
        return replace(self, cap=self.cap * number, terms=terms) if isinstance(number, float) else None

    def plus(self, term: Any, sign: float = 1.0) -> Chain | None:
        flat = self._flat(term if isinstance(term, Tensor) else torch.tensor(float(term), device=self.q.device))
        return None if flat is None else replace(self, terms=(*self.terms, flat if sign == 1 else flat * sign))

    def capped(self) -> Chain | None:
        return None if self.cap is not None or self.terms or self.hidden else replace(self, cap=1.0)

    def without(self, hidden: Any, value: Any) -> Chain | None:
        """Filled with `value` where `hidden`; understood if that is as good as minus infinity."""
        low = value.max().item() if isinstance(value, Tensor) and value.numel() else value
        flat = self._flat(hidden) if isinstance(hidden, Tensor) else None
        if flat is None or isinstance(low, Tensor) or low > PERHAPS_HIDDEN:
            return None
        return replace(self, hidden=(*self.hidden, flat))

    def with_sink(self, extra: Tensor) -> Chain | None:
        """One logit per head put beside the keys, the same for every query."""
        if extra.shape[-1] != 1 or self.sinks is not None:
            return None
        return replace(
            self, sinks=extra.detach().expand(*self.lead, *extra.shape[-2:]).reshape(-1, extra.shape[-2])[:, 0]
        )

    def _flat(self, x: Tensor) -> Tensor | None:
        """An operand of the scores as `[n or 1, query or 1, key or 1]`; None if it does not fit on them."""
        x = x.detach()
        x = x.reshape((1,) * max(len(self.lead) + 2 - x.ndim, 0) + tuple(x.shape))
        front, back = x.shape[:-2], tuple(x.shape[-2:])
        if any(size not in (1, whole) for size, whole in zip(back, (self.q.shape[1], self.k.shape[1]), strict=True)):
            return None
        if prod(front) == 1:
            return x.reshape(1, *back)
        if len(front) != len(self.lead) or any(a not in (1, b) for a, b in zip(front, self.lead, strict=True)):
            return None
        return x.expand(*self.lead, *back).reshape(-1, *back)

    def seen(self, batch: int) -> SeenAttention:
        """The attention of the first sample; `batch` tells samples from heads where the scores' shape does not."""
        count = prod(self.lead)
        samples = self.lead[0] if len(self.lead) > 1 else batch if count % batch == 0 else 1

        def first(x: Tensor) -> Tensor:
            return x if x.shape[0] == 1 else x[: x.shape[0] // samples]

        parts = [split_mask(first(term)) for term in self.terms]
        hidden = [first(mask) for mask in self.hidden] + [mask for _, mask in parts if mask is not None]
        mask = None
        for one in hidden:
            mask = ~one.bool() if mask is None else mask & ~one.bool()
        if mask is not None and bool((mask == mask[:1]).all()):
            mask = mask[:1]  # every head the same, as nearly always
        scale = first(self.scale) if isinstance(self.scale, Tensor) else self.scale
        return SeenAttention(
            q=first(self.q),
            k=first(self.k),
            scale=scale if self.cap is None else scale * self.cap,
            cap=self.cap,
            biases=tuple(bias for bias, _ in parts if bias is not None),
            mask=mask,
            causal=self.causal,
            sinks=None if self.sinks is None else first(self.sinks),
        )


def _number(x: Any) -> float | None:
    if isinstance(x, Tensor):
        return float(x) if x.numel() == 1 else None
    return float(x)


def einsum_product(equation: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor] | None:
    """Queries and keys with their batch and head axes in front, if the equation is such a product."""
    equation = equation.replace(" ", "")
    if "..." in equation:  # as many letters as the first operand has axes beyond those that are named
        axes = a.ndim - len(equation.partition(",")[0].replace("...", ""))
        equation = equation.replace("...", "".join(sorted(set(ascii_uppercase) - set(equation))[:axes]))
    inputs, arrow, output = equation.partition("->")
    names = inputs.split(",")
    if not arrow or [len(name) for name in names] != [a.ndim, b.ndim] or len(output) < 2:
        return None
    lead, query, key = output[:-2], output[-2], output[-1]
    if query in names[1]:
        names, (a, b) = names[::-1], (b, a)
    summed = set(names[0]) & set(names[1]) - set(output)
    fits = query in names[0] and key in names[1] and query not in names[1] and key not in names[0]
    if len(summed) != 1 or not fits:
        return None
    dim = summed.pop()

    def arranged(x: Tensor, name: str, position: str) -> Tensor | None:
        if set(name) - set(lead + position + dim):
            return None
        there = "".join(letter for letter in lead if letter in name)
        x = torch.einsum(f"{name}->{there}{position}{dim}", x)
        return x[tuple(slice(None) if letter in name else None for letter in lead)]

    q, k = arranged(a, names[0], query), arranged(b, names[1], key)
    return None if q is None or k is None else (q, k)

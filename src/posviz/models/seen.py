"""One attention call as a model made it: queries, keys, and all that stands between their product and the softmax."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from posviz.errors import MethodError, unknown_name
from posviz.rows import QUANTITIES

Term = Float[Tensor, "#head #query #key"]
SURELY_HIDDEN = -1e6  # no bias reaches so low: ALiBi's steepest head is at -16,384 after as many positions
PERHAPS_HIDDEN = -1e3  # a mask, if there is nothing but it and zero


@dataclass(kw_only=True)
class SeenAttention:
    """Enough to compute any row of one call again; a row source that figures are cut from."""

    q: Float[Tensor, "head query dim"] | None  # None where only the softmax was seen: then `given` holds its input
    k: Float[Tensor, "group key dim"] | None
    scale: float | Tensor = 1.0
    cap: float | None = None  # scores are squeezed to +-cap by tanh
    biases: tuple[Term, ...] = ()  # NaN where a mask left nothing of the bias
    mask: Bool[Tensor, "#head #query #key"] | None = None  # True where a query may look
    causal: bool = False
    sinks: Float[Tensor, " head"] | None = None  # a logit per head that takes part in the softmax, and is dropped
    given: Float[Tensor, "head query key"] | None = None
    plain_q: Float[Tensor, "head query dim"] | None = None  # before rotation, where that is known
    plain_k: Float[Tensor, "group key dim"] | None = None
    relative: bool = False  # a bias that is one row for every query is shown as b[i, j] - b[i, i]

    @property
    def n_head(self) -> int:
        return self._shaped[0]

    @property
    def seq_len(self) -> int:
        return self._shaped[1]

    @property
    def key_len(self) -> int:
        return self._shaped[2]

    @property
    def _shaped(self) -> tuple[int, int, int]:
        if self.q is None or self.k is None:
            assert self.given is not None
            heads, queries, keys = self.given.shape
            return heads, queries, keys
        return self.q.shape[0], self.q.shape[1], self.k.shape[1]

    def visible(self, start: int, stop: int) -> np.ndarray:
        """Which keys these queries may look at: bool `[row, key]`, or `[head, row, key]` where heads differ."""
        seen = self.looked_at(start, stop).cpu().numpy()
        return seen[0] if seen.shape[0] == 1 else seen

    def looked_at(self, start: int, stop: int) -> Bool[Tensor, "#head row key"]:
        """The mask of these queries, whether the model wrote it out or left it to a flag."""
        some = self.given if self.q is None else self.q
        assert some is not None
        seen = torch.ones(1, stop - start, self.key_len, dtype=torch.bool, device=some.device)
        if self.causal:
            seen = seen.tril(start)
        return seen if self.mask is None else seen & _rows(self.mask, start, stop)

    @torch.no_grad()
    def rows(self, quantity: str, start: int, stop: int) -> np.ndarray:
        """`quantity` for the queries from `start` to `stop`: float32 `[head, row, key]`, before the mask."""
        if quantity not in QUANTITIES:
            raise MethodError(unknown_name("quantity", quantity, QUANTITIES))
        made = {"bias": self._bias, "scores": self._scores, "content": self._content, "attention": self._attention}
        block = made[quantity](start, stop)
        return block.expand(self.n_head, stop - start, self.key_len).cpu().numpy()

    def _content(self, start: int, stop: int) -> Tensor:
        if self.q is None or self.k is None:
            raise MethodError(
                "only the softmax of this attention was seen, not the product of queries and keys before it; "
                "ask for 'scores' or 'attention'"
            )
        q = self.q if self.plain_q is None else self.plain_q
        k = self.k if self.plain_k is None else self.plain_k
        return self._product(q, k, start, stop)

    def _product(self, q: Tensor, k: Tensor, start: int, stop: int) -> Tensor:
        """Scaled q.k in float32; each query head against the key of its own group."""
        scale = _rows(self.scale, start, stop).float() if isinstance(self.scale, Tensor) else self.scale
        block = q[:, start:stop].float()
        grouped = block.reshape(k.shape[0], -1, *block.shape[1:])
        return (grouped @ k.float()[:, None].transpose(-1, -2)).flatten(0, 1) * scale

    def _bias(self, start: int, stop: int) -> Tensor:
        if not self.biases:
            raise MethodError("this attention adds no bias to its scores; ask for 'scores', 'content' or 'attention'")
        total = torch.zeros((), device=self.biases[0].device)
        for bias in self.biases:
            total = total + _rows(bias, start, stop).float()
            if self.relative and bias.shape[1] == 1:
                total = total - bias[:, 0, start:stop, None].float()
        return total

    def _scores(self, start: int, stop: int) -> Tensor:
        if self.q is None or self.k is None:
            assert self.given is not None
            return self.given[:, start:stop].float()
        scores = self._product(self.q, self.k, start, stop)
        if self.cap is not None:
            scores = torch.tanh(scores / self.cap) * self.cap
        return scores + self._bias(start, stop) if self.biases else scores

    def _attention(self, start: int, stop: int) -> Tensor:
        scores = self._scores(start, stop)
        scores = torch.where(self.looked_at(start, stop), scores, float("-inf"))
        if self.sinks is None:
            return scores.softmax(dim=-1)
        sinks = self.sinks.float()[:, None, None].expand(-1, stop - start, 1)
        return torch.cat([scores, sinks], dim=-1).softmax(dim=-1)[..., :-1]


def _rows(term: Tensor, start: int, stop: int) -> Tensor:
    return term if term.shape[1] == 1 else term[:, start:stop]


def split_mask(term: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """What is added to scores, told apart: the bias (None if there is none) and what it hides (None if nothing)."""
    lowest = float(term.min())
    if lowest > PERHAPS_HIDDEN:
        return (term if bool(term.any()) else None), None
    hidden = term <= PERHAPS_HIDDEN
    if not bool(term[~hidden].any()):
        return None, hidden
    if lowest > SURELY_HIDDEN:
        return term, None
    hidden = term <= max(lowest / 2, -1e30)
    return term.masked_fill(hidden, float("nan")), hidden

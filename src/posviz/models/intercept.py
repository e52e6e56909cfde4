"""Watching a module compute: every attention call in it, whether by torch's own function or written out by hand.

Scores are followed from the product of queries and keys through what is done to them (scaling, caps, added terms,
masks, changes of shape) to the softmax. Where the way is lost, the softmax's input itself is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from posviz.errors import CaptureError
from posviz.models.chain import Chain, einsum_product
from posviz.models.packed import from_multi_head
from posviz.models.seen import PERHAPS_HIDDEN, SeenAttention, split_mask

SAME = {"to", "float", "double", "half", "bfloat16", "type", "type_as", "contiguous", "clone", "detach", "cpu", "cuda"}
RESHAPES = {"view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten", "getitem", "expand", "view_as"}
WHOLE = {"softmax", "scaled_dot_product_attention", "multi_head_attention_forward"}


class Interceptor(TorchFunctionMode):
    """Calls `found` with every attention call made while it is active, before the softmax is computed."""

    def __init__(self, found: Callable[[SeenAttention], None], batch: Callable[[], int] = lambda: 1) -> None:
        super().__init__()
        self.found, self.batch = found, batch
        self.calls: Counter[str] = Counter()  # what was seen at all, for the error when nothing was recognised
        self.unread: list[tuple[int, ...]] = []  # shapes of softmaxes that did not look like attention
        self._chains: Any = WeakTensorKeyDictionary()
        self._shifts: Any = WeakTensorKeyDictionary()  # row maxima, subtracted for safety

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():
            return func(*args, **kwargs)  # a compiler looks on, and cannot follow what is noted down here
        name = getattr(func, "__name__", "").strip("_")
        self.calls[name] += 1
        if name in WHOLE:
            self._attention(name, args, kwargs)
        chain = self._chains.get(args[0]) if args and isinstance(args[0], Tensor) else None
        result = func(*args, **kwargs)
        if isinstance(result, Tensor):
            with torch.no_grad():
                new = self._begun(name, args, kwargs, result) or self._led_on(name, chain, args, kwargs, result)
            self._follow(result, new)
        elif name == "max" and chain is not None and not isinstance(result, int):
            self._shifts[result[0]] = True
        elif name == "setitem" and chain is not None:
            self._follow(args[0], chain.without(args[1], args[2]))
        return result

    def summary(self) -> str:
        """What was seen at all, in a few words."""
        softmaxes = [f"a softmax of shape {list(shape)}" for shape in self.unread[:3]]
        commonest = [f"{name} x {count}" for name, count in self.calls.most_common(12) if name not in ("get", "")][:6]
        return ", ".join(softmaxes + commonest) or "no torch function at all (is the module compiled or scripted?)"

    def _follow(self, scores: Tensor, chain: Chain | None) -> None:
        if chain is not None:
            self._chains[scores] = chain
        else:
            self._chains.pop(scores, None)  # changed in place in a way that is not understood

    def _attention(self, name: str, args: Any, kwargs: Any) -> None:
        if name == "scaled_dot_product_attention":
            self.found(_of_sdpa(*args, **kwargs).seen(self.batch()))
        elif name == "multi_head_attention_forward":
            self.found(from_multi_head(*args, **kwargs).seen(self.batch()))
        else:
            scores, dim = args[0], kwargs.get("dim", args[1] if len(args) > 1 else None)
            if dim not in (-1, scores.ndim - 1):
                return
            chain = self._chains.get(scores)
            if chain is not None:
                self.found(chain.seen(self.batch()))
            elif scores.ndim == 4:
                self.found(_as_it_is(scores))
            else:
                self.unread.append(tuple(scores.shape))

    def _begun(self, name: str, args: Any, kwargs: Any, out: Tensor) -> Chain | None:
        """A product of two tensors with at least a batch axis: perhaps the first step of attention."""
        if out.ndim < 3:
            return None
        if name in ("matmul", "bmm"):
            a, b = (*args, *kwargs.values())[:2]
            return Chain.product(a, b.mT, out.shape[:-2]) if min(a.ndim, b.ndim) > 2 else None
        if name == "baddbmm":
            return _of_baddbmm(*args, **kwargs)
        if name == "einsum":
            operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
            parts = einsum_product(args[0], *operands) if len(operands) == 2 else None
            return None if parts is None else Chain.product(*parts, out.shape[:-2])
        return None

    def _led_on(self, name: str, chain: Chain | None, args: Any, kwargs: Any, out: Tensor) -> Chain | None:
        """What the operation makes of the chain that its first argument ends, or its second."""
        if name == "cat" and len(args[0]) == 2:
            chain = self._chains.get(args[0][0])
            return None if chain is None else chain.with_sink(args[0][1])
        if name == "where":
            return self._chosen(*args, **kwargs)
        if chain is None:
            other = args[1] if len(args) > 1 and name in ("add", "mul", "radd", "rmul") else None
            chain = self._chains.get(other) if isinstance(other, Tensor) else None
            return None if chain is None else _step(name, chain, args[0], {}, out)
        if name == "amax":
            self._shifts[out] = True
            return None
        operand = args[1] if len(args) > 1 else kwargs.get("other")
        if name == "sub" and isinstance(operand, Tensor) and operand in self._shifts:
            return chain
        if name in ("max", "maximum", "clamp") and _is_floor(operand if operand is not None else kwargs.get("min")):
            return chain
        if name in ("transpose", "permute", "swapaxes"):
            return chain.shaped(out.shape) if _keeps_last_two(name, args[0], args[1:]) else None
        return _step(name, chain, operand, {**kwargs, "rest": args[2:]}, out)

    def _chosen(self, condition: Any, a: Any = None, b: Any = None, **named: Any) -> Chain | None:
        a, b = named.get("input", a), named.get("other", b)
        if isinstance(a, Tensor) and (chain := self._chains.get(a)) is not None:
            return chain.without(~condition, b)
        if isinstance(b, Tensor) and (chain := self._chains.get(b)) is not None:
            return chain.without(condition, a)
        return None


def _step(name: str, chain: Chain, operand: Any, named: Any, out: Tensor) -> Chain | None:
    if name in SAME:
        return chain
    if name in RESHAPES:
        return chain.shaped(out.shape)
    if name in ("add", "radd", "iadd", "sub", "isub"):
        sign = float(named.get("alpha", 1)) * (-1 if "sub" in name else 1)
        new = chain.plus(operand, sign)
    elif name in ("mul", "rmul", "imul"):
        new = chain.times(operand)
    elif name in ("div", "truediv", "true_divide", "itruediv"):
        new = chain.times(1 / operand)
    elif name == "tanh":
        new = chain.capped()
    elif name == "masked_fill":
        value = named["value"] if "value" in named else named["rest"][0]
        new = chain.without(operand if operand is not None else named["mask"], value)
    else:
        return None
    return None if new is None else new.shaped(out.shape)


def _of_baddbmm(term: Tensor, a: Any = None, b: Any = None, *, beta: Any = 1, alpha: Any = 1, **named: Any) -> Any:
    a, b = named.get("batch1", a), named.get("batch2", b)
    started = Chain.product(a, b.mT, a.shape[:-2]).times(alpha)
    return None if started is None else started.plus(term * beta) if beta else started


def _of_sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Chain:
    lead, query, key = tuple(query.shape[:-2]), query.detach(), key.detach()
    keys = key.reshape(-1, *key.shape[-2:]) if enable_gqa else key.expand(*lead, *key.shape[-2:]).flatten(0, -3)
    chain = Chain(query.reshape(-1, *query.shape[-2:]), keys, lead, causal=is_causal)
    masked = chain.times(query.shape[-1] ** -0.5 if scale is None else scale)
    if masked is not None and attn_mask is not None:
        hides = attn_mask.dtype == torch.bool
        masked = masked.without(~attn_mask, float("-inf")) if hides else masked.plus(attn_mask)
    if masked is None:
        raise CaptureError(f"attention on {tuple(query.shape)} queries with an odd mask or scale: {attn_mask}, {scale}")
    return masked


def _as_it_is(scores: Tensor) -> SeenAttention:
    """The softmax's input as the scores, with whatever was masked in it; queries may lie before heads."""
    given = scores[0].detach()
    if given.shape[1] != given.shape[2] and given.shape[0] == given.shape[2]:
        given = given.transpose(0, 1)
    _, hidden = split_mask(given)
    return SeenAttention(q=None, k=None, given=given, mask=None if hidden is None else ~hidden)


def _is_floor(x: Any) -> bool:
    """A lower bound that only keeps masked scores finite."""
    if isinstance(x, Tensor):
        return x.is_floating_point() and x.numel() == 1 and float(x) <= PERHAPS_HIDDEN
    return isinstance(x, float) and x <= PERHAPS_HIDDEN


def _keeps_last_two(name: str, x: Tensor, dims: Any) -> bool:
    flat = [d % x.ndim for d in (dims[0] if len(dims) == 1 else dims)]
    if name == "permute":
        return flat[-2:] == [x.ndim - 2, x.ndim - 1] and sum(size > 1 for size in x.shape[:-2]) <= 1
    return max(flat) < x.ndim - 2 and sum(size > 1 for size in x.shape[:-2]) <= 1

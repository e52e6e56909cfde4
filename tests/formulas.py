"""The methods' formulas once more, in float64 and arranged another way: head by head and query by query.

Each gives `[head, query, key]` with NaN in the future, so that nothing here depends on how posviz cuts its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Params = Mapping[str, np.ndarray]


def _by_row(heads: int, length: int, row: Callable[[int, int, np.ndarray], np.ndarray]) -> np.ndarray:
    """Fill the past of every query from `row(head from 0, i, keys up to i)`."""
    values = np.full((heads, length, length), np.nan)
    for head in range(heads):
        for i in range(length):
            values[head, i, : i + 1] = row(head, i, np.arange(i + 1, dtype=np.float64))
    return values


def alibi_slopes(heads: int, convention: str) -> list[float]:
    """As the ALiBi authors publish them for powers of two; `geometric` is that formula for any number of heads."""
    ratio = 0.5 ** (8 / heads)
    if convention == "geometric" or heads & (heads - 1) == 0:
        return [ratio**k for k in range(1, heads + 1)]
    below = 1 << (heads.bit_length() - 1)
    finer = alibi_slopes(2 * below, "geometric")
    return alibi_slopes(below, "geometric") + [finer[2 * k] for k in range(heads - below)]


def alibi(p: Params, heads: int, length: int, slopes: str = "geometric") -> np.ndarray:
    m = [float(s) for s in p["slopes"].ravel()] if "slopes" in p else alibi_slopes(heads, slopes)
    return _by_row(heads, length, lambda h, i, j: m[h] * j - m[h] * i)


def t5_bucket(distance: int, buckets: int = 32, furthest: int = 128) -> int:
    """The causal bucket of one distance: linear for the first half, then as many steps as the logarithm allows."""
    exact = buckets // 2
    if distance < exact:
        return max(distance, 0)
    steps = math.log(distance / exact) / math.log(furthest / exact) * (buckets - exact)
    return min(exact + math.floor(steps), buckets - 1)


def t5(p: Params, heads: int, length: int) -> np.ndarray:
    table = p["relative_attention_bias.weight"]
    known = np.array([t5_bucket(d, len(table)) for d in range(length)])
    return _by_row(heads, length, lambda h, i, j: table[known[i::-1], h])


def kerple(p: Params, heads: int, length: int) -> np.ndarray:
    scale = [max(0.01, float(v)) for v in p["bias_p"].ravel()]
    rate = [max(0.01, float(v)) for v in p["bias_a"].ravel()]
    return _by_row(heads, length, lambda h, i, j: -scale[h] * np.log1p(rate[h] * (i - j)))


def kerple_power(p: Params, heads: int, length: int) -> np.ndarray:
    power = [min(2.0, max(0.01, float(v))) for v in p["bias_p"].ravel()]
    scale = [max(0.01, float(v)) for v in p["bias_a"].ravel()]
    return _by_row(heads, length, lambda h, i, j: -scale[h] * np.power(i - j, power[h]))


def fire(p: Params, heads: int, length: int) -> np.ndarray:
    """One hidden unit after the other."""
    c, threshold = float(p["c"]), abs(float(p["L_multiplier"]) * float(p.get("init_L", 512)))
    inner, outer = p["mlp.0.weight"][:, 0], p["mlp.2.weight"]
    values = np.full((heads, length, length), np.nan)
    for i in range(length):
        distance = i - np.arange(i + 1)
        share = np.log1p(np.abs(c * distance)) / (math.log1p(abs(c * max(i, threshold))) + 1e-6)
        row = np.repeat(p["mlp.2.bias"][:, None], i + 1, axis=1)
        for unit, (weight, bias) in enumerate(zip(inner, p["mlp.0.bias"], strict=True)):
            row += outer[:, unit, None] * np.maximum(0, weight * share + bias)
        values[:, i, : i + 1] = row
    return values


def cable(p: Params, heads: int, x: np.ndarray) -> np.ndarray:
    """A walk from each key to the query, adding up the steps of the tokens after the key."""
    raw = x @ p["h_attn.weight"].T + p.get("h_attn.bias", 0)
    steps = -np.logaddexp(0, raw)  # softplus
    length = len(x)
    values = np.full((heads, length, length), np.nan)
    for j in range(length):
        total = np.zeros(heads)
        values[:, j, j] = 0
        for i in range(j + 1, length):
            total = total + steps[i]
            values[:, i, j] = total
    return values


def dape(p: Params, plain: np.ndarray, content: np.ndarray) -> np.ndarray:
    """`B + f([A; B])`, the convolutions written as sums over a key and its two neighbours."""
    heads, length, _ = plain.shape
    past = np.tri(length, dtype=bool)
    both = np.where(past, np.concatenate([content, np.nan_to_num(plain)]), 0)
    hidden = _three_keys(both, p["mlp2.0.weight"], p["mlp2.0.bias"])
    hidden = np.where(hidden >= 0, hidden, 0.01 * hidden)
    refined = _three_keys(hidden, p["mlp2.2.weight"], p["mlp2.2.bias"])
    assert refined.shape[0] == heads
    return np.where(past, plain + refined, np.nan)


def _three_keys(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Every key's own channels, and those of the keys to its left and right, each with its own weights."""
    left, right = np.zeros_like(x), np.zeros_like(x)
    left[:, :, 1:], right[:, :, :-1] = x[:, :, :-1], x[:, :, 1:]
    taps = zip((left, x, right), np.moveaxis(weight[:, :, 0], 2, 0), strict=True)
    return sum(np.tensordot(w, near, axes=1) for near, w in taps) + bias[:, None, None]


def rope(x: np.ndarray, pairing: str = "halves", base: float = 10000.0, rotary_dim: int | None = None) -> np.ndarray:
    """`[head, position, dim]` with its pairs turned as complex numbers."""
    turned = rotary_dim or x.shape[-1]
    first = range(turned // 2) if pairing == "halves" else range(0, turned, 2)
    apart = turned // 2 if pairing == "halves" else 1
    out = x.astype(np.float64).copy()
    for k, at in enumerate(first):
        number = x[..., at] + 1j * x[..., at + apart]
        number = number * np.exp(1j * np.arange(x.shape[-2]) * base ** (-2 * k / turned))
        out[..., at], out[..., at + apart] = number.real, number.imag
    return out


def projections(x: np.ndarray, weights: Params, heads: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, keys and values `[head, position, dim]` of a layer's normed input."""
    both = x @ weights["c_attn.weight"].T + weights.get("c_attn.bias", 0)
    width = x.shape[1] // heads
    parts = [np.stack([part[:, h * width : (h + 1) * width] for h in range(heads)]) for part in np.split(both, 3, 1)]
    return parts[0], parts[1], parts[2]


def product(q: np.ndarray, k: np.ndarray, scale: float) -> np.ndarray:
    """Scaled scores, NaN in the future."""
    return np.where(np.tri(q.shape[1], dtype=bool), np.einsum("hid,hjd->hij", q, k) * scale, np.nan)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Over the keys that are not NaN; NaN stays."""
    grown = np.exp(scores - np.nanmax(scores, axis=-1, keepdims=True))
    return grown / np.nansum(grown, axis=-1, keepdims=True)


def bias(method: str, p: Params, heads: int, x: np.ndarray, content: np.ndarray, **options: Any) -> np.ndarray:
    """What a method of this name adds to the content scores of a layer with this normed input."""
    if method == "cable":
        return cable(p, heads, x)
    if method.startswith("dapev2-"):
        return dape(p, bias(method.removeprefix("dapev2-"), p, heads, x, content, **options), content)
    plain = {"alibi": alibi, "t5": t5, "kerple": kerple, "kerple-power": kerple_power, "fire": fire}
    return plain[method](p, heads, len(x), **options)

"""Row sources over a bias that does not depend on tokens: numpy alone, from a few kilobytes of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from posviz.methods.base import Block, DistanceMethod, PositionalMethod
from posviz.rows import causal


def bias_rows(method: PositionalMethod, parameters: Mapping[str, np.ndarray], length: int) -> BiasRows:
    """The bias of a method with these parameters, over so many positions."""
    kind = DistanceRows if isinstance(method, DistanceMethod) else BiasRows
    return kind(method, parameters, length)


class BiasRows:
    """Any such bias, computed from its formula."""

    PAIRS = 2**14  # of query and key at a time: a small network's hidden units for so many fit into a cache

    def __init__(self, method: PositionalMethod, parameters: Mapping[str, np.ndarray], length: int) -> None:
        self.method, self.parameters = method, parameters
        self.n_head = method.n_head
        self.seq_len = self.key_len = length

    def rows(self, quantity: str, start: int, stop: int) -> np.ndarray:
        return self._rows(quantity, start, stop, self.key_len)

    def past(self, quantity: str, start: int, stop: int) -> np.ndarray:
        return self._rows(quantity, start, stop, stop)

    def _rows(self, quantity: str, start: int, stop: int, keys: int) -> np.ndarray:
        assert quantity == "bias"
        found = np.empty((self.n_head, stop - start, keys), dtype=np.float32)
        wide = max(1, self.PAIRS // (stop - start))
        for key in range(0, keys, wide):
            block = Block(np.arange(start, stop)[:, None], np.arange(key, min(key + wide, keys))[None, :], np)
            found[:, :, key : key + wide] = self.method.bias(self.parameters, block)
        return found

    def visible(self, start: int, stop: int) -> np.ndarray:
        return causal(start, stop, self.key_len)


class DistanceRows(BiasRows):
    """A bias of the distance alone: one row of numbers says everything."""

    method: DistanceMethod

    def by_distance(self) -> np.ndarray:
        reached = np.arange(1 - self.seq_len, self.seq_len, dtype=np.float32)
        return np.asarray(self.method.of_distance(self.parameters, reached, np), dtype=np.float32)

    def _rows(self, quantity: str, start: int, stop: int, keys: int) -> np.ndarray:
        assert quantity == "bias"
        windows = np.lib.stride_tricks.sliding_window_view(self._falling, keys, axis=1)
        return windows[:, self.seq_len - stop : self.seq_len - start][:, ::-1]

    @cached_property
    def _falling(self) -> np.ndarray:
        """The bias as the distance falls, which it does along a row of the matrix."""
        return self.by_distance()[:, ::-1]

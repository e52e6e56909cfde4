"""A transformers model opened for looking at: which layers it has, and what the attention of one of them sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posviz.errors import CaptureError, SequenceError
from posviz.models.huggingface import interface, recognise, rotation
from posviz.models.huggingface.capture import HFCapture, notes_on
from posviz.models.huggingface.layers import Layers
from posviz.models.huggingface.quiet import quiet
from posviz.models.huggingface.verify import own_attention
from posviz.models.huggingface.watch import Caught, Frame, Listening, again, first_input, run_until_caught
from posviz.models.intercept import Interceptor
from posviz.models.seen import SeenAttention

REPEATED = 5  # times that one token is shown, to see whether its place shows
CHECKED_ROWS = 4  # of every capture, computed once more by the model's own eager function


@dataclass
class HFModel:
    """A model without its output head. Layers are counted from 0 here."""

    name: str
    model: Any  # transformers.PreTrainedModel
    layers: Layers
    stack: str | None  # "encoder", "decoder" or "cross"; None for a model of one stack
    by_interface: bool  # whether its attention goes through transformers' own exchange
    n_heads: int | None
    vocab_size: int
    context: int | None
    notes: tuple[str, ...] = ()

    @property
    def n_layers(self) -> int:
        return self.layers.count

    @property
    def position_table(self) -> str | None:
        """The name of a table of absolute positions, if there is one: no sequence can be longer than it."""
        return recognise.position_table(self.model)

    @cached_property
    def adds_positions(self) -> bool:
        """Whether positions are in the token embeddings: one token repeated then differs from place to place."""
        special = {getattr(self.model.config, f"{name}_token_id", None) for name in ("pad", "bos", "eos")}
        token = next(index for index in range(self.vocab_size) if index not in special)
        with torch.inference_mode():
            tokens = torch.full((1, REPEATED), token, device=self.model.device)
            states = first_input(self.layers.first, lambda: self.run(tokens))
        if states is None or REPEATED not in states.shape:
            return False
        return not recognise.same_everywhere(states, states.shape.index(REPEATED))

    def method_of(self, layer: int) -> str:
        """The positional method of a layer, from a run on a few tokens."""
        return self.capture(np.arange(8) % self.vocab_size, layer).method

    def capture(self, ids: np.ndarray, layer: int, *, raw: bool = False) -> HFCapture:
        """What one layer's attention sees; `raw` shows a bias as it is stored, also where that misleads the eye."""
        return self.captures(ids, [layer], raw=raw)[layer]

    @torch.inference_mode()
    def captures(self, ids: np.ndarray, layers: Iterable[int], *, raw: bool = False) -> dict[int, HFCapture]:
        """Several layers in one run, which ends at the last of them."""
        tokens, wanted = self.tokens(ids), list(layers)
        for layer in wanted:
            if not 0 <= layer < self.n_layers:
                raise CaptureError(f"{self.name} has no layer {layer + 1}; it has layers 1 to {self.n_layers}")
        ways: list[Listening] = [interface.listening, watching] if self.by_interface else [watching]
        found: dict[int, HFCapture] = {}
        for way in ways:  # a layer may do without the exchange that its model otherwise goes through
            missing = [layer for layer in wanted if layer not in found]
            for layer, caught in self._caught(tokens, missing, way).items():
                found[layer] = self._captured(layer, caught, way, ids, raw)
        for layer in wanted:
            if layer not in found:
                raise CaptureError(
                    f"layer {layer + 1} of {self.name} attends in no way we see; {self._looked_for(layer)}"
                )
        return {layer: found[layer] for layer in wanted}

    def _caught(self, tokens: Tensor, layers: list[int], way: Listening) -> dict[int, Caught]:
        watches = {layer: self.layers.watch(layer) for layer in layers}
        try:
            if layers:
                run_until_caught(list(watches.values()), lambda: self.run(tokens), way)
        except (IndexError, RuntimeError) as error:
            if self.context is None or tokens.shape[1] < self.context:
                raise
            raise SequenceError(
                f"{tokens.shape[1]} tokens are more than {self.name} has positions for (context {self.context})"
            ) from error
        return {layer: watch.caught for layer, watch in watches.items() if watch.caught is not None}

    def run(self, tokens: Tensor, **options: Any) -> Any:
        """A forward pass. The two halves of an encoder-decoder model are given the same tokens."""
        with quiet():
            if self.stack is None:
                return self.model(input_ids=tokens, **options)
            if self.stack == "encoder":
                return self.model.get_encoder()(input_ids=tokens, **options)
            return self.model(input_ids=tokens, decoder_input_ids=tokens, **options)

    def tokens(self, ids: np.ndarray) -> Tensor:
        """A batch of one, checked against the vocabulary and the position table."""
        if ids.ndim != 1 or len(ids) == 0:
            raise SequenceError(f"token ids of shape {ids.shape}; expected one row of them")
        if int(ids.min()) < 0 or int(ids.max()) >= self.vocab_size:
            wrong = int(ids.min()) if int(ids.min()) < 0 else int(ids.max())
            raise SequenceError(f"token id {wrong} is not in {self.name}'s vocabulary of {self.vocab_size}")
        if self.context is not None and len(ids) > self.context and self.position_table is not None:
            raise SequenceError(
                f"{len(ids)} tokens, but {self.name} has a table of {self.context} positions; use a shorter sequence"
            )
        return torch.from_numpy(np.ascontiguousarray(ids, dtype=np.int64))[None].to(self.model.device)

    def _captured(self, layer: int, caught: Caught, way: Listening, ids: np.ndarray, raw: bool) -> HFCapture:
        seen = replace(caught.seen)
        _check_whole(seen, len(ids), f"layer {layer + 1} of {self.name}")
        turned = rotation.plain(seen, caught.frame, caught.frame.module, way)
        if turned is not None:
            seen.plain_q, seen.plain_k = turned
        recognise.as_stripes(seen)
        added = turned is None and self.adds_positions
        method = recognise.method_of(seen, self.model.config, added)
        seen.relative = method == "alibi" and not raw
        notes = notes_on(seen, method, added, raw) + _check(caught)
        if method == "none":
            notes.append(self._elsewhere(layer, caught.frame, way))
        own = lambda: own_attention(self, ids, [layer])[layer]  # noqa: E731
        return HFCapture(**vars(seen), method=method, notes=(*self.notes, *notes), own_weights=own)

    def _looked_for(self, layer: int) -> str:
        others = self.layers.with_attention()
        if others and layer not in others:
            return f"layers with attention are: {', '.join(str(index + 1) for index in others)}"
        return (
            "looked for transformers' attention functions, scaled_dot_product_attention, and a softmax over a product "
            "of queries and keys"
        )

    def _elsewhere(self, layer: int, frame: Frame, way: Listening) -> str:
        """Where position is, if not in this layer: the nearest one that rotates, found by asking each."""
        for other in sorted(range(self.n_layers), key=lambda index: abs(index - layer)):
            module = self.layers.at(other, frame.name)
            seen = None if module is None or other == layer else again(module, way, frame.inputs)
            if module is not None and seen is not None and rotation.plain(seen, frame, module, way):
                return f"layer {layer + 1} carries no position; the nearest layer with RoPE is layer {other + 1}"
        return f"layer {layer + 1} carries no position: its scores are content alone"


@contextmanager
def watching(report: interface.Report) -> Iterator[None]:
    """`report` hears of every attention call in the model's own code."""
    with Interceptor(lambda seen: report(seen, None)):
        yield


def _check(caught: Caught) -> list[str]:
    """Whether the model's own eager function agrees on the last rows with what we make of its call."""
    seen, call = caught.seen, caught.call
    start, stop = max(0, seen.seq_len - CHECKED_ROWS), seen.seq_len
    own = None if call is None else call.own_rows(seen, start, stop)
    if own is None or own[1] is None:
        return []
    difference = float(np.abs(own[1][0].float().cpu().numpy() - seen.rows("attention", start, stop)).max())
    if difference <= (1e-3 if own[1].dtype == torch.float32 else 5e-2):
        return []
    return [f"warning: attention recomputed from these scores differs from the model's own by {difference:.1g}"]


def _check_whole(seen: SeenAttention, length: int, where: str) -> None:
    """Scores of every token, and numbers that mean something."""
    if seen.seq_len != length:
        raise CaptureError(
            f"{where} attends in pieces, {seen.n_head} x {seen.seq_len} x {seen.key_len} scores for {length} tokens; "
            "sparse and blockwise attention cannot be captured"
        )
    parts = [part for part in (seen.q, seen.k) if part is not None]
    if not all(bool(part.isfinite().all()) for part in parts):
        raise CaptureError(
            f"{where}: its queries or keys are not finite; the weights are broken, or need dtype float32"
        )

"""One layer of a transformers model on one sequence, and what a reader of its figure should know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from posviz.errors import MethodError
from posviz.models.huggingface import recognise
from posviz.models.seen import SeenAttention

_INSTEAD = "ask for 'scores', 'content' or 'attention'"
WHY_NO_BIAS = {
    "rope": f"RoPE adds no bias to the scores, it turns queries and keys before their product; {_INSTEAD}",
    "learned": f"this model adds positions to its token embeddings and nothing to its scores; {_INSTEAD}",
    "none": f"this layer adds nothing to its scores; {_INSTEAD}",
}


@dataclass(kw_only=True)
class HFCapture(SeenAttention):
    """A row source with a name for what it shows."""

    method: str
    notes: tuple[str, ...] = ()
    own_weights: Callable[[], np.ndarray] = field(repr=False)

    @property
    def title(self) -> str:
        """The method as figures and captions print it."""
        return recognise.title(self.method)

    @property
    def additive(self) -> bool:
        """Whether position is in a bias that is added to the scores."""
        return bool(self.biases) and self.method != "rope"

    def rows(self, quantity: str, start: int, stop: int) -> np.ndarray:
        if quantity == "bias" and not self.biases:
            raise MethodError(WHY_NO_BIAS[self.method])
        return super().rows(quantity, start, stop)

    def weights(self) -> np.ndarray:
        """The model's own attention weights of this layer, `[head, query, key]`, from a run of its eager attention."""
        return self.own_weights()


def notes_on(seen: SeenAttention, method: str, added: bool, raw: bool) -> list[str]:
    """What the figure alone would not tell; `added` says that positions are in the token embeddings."""
    said = []
    if seen.q is None:
        said.append("the way from queries and keys to the scores could not be followed: the softmax's input is drawn")
    if method == "learned":
        said.append("positions are added to the token embeddings, and nothing in attention: scores are drawn")
    elif added and seen.biases:
        said.append("positions are also added to the token embeddings")
    if method == "alibi" and recognise.striped(seen):
        said.append(
            "the bias is drawn as stored, one row for all queries; softmax cannot tell it from the relative form"
            if raw
            else "the bias is stored as one row for all queries; it is drawn relative to each query, as b[i,j] - b[i,i]"
        )
    if recognise.added_twice(seen):
        said.append(
            "warning: in eager mode this model adds its bias twice, to the scores and in its mask; drawn is their sum, "
            "SDPA adds half of it"
        )
    if seen.cap is not None:
        said.append(f"scores are capped softly at {seen.cap:g}")
    if seen.sinks is not None:
        said.append("each head has an attention sink: its attention rows sum to less than 1")
    if (count := recognise.reach(seen)) is not None:
        said.append(f"this layer does not look everywhere: the last query sees {count} of {seen.key_len} keys")
    return said

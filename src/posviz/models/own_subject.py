"""A checkpoint of our own GPT as something to look at. torch is imported when the model runs: headers come first."""

from __future__ import annotations

from collections.abc import Collection

from posviz import methods
from posviz.checkpoint import Checkpoint, Resolved
from posviz.options import CaptureRequest
from posviz.sequence import Sequence, SequenceRequest, sample
from posviz.subjects import Seen, Subject


class OwnSubject(Subject):
    """A checkpoint of a GPT-2 with one of our methods, run by our own model."""

    def __init__(self, checkpoint: Checkpoint, resolved: Resolved) -> None:
        self.name, self.checkpoint = checkpoint.name, checkpoint
        self.config = resolved.model_config()
        self.n_layers = self.config.n_layer
        self.context = self.config.block_size or None
        self.notes = resolved.notes + _assumed(checkpoint)
        self.method = methods.get(self.config.method)

    def sha256(self) -> str:
        return self.checkpoint.sha256()

    def sequence(self, request: CaptureRequest) -> Sequence:
        return sample(
            SequenceRequest.of(request),
            vocab_size=self.config.vocab_size,
            block_size=self.context,
            learned_positions=self.config.learned_positions,
            tokenizer_hint=self.checkpoint.tokenizer,
        )

    def see(self, sequence: Sequence | None, layers: Collection[int], request: CaptureRequest) -> dict[int, Seen]:
        from posviz.models.own import see

        assert sequence is not None
        return {
            layer: Seen(rows, self.method.name, self.method.title, self.method.additive, notes)
            for layer, (rows, notes) in see(self.checkpoint, self.config, sequence.ids, layers, request).items()
        }


def _assumed(checkpoint: Checkpoint) -> tuple[str, ...]:
    if checkpoint.format in ("state dict", "safetensors"):
        return ("the file does not say which GELU it was trained with: GPT-2's is used (a --config file can say gelu)",)
    return ()

"""A transformers model as something to look at: a folder or a hub id, run by its own code."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from posviz.checkpoint import Checkpoint, open_checkpoint
from posviz.errors import MethodError, PosvizError
from posviz.options import CaptureRequest
from posviz.sequence import Sequence, SequenceRequest, sample
from posviz.subjects import Seen, Subject

if TYPE_CHECKING:
    from posviz.models.huggingface import HFCapture, HFModel

TOLERANCE = 1e-4  # between the softmax of our scores and the model's own attention weights


class TransformersSubject(Subject):
    """Any model that transformers can load; its own tensors are drawn."""

    def __init__(self, request: CaptureRequest) -> None:
        assert request.ckpt is not None
        path = Path(request.ckpt).expanduser()
        self.checkpoint: Checkpoint | None = open_checkpoint(path) if path.exists() else None
        self.id = str(path) if self.checkpoint else request.ckpt
        self.name = self.id.rstrip("/").rsplit("/", 1)[-1]
        self.request = request

    @cached_property
    def model(self) -> HFModel:
        """The model, when it is first needed: importing transformers takes seconds, and hashing can begin before."""
        from posviz.models.huggingface import open_model
        from posviz.models.running import settings

        device, _ = settings(self.request)
        return open_model(
            self.id,
            revision=self.request.revision,
            trust_remote_code=self.request.trust_remote_code,
            device=str(device),
            dtype=self.request.dtype,
            device_map=self.request.device_map,
            stack=self.request.stack,
        )

    @cached_property
    def n_layers(self) -> int:  # type: ignore[override]  # nobody writes it
        return self.model.n_layers

    @cached_property
    def context(self) -> int | None:  # type: ignore[override]
        return self.model.context

    def sha256(self) -> str | None:
        return None if self.checkpoint is None else self.checkpoint.sha256()

    def sequence(self, request: CaptureRequest) -> Sequence:
        hub_id = None if self.checkpoint else self.id
        return sample(
            SequenceRequest.of(request, tokenizer=request.tokenizer or hub_id),
            vocab_size=self.model.vocab_size,
            block_size=self.model.context,
            learned_positions=self.model.position_table is not None,
            tokenizer_hint=None if self.checkpoint is None else self.checkpoint.tokenizer,
        )

    def see(self, sequence: Sequence | None, layers: Collection[int], request: CaptureRequest) -> dict[int, Seen]:
        assert sequence is not None
        captures = self.model.captures(sequence.ids, layers, raw=request.raw)
        checked = self._verified(sequence, layers) if request.verify else {}
        return {layer: self._seen(layer, each, request, checked.get(layer)) for layer, each in captures.items()}

    def _seen(self, layer: int, found: HFCapture, request: CaptureRequest, checked: str | None) -> Seen:
        if request.method is not None and request.method != found.method:
            raise MethodError(
                f"layer {layer + 1} of {self.name} is of {found.title} ({found.method}), not of {request.method}; "
                "leave --method out"
            )
        notes = found.notes if checked is None else (*found.notes, checked)
        return Seen(found, found.method, found.title, found.additive, notes)

    def _coarse(self) -> str:
        dtype = str(self.model.model.dtype).removeprefix("torch.")
        return "" if dtype in ("float32", "float64") else f"; it runs in {dtype}, so try --dtype float32"

    def _verified(self, sequence: Sequence, layers: Collection[int]) -> dict[int, str]:
        """What there is to say of each layer; an error if one differs."""
        from posviz.models.huggingface import verify

        said = {}
        for layer, difference in verify(self.model, sequence.ids, layers):
            said[layer] = (
                f"verified: softmax of layer {layer + 1}'s scores and the model's own attention weights differ by "
                f"at most {difference:.1e}"
            )
            if not difference <= TOLERANCE:
                raise PosvizError(
                    f"{said[layer].removeprefix('verified: ')}; expected at most {TOLERANCE:g}{self._coarse()}"
                )
        return said

"""A user's own module as something to look at: built by their function, run on token ids, recorded."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import torch
from torch import Tensor, nn

from posviz.checkpoint import Checkpoint, open_checkpoint
from posviz.errors import CaptureError, PosvizError
from posviz.models.building import build_model
from posviz.models.running import settings
from posviz.options import CaptureRequest
from posviz.recording import Recording, record
from posviz.sequence import Sequence, SequenceRequest, sample
from posviz.subjects import Seen, Subject


class CustomSubject(Subject):
    """Whatever `--model package.module:function` builds; layers are its attention calls in their order."""

    def __init__(self, request: CaptureRequest) -> None:
        assert request.model is not None
        if request.method is not None:
            raise PosvizError("--method names one of posviz's own methods; a module of your own is drawn as it is")
        self.name = request.model
        self.checkpoint: Checkpoint | None = None
        weights = None
        if request.ckpt is not None:
            self.checkpoint = open_checkpoint(Path(request.ckpt).expanduser())
            weights = {name: self.checkpoint.torch(name) for name in self.checkpoint.tensors}
        self.device, dtype = settings(request)
        self.model = build_model(request.model, weights).to(self.device)
        if request.dtype is not None:
            self.model = self.model.to(dtype)

    def sha256(self) -> str | None:
        return None if self.checkpoint is None else self.checkpoint.sha256()

    def sequence(self, request: CaptureRequest) -> Sequence:
        tables = [module for module in self.model.modules() if isinstance(module, nn.Embedding)]
        found = sample(
            SequenceRequest.of(request),
            vocab_size=tables[0].num_embeddings if tables else None,
            block_size=None,
            tokenizer_hint=None,
        )
        recording = record(self.model, -1)
        self._run(recording, found)
        _ = recording.seen  # says what was looked for if there is no attention to see
        self.n_layers = recording.n_layers
        return found

    def see(self, sequence: Sequence | None, layers: Collection[int], request: CaptureRequest) -> dict[int, Seen]:
        assert sequence is not None
        found = {}
        for layer in layers:
            recording = record(self.model, layer + 1)
            self._run(recording, sequence)
            seen = recording.seen
            found[layer] = Seen(seen, "custom", type(self.model).__name__, bool(seen.biases), recording.notes)
        return found

    @torch.no_grad()
    def _run(self, recording: Recording, sequence: Sequence) -> None:
        ids: Tensor = torch.from_numpy(sequence.ids)[None].to(self.device)
        try:
            with recording:
                self.model(ids)
        except PosvizError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise CaptureError(
                f"{self.name}: the model was called with token ids of shape {list(ids.shape)} and failed: "
                f"{type(error).__name__}: {reason}"
            ) from error

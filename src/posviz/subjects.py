"""What can be looked at: a bias alone, our own GPT, a transformers model, a user's own module. One interface."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posviz import bundled, methods
from posviz.bias import bias_rows
from posviz.errors import CheckpointError, MethodError, PosvizError
from posviz.methods.base import PositionalMethod
from posviz.options import CaptureRequest
from posviz.rows import RowSource

if TYPE_CHECKING:
    from posviz.checkpoint import Checkpoint, Resolved
    from posviz.sequence import Sequence


@dataclass(frozen=True)
class Seen:
    """One layer on one sequence, and what it should be called."""

    rows: RowSource
    method: str
    title: str
    additive: bool  # whether it adds a bias, which is then what is drawn if nothing else is asked for
    notes: tuple[str, ...] = ()


class Subject:
    """A model opened for looking at."""

    name: str
    n_layers: int | None = None  # None: a formula that is the same in every layer
    context: int | None = None  # the length it was trained with
    notes: tuple[str, ...] = ()

    def sha256(self) -> str | None:
        """The hash of the checkpoint's content, or None where there is no checkpoint."""
        return None

    def sequence(self, request: CaptureRequest) -> Sequence | None:
        """The tokens to run on; None where the tokens do not matter."""
        return None

    def see(self, sequence: Sequence | None, layers: Collection[int], request: CaptureRequest) -> dict[int, Seen]:
        """What the attention of these layers (from 0) sees."""
        raise NotImplementedError


def open_subject(request: CaptureRequest) -> Subject:
    """The model that a request is about, opened by what its checkpoint is."""
    if request.method is not None:
        methods.get(request.method)
    if request.model is not None:
        _refuse(request, "a module of your own")
        from posviz.models.custom import CustomSubject

        return CustomSubject(request)
    if request.ckpt is None:
        if request.method == "alibi" and request.n_head is not None:
            _refuse(request, "a formula")
            return _formula(request)
        path = bundled.path(request.method)
    else:
        path = Path(request.ckpt).expanduser()
    if not path.exists() and is_hub_id(str(request.ckpt)):
        return _transformers(request)
    from posviz.checkpoint import open_checkpoint, resolve

    checkpoint = open_checkpoint(path)
    if checkpoint.is_transformers:
        return _transformers(request)
    _refuse(request, checkpoint.name)
    resolved = resolve(checkpoint, overrides(request))
    if is_bias_alone(request, resolved.method):
        return BiasSubject(checkpoint, resolved)
    from posviz.models.own_subject import OwnSubject

    return OwnSubject(checkpoint, resolved)


def _refuse(request: CaptureRequest, what: str) -> None:
    """Raise for an option that only a transformers model knows: it would do nothing here."""
    for name in ("stack", "raw", "revision", "trust_remote_code", "device_map"):
        if getattr(request, name):
            raise PosvizError(f"--{name.replace('_', '-')} is for transformers models, and means nothing for {what}")


def is_bias_alone(request: CaptureRequest, method: str) -> bool:
    """Whether a request needs no model to run: a bias that does not depend on tokens."""
    return request.quantity in (None, "bias") and not methods.get(method).token_dependent


def method_of(request: CaptureRequest) -> str:
    """The method that the request's checkpoint is of, from its header."""
    from posviz.checkpoint import open_checkpoint, resolve

    return resolve(open_checkpoint(Path(str(request.ckpt)).expanduser()), overrides(request)).method


def is_hub_id(text: str) -> bool:
    """`name` or `owner/name`, and nothing that looks like a file."""
    parts = text.split("/")
    return len(parts) <= 2 and all(p and p[0].isalnum() for p in parts) and not Path(text).suffix[1:].isalpha()


def overrides(request: CaptureRequest) -> Any:
    """What the options say that a checkpoint may not."""
    from posviz.checkpoint import Overrides

    return Overrides(
        method=request.method,
        config=read_config(request.config),
        n_head=request.n_head,
        alibi_slopes=request.alibi_slopes,
        rope_pairing=request.rope_pairing,
        rope_base=request.rope_base,
        rotary_dim=request.rotary_dim,
        scale_scores=request.scale_scores,
    )


def read_config(path: Path | None) -> Mapping[str, Any] | None:
    if path is None:
        return None
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise PosvizError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise PosvizError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise PosvizError(f"{path} holds a {type(data).__name__}; expected an object with names such as n_head")
    return data


def _transformers(request: CaptureRequest) -> Subject:
    from posviz.models.transformers_subject import TransformersSubject

    return TransformersSubject(request)


def _formula(request: CaptureRequest) -> Subject:
    assert request.n_head is not None
    if request.n_head < 1:
        raise PosvizError(f"n-head is {request.n_head}; expected 1 or more")
    if request.quantity not in (None, "bias"):
        raise MethodError(f"{request.quantity} depends on the tokens and needs a checkpoint; say --ckpt")
    method = methods.get("alibi")(request.n_head, slopes=request.alibi_slopes or "geometric")
    return FormulaSubject(method)


def _nothing_to_verify(request: CaptureRequest) -> None:
    if request.verify:
        raise PosvizError("a bias alone runs no attention to verify against; ask for --quantity scores or attention")


class FormulaSubject(Subject):
    """A method without parameters needs no checkpoint."""

    def __init__(self, method: PositionalMethod) -> None:
        self.name = f"{method.name} formula"
        self.method = method

    def see(self, sequence: Sequence | None, layers: Collection[int], request: CaptureRequest) -> dict[int, Seen]:
        _nothing_to_verify(request)
        rows = bias_rows(self.method, {}, request.seq_len)
        return {layer: Seen(rows, self.method.name, self.method.title, True) for layer in layers}


class BiasSubject(Subject):
    """A token-independent bias of a checkpoint: its own few tensors are all that is read."""

    def __init__(self, checkpoint: Checkpoint, resolved: Resolved) -> None:
        self.name, self.checkpoint = checkpoint.name, checkpoint
        self.method = resolved.positional()
        self.notes = resolved.notes
        self.n_layers = len(checkpoint.layers()) or None
        self.context = resolved.config.block_size
        self.resolved = resolved

    def sha256(self) -> str | None:
        return self.checkpoint.sha256()

    def see(self, sequence: Sequence | None, layers: Collection[int], request: CaptureRequest) -> dict[int, Seen]:
        _nothing_to_verify(request)
        seen: dict[int, Seen] = {}
        for layer in layers:
            rows = bias_rows(self.method, self.resolved.parameters(layer), request.seq_len)
            seen[layer] = Seen(rows, self.method.name, self.method.title, True, self._notes(request.seq_len))
        return seen

    def _notes(self, length: int) -> tuple[str, ...]:
        if self.context and length > self.context:
            return (f"{length} positions are beyond the {self.context} it was trained with: this is extrapolation",)
        return ()


def layer_index(layer: int, n_layers: int | None) -> int:
    """A person's layer number (from 1, or negative from the end) as an index."""
    if n_layers is None:
        return 0
    if layer == 0 or abs(layer) > n_layers:
        raise CheckpointError(
            f"there is no layer {layer}; the model has layers 1 to {n_layers} (or -{n_layers} to -1, from the end)"
        )
    return layer - 1 if layer > 0 else n_layers + layer

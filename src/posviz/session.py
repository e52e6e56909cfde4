"""Model, sequence and layer in; a HeadStack out. Requests that share a model share its one run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from posviz import __version__
from posviz.awaited import Awaited, meanwhile
from posviz.errors import MethodError, PosvizError, unknown_name
from posviz.options import SEQUENCE, CaptureRequest, to_options
from posviz.rows import QUANTITIES, Folding, fold
from posviz.stack import HeadStack
from posviz.subjects import Seen, Subject, is_bias_alone, layer_index, method_of, open_subject

# What only decides which part of a run is shown; requests that differ in nothing else share the run.
SHOWN = {"quantity", "layer", "heads", "mask", "reduce"}
KEPT_BYTES = 128 * 2**20
Key = tuple[Any, ...]


@dataclass
class _Run:
    subject: Subject
    sequence: Any
    seen: dict[int, Seen]
    digest: Future[str | None]
    folded: dict[Key, HeadStack] = field(default_factory=dict)


class Session:
    """Several requests, each model opened once and run once over all the layers that are asked of it."""

    def __init__(self, requests: Sequence[CaptureRequest]) -> None:
        self.requests = list(requests)
        self._runs: dict[Key, _Run] = {}
        self._subjects: dict[Key, tuple[Subject, Future[str | None]]] = {}
        self._alone: dict[Key, bool] = {}  # whether the bias of a model needs no tokens

    def stack(self, request: CaptureRequest, *, profile: bool = False) -> HeadStack:
        """What this request asks for; with `profile`, a long sequence's mean over each distance is kept, too."""
        if request.quantity is not None and request.quantity not in QUANTITIES:
            raise PosvizError(unknown_name("quantity", request.quantity, QUANTITIES))
        if request.seq_len < 1:
            raise PosvizError(f"seq-len is {request.seq_len}; expected 1 or more")
        folding = Folding(mask=request.mask, reduce=request.reduce, profile=profile)
        heads = request.head_numbers()
        run = self._run(request)
        index = layer_index(request.layer, run.subject.n_layers)
        seen = run.seen[index]
        quantity = request.quantity or ("bias" if seen.additive else "scores")
        if quantity == "bias" and not seen.additive:
            raise MethodError(
                f"{seen.title} adds no bias to the scores; ask for --quantity scores, content or attention"
            )
        stack = self._folded(run, index, quantity, folding, heads)
        facts = self._meta(request, run, seen, quantity, index)
        stack = replace(stack, meta=Awaited({**facts, **stack.meta}, sha256=run.digest))
        _check_finite(stack)
        return stack

    def _folded(
        self, run: _Run, index: int, quantity: str, folding: Folding, heads: tuple[int, ...] | None
    ) -> HeadStack:
        """The numbers alone; kept, as far as there is room, where another request may show them in another way."""
        ids = None if run.sequence is None else run.sequence.ids
        tokens = () if run.sequence is None else run.sequence.tokens
        several = len(self.requests) > 1
        key = (index, quantity, folding)
        stack = run.folded.get(key)
        if stack is None:
            wanted = None if several else heads
            stack = fold(run.seen[index].rows, quantity, folding, heads=wanted, token_ids=ids, tokens=tokens)
            if several and sum(s.values.nbytes for s in run.folded.values()) + stack.values.nbytes <= KEPT_BYTES:
                run.folded[key] = stack
        return stack if heads is None else stack.select(heads)

    def _run(self, request: CaptureRequest) -> _Run:
        key = self._run_key(request)
        if key not in self._runs:
            subject, digest = self._subject(request)
            sequence = subject.sequence(request)
            alike = [r for r in self.requests if self._run_key(r) == key]
            layers = {layer_index(r.layer, subject.n_layers) for r in alike if _valid(r, subject)}
            layers.add(layer_index(request.layer, subject.n_layers))
            self._runs[key] = _Run(subject, sequence, subject.see(sequence, sorted(layers), request), digest)
        return self._runs[key]

    def _subject(self, request: CaptureRequest) -> tuple[Subject, Future[str | None]]:
        """The model, opened once for all its sequences, and its hash."""
        key = (self._is_alone(request), *model_key(request))
        if key not in self._subjects:
            subject = open_subject(request)
            # Hashing needs no interpreter: it runs while we draw.
            self._subjects[key] = subject, meanwhile(subject.sha256)
        return self._subjects[key]

    def _run_key(self, request: CaptureRequest) -> Key:
        """Requests with equal keys can share a run. A bias that needs no tokens has one of its own."""
        shared = (getattr(request, f.name) for f in fields(CaptureRequest) if f.name not in SHOWN)
        return (self._is_alone(request), *shared)

    def _is_alone(self, request: CaptureRequest) -> bool:
        if request.quantity not in (None, "bias"):
            return False
        key = model_key(request)
        if key not in self._alone:
            self._alone[key] = _needs_no_tokens(request)
        return self._alone[key]

    def _meta(self, request: CaptureRequest, run: _Run, seen: Seen, quantity: str, index: int) -> dict[str, Any]:
        notes = [*run.subject.notes, *seen.notes, *(run.sequence.notes if run.sequence is not None else ())]
        return {
            "posviz_version": __version__,
            "method": seen.method,
            "title": seen.title,
            "quantity": quantity,
            "layer": index + 1,
            "n_layers": run.subject.n_layers,
            "context": run.subject.context,
            "seed": request.seed,
            "source": run.subject.name,
            "token_ids_sha256": None if run.sequence is None else _digest(run.sequence.ids),
            "notes": notes,
            "options": to_options(request),
        }


def model_key(request: CaptureRequest) -> Key:
    """Requests with equal keys are about one model, opened in one way; opens nothing."""
    about = (f.name for f in fields(CaptureRequest) if f.metadata["group"] != SEQUENCE)
    return tuple(getattr(request, name) for name in about if name not in SHOWN)


def _needs_no_tokens(request: CaptureRequest) -> bool:
    if request.model is not None:
        return False
    try:
        return is_bias_alone(request, request.method or method_of(request))
    except PosvizError:
        return False  # opening it says what is wrong


def _valid(request: CaptureRequest, subject: Subject) -> bool:
    """Whether a neighbour's layer exists; if not, the error is its own to raise."""
    return subject.n_layers is None or 0 < abs(request.layer) <= subject.n_layers


def _digest(ids: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(ids, dtype="<i8").tobytes()).hexdigest()


def _check_finite(stack: HeadStack) -> None:
    """Refuse a stack with a head that has nothing to draw, or infinities: the weights are broken."""
    broken = [
        head
        for head, (low, high) in zip(stack.heads, stack.limits(), strict=True)
        if not np.isfinite([low, high]).all()
    ]
    if broken or np.isinf(stack.values).any():
        raise PosvizError(
            f"the {stack.meta['quantity']} of layer {stack.meta['layer']} of {stack.meta['source']} is not finite "
            f"(heads {', '.join(map(str, broken)) or 'several'}); the weights may be damaged"
        )

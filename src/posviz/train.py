"""A small honest trainer: byte-level text in, one of our own checkpoints out."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posviz import methods
from posviz.checkpoint import save_checkpoint
from posviz.config import ModelConfig
from posviz.corpus import Corpus
from posviz.errors import PosvizError
from posviz.models.gpt import GPT
from posviz.outputs.atomic import replacing

LEAST = {"steps": 1, "layers": 1, "heads": 1, "width": 1, "context": 1, "batch": 1, "seed": 0}


@dataclass(frozen=True)
class Plan:
    """Everything that decides the weights: two runs with equal plans end alike."""

    method: str
    steps: int = 1000
    layers: int = 4
    heads: int = 12
    width: int = 192
    context: int = 512
    batch: int = 8
    lr: float = 2e-3
    weight_decay: float = 0.1
    clip: float = 1.0
    warmup: int = 50
    seed: int = 0
    bf16: bool = True
    method_options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        methods.get(self.method)
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                raise PosvizError(f"--{name} is {getattr(self, name)}; expected {least} or more")
        if not 0 < self.lr < math.inf:
            raise PosvizError(f"--lr is {self.lr}; expected a number above 0")
        if self.width % self.heads:
            raise PosvizError(f"--width {self.width} cannot be split over --heads {self.heads}; expected a multiple")

    def model(self) -> ModelConfig:
        return ModelConfig(
            method=self.method,
            n_layer=self.layers,
            n_head=self.heads,
            n_embd=self.width,
            vocab_size=256,
            block_size=self.context,
            tokenizer="bytes",
            method_options=dict(self.method_options),
        )

    def rate(self, step: int) -> float:
        """A linear rise, then a cosine down to a tenth."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.lr * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))


@dataclass
class Progress:
    """What is told after each step."""

    step: int
    steps: int
    loss: float
    tokens_per_second: float
    seconds_left: float


class Trainer:
    """One training run; `step` counts the steps done."""

    def __init__(self, plan: Plan, corpus: Corpus) -> None:
        keep_memory()
        self.plan, self.corpus = plan, corpus
        self.model = GPT(plan.model(), seed=plan.seed)
        self.optimizer = torch.optim.AdamW(self._groups(), lr=plan.lr, betas=(0.9, 0.95), fused=True)
        self.step = 0
        self.seconds = 0.0
        self.loss = float("nan")  # the running mean of the training loss

    def _groups(self) -> list[dict[str, Any]]:
        """Weight decay for the weights of the network, none for norms, biases and positions."""
        decayed: list[Tensor] = []
        free: list[Tensor] = []
        for name, parameter in self.model.named_parameters():
            (free if parameter.ndim < 2 or ".pos." in name else decayed).append(parameter)
        return [{"params": decayed, "weight_decay": self.plan.weight_decay}, {"params": free, "weight_decay": 0.0}]

    def run(self, report: Callable[[Progress], None], stop: Callable[[], bool], every: Callable[[], None]) -> None:
        """Train to the end of the plan, or until `stop` says so; `every` is called after each step."""
        while self.step < self.plan.steps and not stop():
            begun = time.perf_counter()
            loss = self._one_step()
            took = time.perf_counter() - begun
            self.seconds += took
            self.loss = loss if math.isnan(self.loss) else 0.98 * self.loss + 0.02 * loss
            per_step = self.seconds / self.step
            tokens = self.plan.batch * self.plan.context
            report(
                Progress(self.step, self.plan.steps, self.loss, tokens / took, per_step * (self.plan.steps - self.step))
            )
            every()

    def _one_step(self) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.plan.rate(self.step)
        rows = self.corpus.batch(self.plan.batch, self.plan.context + 1, seed=(self.plan.seed, self.step))
        with self._precision():
            loss = self.model.loss(torch.from_numpy(rows))
        if not torch.isfinite(loss):
            raise PosvizError(f"the loss became {loss.item()} at step {self.step}; try a smaller --lr or --no-bf16")
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.plan.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return loss.item()

    def _precision(self) -> torch.autocast:
        return torch.autocast("cpu", torch.bfloat16, enabled=self.plan.bf16)

    @torch.no_grad()
    def validate(self) -> float:
        """The mean loss on the held-out text, in nats per byte."""
        losses = []
        for rows in self.corpus.held_out_batches(self.plan.batch, self.plan.context + 1):
            with self._precision():
                losses.append(self.model.loss(torch.from_numpy(rows)).item())
        return float(np.mean(losses))

    # -- what is kept -------------------------------------------------------------------------------------------

    def save(self, path: Path, dtype: torch.dtype) -> dict[str, Any]:
        """Write the checkpoint; what a reader should know of its training is returned, and is in the header."""
        notes = {
            "data": self.corpus.names,
            "steps": self.step,
            "planned_steps": self.plan.steps,
            "training_loss": round(self.loss, 4) if self.step else None,
            "validation_loss": round(self.validate(), 4),
            "unigram_loss": round(self.corpus.unigram_loss(), 4),
            "seconds": round(self.seconds, 1),
            "moved": self.moved(),
            "plan": asdict(self.plan),
        }
        state = {name: tensor.to(dtype) for name, tensor in self.model.state_dict().items() if name != "lm_head.weight"}
        save_checkpoint(state, self.plan.model(), path, {"training": notes})
        return notes

    def moved(self) -> dict[str, float]:
        """How far each positional parameter has gone from its start: the root mean square over all layers."""
        start = dict(GPT(self.plan.model(), seed=self.plan.seed).named_parameters())
        squares: dict[str, list[Tensor]] = {}
        for name, parameter in self.model.named_parameters():
            if ".pos." in name:
                way = (parameter - start[name]).detach().square().mean()
                squares.setdefault(name.partition(".pos.")[2], []).append(way)
        return {name: round(torch.stack(ways).mean().sqrt().item(), 4) for name, ways in squares.items()}

    def save_state(self, path: Path) -> None:
        """Everything that is needed to go on as if nothing had happened."""
        state = {
            "plan": asdict(self.plan),
            "corpus": self.corpus.fingerprint(),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "loss": self.loss,
        }
        with replacing(path) as temporary:
            torch.save(state, temporary)

    def load_state(self, path: Path) -> None:
        """Go on from `save_state`; another plan or other text is refused, because it would not be the same run."""
        try:
            state = torch.load(path, weights_only=True)
            known, corpus = state["plan"], state["corpus"]
        except Exception as error:  # a damaged file fails in many ways
            why = " ".join(str(error).split())[:120]
            raise PosvizError(
                f"{path} cannot be resumed from ({type(error).__name__}: {why}); delete it to begin again"
            ) from error
        for key, mine in asdict(self.plan).items():
            if known.get(key) != mine:
                raise PosvizError(
                    f"{path} was trained with {key} {known.get(key)!r}, not {mine!r}; resume with the same options, "
                    "or delete it to begin again"
                )
        if corpus != self.corpus.fingerprint():
            raise PosvizError(f"{path} was trained on other text; resume with the same --text-file")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds, self.loss = state["step"], state["seconds"], state["loss"]


def keep_memory() -> None:
    """Tell glibc to keep large blocks instead of giving them back: on a CPU that halves the time of a step."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        trim, mmap = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
        libc.mallopt(mmap, 2**30)
        libc.mallopt(trim, 2**31 - 1)
    except (OSError, AttributeError):
        pass  # another C library: only slower

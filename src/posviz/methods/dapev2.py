"""DAPE V2: two convolutions along the keys refine another method's bias by what the content scores say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from posviz.methods.alibi import Alibi
from posviz.methods.base import Array, Block, PositionalMethod
from posviz.methods.fire import Fire
from posviz.methods.kerple import Kerple

WIDTH = 32  # channels between the two convolutions
KERNEL = 3
CONVOLUTIONS: dict[str, tuple[int | str, ...]] = {
    "mlp2.0.weight": ("channel", "2 head", 1, KERNEL),
    "mlp2.0.bias": ("channel",),
    "mlp2.2.weight": ("head", "channel", 1, KERNEL),
    "mlp2.2.bias": ("head",),
}


class DapeV2(PositionalMethod):
    """The bias drawn is `B + f([A; B])`, with `B` the wrapped method's bias and `A` the content score."""

    wrapped: ClassVar[type[PositionalMethod]]
    drawn = "B + f([A; B]), f two 1x3 convolutions over keys"
    reference = "Zheng et al. 2024, arXiv:2410.04798"
    token_dependent = True
    reads_content = True
    reads_ahead = KERNEL // 2  # the second convolution sees what the first makes of the key after the query's own

    def __init__(self, n_head: int, n_embd: int = 0, **options: Any) -> None:
        super().__init__(n_head, n_embd, **options)
        self.inner = self.wrapped(n_head, n_embd, **options)

    def initial(self, generator: Any) -> dict[str, Array]:
        import torch

        def uniform(*shape: int, fan_in: int) -> Array:
            return (2 * torch.rand(*shape, generator=generator) - 1) * fan_in**-0.5

        first, second = 2 * self.n_head * KERNEL, WIDTH * KERNEL
        return self.inner.initial(generator) | {
            "mlp2.0.weight": uniform(WIDTH, 2 * self.n_head, 1, KERNEL, fan_in=first),
            "mlp2.0.bias": uniform(WIDTH, fan_in=first),
            "mlp2.2.weight": uniform(self.n_head, WIDTH, 1, KERNEL, fan_in=second),
            "mlp2.2.bias": uniform(self.n_head, fan_in=second),
        }

    def bias(self, p: Mapping[str, Array], block: Block) -> Array:
        import torch
        from torch.nn.functional import conv2d, leaky_relu

        assert block.content is not None
        plain = self.inner.bias(p, block).expand_as(block.content)
        past = (block.d >= 0).to(block.content.dtype)
        both = torch.cat([block.content, plain], dim=1) * past  # [batch, 2 head, row, key]
        both = both.to(memory_format=torch.channels_last)  # several times faster on a CPU
        side = (0, KERNEL // 2)
        hidden = leaky_relu(conv2d(both, p["mlp2.0.weight"], p["mlp2.0.bias"], padding=side))
        return plain + conv2d(hidden, p["mlp2.2.weight"], p["mlp2.2.bias"], padding=side)


class DapeV2Kerple(DapeV2):
    name = "dapev2-kerple"
    title = "DAPEv2+Kerple"
    wrapped = Kerple
    spec = Kerple.spec | CONVOLUTIONS


class DapeV2Alibi(DapeV2):
    name = "dapev2-alibi"
    title = "DAPEv2+ALiBi"
    wrapped = Alibi
    spec = dict(Alibi.spec) | CONVOLUTIONS
    optional = Alibi.optional
    buffers = Alibi.buffers
    options = Alibi.options
    choices = Alibi.choices

    @classmethod
    def unsaid(cls, n_head: int | None) -> list[str]:
        return Alibi.unsaid(n_head)


class DapeV2Fire(DapeV2):
    name = "dapev2-fire"
    title = "DAPEv2+FIRE"
    wrapped = Fire
    spec = dict(Fire.spec) | CONVOLUTIONS
    optional = Fire.optional
    buffers = Fire.buffers
    options = Fire.options

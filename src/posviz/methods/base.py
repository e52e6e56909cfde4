"""What a positional method is: its parameters, how it knows itself in a checkpoint, and its formula.

A formula is written once, on arrays of either kind: `xp` is `numpy` when a figure is drawn from a checkpoint's few
kilobytes of bias parameters, and `torch` when the same function runs inside our GPT's attention. So no file in this
package imports torch before it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from posviz.errors import CheckpointError, MethodError

Array = Any  # numpy.ndarray or torch.Tensor
Shape = tuple[int | str, ...]  # a word is a size: "head", "2 head" and "width" are known, others are read off the file


@dataclass
class Block:
    """A block of rows of the score matrix: which queries and keys, and what the layer's attention sees there."""

    i: Array  # query positions [row, 1]
    j: Array  # key positions [1, key]
    xp: Any  # numpy or torch
    content: Array | None = None  # scaled q.k before any position [..., head, row, key]
    state: Array | None = None  # what `prepare` made of the layer's input

    @property
    def d(self) -> Array:
        """The distance from key to query, whole numbers; negative in the future."""
        return self.i - self.j

    def floats(self, x: Array) -> Array:
        """Positions or distances as float32, which holds every whole number up to 16 million."""
        return self.xp.asarray(x, dtype=self.xp.float32)


@dataclass(frozen=True)
class Found:
    """A method recognised in a checkpoint: why, and what its parameters say about the model."""

    method: str
    why: str
    n_head: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class PositionalMethod:
    """One positional method for a model of `n_head` heads. Subclasses are stateless beyond their options."""

    name: ClassVar[str]
    title: ClassVar[str]  # as figures and captions print it
    drawn: ClassVar[str]  # the formula, in a line
    reference: ClassVar[str]
    token_dependent: ClassVar[bool] = False
    additive: ClassVar[bool] = True  # adds a bias to the content score
    reads_content: ClassVar[bool] = False  # its bias is computed from the content score
    reads_ahead: ClassVar[int] = 0  # how many keys past its own position a query's bias depends on
    spec: ClassVar[Mapping[str, Shape]] = {}  # parameter suffix -> shape
    optional: ClassVar[frozenset[str]] = frozenset()  # suffixes that a checkpoint may leave out
    buffers: ClassVar[frozenset[str]] = frozenset()  # suffixes that are not trained
    options: ClassVar[Mapping[str, Any]] = {}  # what a file cannot say: name -> default for our own GPT
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # option -> what it may be
    lent: ClassVar[bool] = False  # checkpoints may hold the parameters in the first layer only, for all layers

    def __init__(self, n_head: int, n_embd: int = 0, **options: Any) -> None:
        self.n_head, self.n_embd = n_head, n_embd
        for name, value in options.items():
            if name not in self.options:
                raise MethodError(f"{self.name} has no option {name!r}; it has: {', '.join(self.options) or 'none'}")
            if name in self.choices and value not in self.choices[name]:
                raise MethodError(f"{name} {value!r} of {self.name}: expected {' or '.join(self.choices[name])}")
        self.option = {**self.options, **options}

    # -- knowing itself -----------------------------------------------------------------------------------------

    @classmethod
    def required(cls) -> set[str]:
        """The suffixes without which a layer is not of this method."""
        return set(cls.spec) - cls.optional

    @classmethod
    def recognise(cls, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> Found | None:
        """Whether a layer with these parameters (suffix -> shape) belongs to this method, by its own names."""
        needed = cls.required()
        if not needed or not needed <= set(shapes):
            return None
        return Found(cls.name, f"the layer holds {', '.join(sorted(needed))}", cls.heads_of(shapes))

    @classmethod
    def heads_of(cls, shapes: Mapping[str, tuple[int, ...]]) -> int | None:
        """The head count that the parameters' shapes tell, or None."""
        for suffix, shape in cls.spec.items():
            if "head" in shape and suffix in shapes and len(shapes[suffix]) == len(shape):
                return shapes[suffix][shape.index("head")]
        return None

    def check(self, shapes: Mapping[str, tuple[int, ...]], where: str) -> None:
        """Raise unless every parameter is there in the right shape."""
        sizes: dict[str, int] = {"head": self.n_head, "2 head": 2 * self.n_head}
        if self.n_embd:
            sizes["width"] = self.n_embd
        for suffix, shape in self.spec.items():
            if suffix not in shapes:
                if suffix in self.optional:
                    continue
                raise CheckpointError(
                    f"{where} has no {suffix}, which {self.name} needs; found: "
                    f"{', '.join(sorted(shapes)) or 'nothing'}; is --method right?"
                )
            found = tuple(shapes[suffix])
            expected = tuple(sizes.get(s, s) if isinstance(s, str) else s for s in shape)
            fits = len(found) == len(expected) and all(
                isinstance(e, str) or e == f for f, e in zip(found, expected, strict=True)
            )
            if not fits:
                wanted = ", ".join(f"{e}" for e in expected)
                raise CheckpointError(f"{where}: {suffix} has shape {list(found)}, expected [{wanted}] for {self.name}")
            sizes.update({e: f for f, e in zip(found, expected, strict=True) if isinstance(e, str)})

    @classmethod
    def unsaid(cls, n_head: int | None) -> list[str]:
        """The conventions that no parameter's shape can tell, where they make a difference."""
        return list(cls.choices)

    # -- the formula --------------------------------------------------------------------------------------------

    def initial(self, generator: Any) -> dict[str, Array]:
        """The parameters' values at the start of training, as torch tensors."""
        return {}

    def prepare(self, p: Mapping[str, Array], x: Array) -> Array | None:
        """What is computed once per sequence from the layer's normed input `x` [batch, position, width]."""
        return None

    def bias(self, p: Mapping[str, Array], block: Block) -> Array:
        """What is added to the content score: `[head, row, key]`, with a batch axis in front if it sees tokens."""
        raise MethodError(f"{self.title} adds no bias to the scores; ask for 'scores', 'content' or 'attention'")

    def rotate(self, x: Array) -> Array:
        """Queries or keys `[batch, head, position, dim]` as the score sees them."""
        return x


class DistanceMethod(PositionalMethod):
    """A bias that is a function of the distance alone, so that one row of numbers says everything."""

    def of_distance(self, p: Mapping[str, Array], d: Array, xp: Any) -> Array:
        """The bias at distances `d` (float32, any shape) for every head: `[head, *d.shape]`."""
        raise NotImplementedError

    def bias(self, p: Mapping[str, Array], block: Block) -> Array:
        farthest, nearest = int(block.i[-1, 0] - block.j[0, 0]), int(block.i[0, 0] - block.j[0, -1])
        reached = block.xp.arange(farthest, nearest - 1, -1, device=block.i.device)
        return toeplitz(self.of_distance(p, block.floats(reached), block.xp), block.i.shape[0], block.xp)


def toeplitz(profile: Array, rows: int, xp: Any) -> Array:
    """The matrices `[head, row, key]` whose last row begins each `profile` [head, rows + keys - 1] at its start.

    Written out flat in rows that are one too short, the profile shifts by one from row to row. Indexing would say the
    same, but its gradient is slow to scatter.
    """
    heads, length = profile.shape
    padded = xp.concat([profile, profile[:, :1]], -1)[:, None, :]
    flat = xp.broadcast_to(padded, (heads, rows, length + 1)).reshape(heads, -1)
    return flat[:, : rows * length].reshape(heads, rows, length)[:, :, rows - 1 :]

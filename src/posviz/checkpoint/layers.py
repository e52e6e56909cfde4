"""Which tensors belong to which layer, and how a method finds its own among them by the end of their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from posviz.checkpoint.store import Shape, TensorInfo
from posviz.errors import CheckpointError

PREFIXES = ("_orig_mod.", "module.", "model.")  # what torch.compile, data parallelism and trainers put in front
FEW = 3  # names that may lack a prefix the others share, such as lm_head.weight beside model.layers.0...


def strip(names: Iterable[str]) -> dict[str, str]:
    """Every name without the prefixes that nearly all share, and the name as stored."""
    stored = list(names)
    short = {name.replace("_orig_mod.", ""): name for name in stored}  # also inside, where single blocks were compiled
    if len(short) < len(stored):
        short = {name: name for name in stored}
    while (shorter := _strip_one(short)) is not None:
        short = shorter
    return short


def _strip_one(short: dict[str, str]) -> dict[str, str] | None:
    for prefix in PREFIXES:
        sharing = sum(name.startswith(prefix) for name in short)
        if sharing > len(short) - sharing <= FEW:
            shorter = {name.removeprefix(prefix): stored for name, stored in short.items()}
            if len(shorter) == len(short):
                return shorter
    return None


class Layers:
    """The layers of a checkpoint, counted from 0 in the order of the numbers in their names."""

    def __init__(self, names: Iterable[str]) -> None:
        blocks: dict[str, dict[int, dict[str, str]]] = {}  # what stands before the number -> number -> rest -> name
        for name in names:
            parts = name.split(".")
            at = next((k for k, part in enumerate(parts[:-1]) if part.isdigit()), None)
            if at is not None:
                block = blocks.setdefault(".".join(parts[:at]), {}).setdefault(int(parts[at]), {})
                block[".".join(parts[at + 1 :])] = name
        # A plain nn.Sequential has numbers too, but no modules inside them.
        deep = [block for block in blocks.values() if any("." in rest for layer in block.values() for rest in layer)]
        numbered: dict[int, dict[str, str]] = {}
        for stack in deep or blocks.values():
            for number, layer in stack.items():
                numbered.setdefault(number, {}).update({name: rest for rest, name in layer.items()})
        self.numbers = sorted(numbered)
        self._names = [numbered[number] for number in self.numbers]  # layer -> name -> what follows the number

    def __len__(self) -> int:
        return len(self._names)

    def names(self, layer: int) -> dict[str, str]:
        """The layer's tensors, and for each what follows the layer's number in its name."""
        if not 0 <= layer < len(self):
            raise CheckpointError(f"there is no layer {layer + 1}; the checkpoint has layers 1 to {len(self)}")
        return self._names[layer]


class LayerShapes(Mapping[str, Shape]):
    """The shapes of one layer's tensors under every ending of their names: `bias_p`, `attn.bias_p`, ...

    An ending that two tensors share is there too, but asking for it is an error that names both.
    """

    def __init__(self, where: str, rests: Mapping[str, str], tensors: Mapping[str, TensorInfo]) -> None:
        self._where, self._tensors = where, tensors
        self._found: dict[str, list[str]] = {}
        for name, rest in rests.items():
            parts = rest.split(".")
            for start in range(len(parts)):
                self._found.setdefault(".".join(parts[start:]), []).append(name)

    def name(self, suffix: str) -> str:
        """The one tensor whose name ends so."""
        found = self._found.get(suffix, [])
        if len(found) > 1:  # a block's own mlp.0.weight is not the attention's
            inside = [name for name in found if "attn" in name.lower() or "attention" in name.lower()]
            found = inside if len(inside) == 1 else found
        if len(found) == 1:
            return found[0]
        if found:
            raise CheckpointError(
                f"{self._where}: {suffix} could be {' or '.join(found)}; posviz cannot tell which is meant"
            )
        raise CheckpointError(f"{self._where} has no tensor {suffix}")

    def __getitem__(self, suffix: str) -> Shape:
        if suffix not in self._found:
            raise KeyError(suffix)
        return self._tensors[self.name(suffix)].shape

    def __contains__(self, suffix: object) -> bool:
        return suffix in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

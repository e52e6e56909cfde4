"""Building a user's own model from `package.module:build_fn` and a state dict."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from posviz.errors import CheckpointError, unknown_name


def build_model(spec: str, weights: Mapping[str, Tensor] | None = None) -> nn.Module:
    """What `build_fn()` returns, with the weights loaded, ready to run. The current folder is searched first."""
    build = _find(spec)
    try:
        model = build()
    except Exception as error:
        raise CheckpointError(f"{spec}() failed: {type(error).__name__}: {_line(error)}") from error
    if not isinstance(model, nn.Module):
        raise CheckpointError(f"{spec}() returned a {type(model).__name__}; expected a torch.nn.Module")
    if weights is not None:
        _load(model, weights, spec)
    return model.eval()


def _find(spec: str) -> Any:
    module_name, colon, name = spec.partition(":")
    if not (module_name and colon and name):
        raise CheckpointError(f"model is {spec!r}; expected package.module:build_fn, a function that returns the model")
    with _current_folder_first():
        try:
            module = importlib.import_module(module_name)
        except Exception as error:
            raise CheckpointError(
                f"{module_name} cannot be imported: {type(error).__name__}: {_line(error)}"
            ) from error
    build = getattr(module, name, None)
    if not callable(build):
        known = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
        raise CheckpointError(unknown_name(f"function of {module_name}", name, known))
    return build


def _load(model: nn.Module, weights: Mapping[str, Tensor], spec: str) -> None:
    own = model.state_dict()
    missing, foreign = sorted(own.keys() - weights.keys()), sorted(weights.keys() - own.keys())
    wrong = [name for name in own.keys() & weights.keys() if own[name].shape != weights[name].shape]
    if missing or foreign:
        said = [f"{len(missing)} missing, such as {missing[0]}"] if missing else []
        said += [f"{len(foreign)} unknown to it, such as {foreign[0]}"] if foreign else []
        raise CheckpointError(f"the weights do not fit the model of {spec}: {'; '.join(said)}")
    if wrong:
        name = min(wrong)
        found, expected = list(weights[name].shape), list(own[name].shape)
        raise CheckpointError(f"the weights do not fit the model of {spec}: {name} is {found}, expected {expected}")
    model.load_state_dict(weights)


@contextmanager
def _current_folder_first() -> Iterator[None]:
    """Where a user's own package lies; the console script's path does not have it."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
